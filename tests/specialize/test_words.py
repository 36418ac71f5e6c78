import warnings

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing trains")

from manymetrics.encode import Training, TunedWords, random_vectors, unit_rows
from manymetrics.errors import UnitLeftOut, UnitsFailed
from manymetrics.specialize import train_word_metric
from manymetrics.values import Clusters, Examples, Material, Task, TaskBank, Texts

SHORT = Training(steps=30, check_every=10, learning_rate=0.02, ways=2, shots=2, queries=8)
WORDS = random_vectors(rows=2048, dimensions=16)
KNOBS = {"words": WORDS, "objective": "auto", "training": SHORT}
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


def material_of(*tasks):
    return Material(TaskBank(tasks), {WORDS.fingerprint: WORDS})


def here(material):
    return lambda stage, do, units: {unit.name: do(unit, material) for unit in units}


MATERIAL = material_of(weather("a", ("hot", "cool")), weather("bb", ("yes", "no")), weather("ccc", ("up", "down")))
CLUSTERS = Clusters(MATERIAL.bank.names, np.array([0, 0, 1]))


def train(**options):
    return train_word_metric(MATERIAL, CLUSTERS, here(MATERIAL), **KNOBS, held_out=("ccc",), **options)


@pytest.fixture(scope="module")
def metric():
    (metric,) = train()
    return metric


def test_it_learns_from_the_tasks_of_all_clusters_but_the_held_out(metric):
    assert (metric.name, metric.kind, metric.rule) == ("tuned-vectors", "tuned", "prototypical")
    assert metric.tasks == ("a", "bb")
    assert metric.cluster is None


def test_words_that_the_tasks_use_alike_come_together(metric):
    words = Texts(word for group in GROUPS.values() for word in group)

    def how_far_apart(encoder):
        rows = unit_rows(encoder.encode(words))
        cosines = rows @ rows.T  # (10, 10)
        inside = (cosines[:5, :5].sum() + cosines[5:, 5:].sum() - 10) / 40
        return inside - cosines[:5, 5:].mean()

    assert abs(how_far_apart(WORDS)) < 0.2, "random vectors know nothing of warm and cold"
    assert how_far_apart(metric.encoder) > 0.4


def test_words_that_no_task_has_stay_where_they_are(metric):
    assert isinstance(metric.encoder, TunedWords)
    assert metric.encoder.given is WORDS
    used = WORDS.tokens(Texts(" ".join(words) for words in GROUPS.values())).ids
    assert metric.encoder.moved.tolist() == sorted(set(used.tolist()))


def test_the_held_out_are_in_the_unit_as_what_training_stops_on():
    seen = []

    def work(stage, do, units):
        seen.extend(units)
        return here(MATERIAL)(stage, do, units)

    train_word_metric(MATERIAL, CLUSTERS, work, **KNOBS, held_out=("ccc",), seed=3)
    (unit,) = seen
    assert list(unit.spec["tasks"]) == ["a", "bb"]
    assert list(unit.spec["held_out"]) == ["ccc"]
    assert unit.spec["words"] == WORDS.fingerprint
    assert unit.spec["training"]["steps"] == 4 * SHORT.steps


def test_the_same_seed_moves_words_to_the_same_bits(metric):
    ((again,), (other,)) = train(), train(seed=1)
    assert again.encoder.fingerprint == metric.encoder.fingerprint
    assert other.encoder.fingerprint != metric.encoder.fingerprint


def test_tasks_that_share_their_labels_have_none():
    same = material_of(weather("a", ("x", "y")), weather("bb", ("x", "y")))
    clusters = Clusters(same.bank.names, np.array([0, 1]))

    def work(stage, do, units):
        raise AssertionError("nothing is to be trained")

    assert train_word_metric(same, clusters, work, **KNOBS) == []
    assert len(train_word_metric(same, clusters, here(same), **{**KNOBS, "objective": "matching"})) == 1


def test_a_training_that_fails_costs_this_metric_alone():
    def work(stage, do, units):
        raise UnitsFailed("Nothing came of specialize-words.")

    with pytest.warns(UnitLeftOut, match=r"Nothing came of specialize-words\. The model comes out without it"):
        assert train_word_metric(MATERIAL, CLUSTERS, work, **KNOBS) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert train()
