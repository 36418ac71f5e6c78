import warnings

import numpy as np
import pytest

from manymetrics.encode import Training, random_vectors, read_bank
from manymetrics.encode.encoders import MeanEncoder, moved_words
from manymetrics.errors import UnitLeftOut, UnitsFailed
from manymetrics.specialize import train_word_metric
from manymetrics.values import Clusters, Examples, Task, TaskBank

SHORT = Training(steps=30, check_every=10, learning_rate=0.02, ways=2, shots=2, queries=8)
KNOBS = {"objective": "auto", "training": SHORT}
GROUPS = {"warm": ("tea", "sun", "fire", "oven", "soup"), "cold": ("ice", "snow", "frost", "hail", "sleet")}


def weather(name, labels):
    """A task about warm and cold words, two drawn for each text, under labels of its own."""
    rng = np.random.default_rng(len(name))
    rows = [
        (" ".join(rng.choice(GROUPS[group], 2)), label)
        for group, label in zip(GROUPS, labels, strict=True)
        for _ in range(30)
    ]
    return Task(name, Examples(tuple(text for text, _ in rows), tuple(label for _, label in rows)))


def here(bank):
    return lambda stage, do, units: {unit.name: do(unit, bank) for unit in units}


@pytest.fixture(scope="module")
def bank():
    tasks = (weather("a", ("hot", "cool")), weather("bb", ("yes", "no")), weather("ccc", ("up", "down")))
    return read_bank(TaskBank(tasks), random_vectors(rows=2048, dimensions=16))


@pytest.fixture(scope="module")
def clusters(bank):
    return Clusters(bank.names, np.array([0, 0, 1]))


@pytest.fixture(scope="module")
def metric(bank, clusters):
    (metric,) = train_word_metric(bank, clusters, here(bank), **KNOBS, held_out=("ccc",))
    return metric


def test_it_learns_from_the_tasks_of_all_clusters_but_the_held_out(metric):
    assert (metric.name, metric.kind, metric.rule) == ("tuned-vectors", "tuned", "prototypical")
    assert metric.tasks == ("a", "bb")


def test_words_that_the_tasks_use_alike_come_together(bank, metric):
    words = bank.vectors.read([word for group in GROUPS.values() for word in group])

    def how_far_apart(encoder):
        rows = encoder.encode(words)
        likeness = rows @ rows.T  # (10, 10)
        inside = (likeness[:5, :5].sum() + likeness[5:, 5:].sum() - 10) / 40
        return inside - likeness[:5, 5:].mean()

    assert abs(how_far_apart(MeanEncoder(bank.vectors.table))) < 0.2, "random vectors know nothing of warm and cold"
    assert how_far_apart(metric.encoder) > 0.4


def test_words_that_no_task_has_stay_where_they_are(bank, metric):
    moved = moved_words(metric.encoder.table, bank.vectors.table)
    used = np.unique(bank.vectors.read([" ".join(words) for words in GROUPS.values()]).ids)
    assert set(moved.tolist()) == set(used.tolist())


def test_the_held_out_are_in_the_unit_as_what_training_stops_on(bank, clusters):
    seen = []

    def work(stage, do, units):
        seen.extend(units)
        return here(bank)(stage, do, units)

    train_word_metric(bank, clusters, work, **KNOBS, held_out=("ccc",), seed=3)
    (unit,) = seen
    assert list(unit.spec["tasks"]) == ["a", "bb"]
    assert list(unit.spec["held_out"]) == ["ccc"]
    assert unit.spec["training"]["steps"] == 4 * SHORT.steps


def test_the_same_seed_moves_words_to_the_same_bits(bank, clusters, metric):
    (again,) = train_word_metric(bank, clusters, here(bank), **KNOBS, held_out=("ccc",))
    (other,) = train_word_metric(bank, clusters, here(bank), **KNOBS, held_out=("ccc",), seed=1)
    assert (again.encoder.table == metric.encoder.table).all()
    assert (other.encoder.table != metric.encoder.table).any()


def test_tasks_that_share_their_labels_have_none(bank):
    same = read_bank(TaskBank((weather("a", ("x", "y")), weather("bb", ("x", "y")))), bank.vectors)
    clusters = Clusters(same.names, np.array([0, 1]))

    def work(stage, do, units):
        raise AssertionError("nothing is to be trained")

    assert train_word_metric(same, clusters, work, **KNOBS) == []
    assert len(train_word_metric(same, clusters, here(same), **{**KNOBS, "objective": "matching"})) == 1


def test_a_training_that_fails_costs_this_metric_alone(bank, clusters):
    def work(stage, do, units):
        raise UnitsFailed("Nothing came of specialize-words.")

    with pytest.warns(UnitLeftOut, match="Nothing came of specialize-words. The model comes out without it"):
        assert train_word_metric(bank, clusters, work, **KNOBS) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert train_word_metric(bank, clusters, here(bank), **KNOBS)
