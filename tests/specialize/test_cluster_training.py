import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.encode import Convolution, Training, random_vectors, read_bank
from manymetrics.errors import NotEnoughExamples, RecipeError
from manymetrics.specialize import SharedLabelMetric, SimilarityMetric, train_metrics
from manymetrics.specialize.training import choose_objective, open_metric, read_about
from manymetrics.values import Clusters, Examples, Task, TaskBank

SMALL = Convolution(window=3, width=8, dropout=0.1)
SHORT = Training(steps=40, check_every=20, learning_rate=0.02, batch=16, ways=3, shots=2, queries=6)


def at_once(bank):
    return lambda stage, do, units: {unit.name: do(unit, bank) for unit in units}


def noted(units):
    def work(stage, do, found):
        units.extend(found)
        return {}

    return work


def by_family(bank):
    return Clusters(bank.names, np.array([name.startswith("animal") for name in bank.names]).astype(int))


@pytest.fixture(scope="module")
def read(make_bank):
    return read_bank(make_bank(3), random_vectors(rows=512, dimensions=16))


def test_auto_shares_labels_where_all_tasks_do(read):
    same = read_bank(TaskBank(tuple(Task(name, Examples(("a", "b"), ("x", "y"))) for name in "ab")), read.vectors)
    assert choose_objective(same, "auto") == "shared-label"
    assert choose_objective(read, "auto") == "prototypical"
    assert choose_objective(same, "matching") == "matching"


def test_an_objective_that_cannot_be_is_refused(read):
    with pytest.raises(RecipeError, match=r"There is no objective 'triplet'\. Choose one of auto, matching"):
        choose_objective(read, "triplet")
    with pytest.raises(RecipeError, match=r"'shared-label' needs tasks that all have the same labels"):
        choose_objective(read, "shared-label")


def test_held_out_tasks_are_stopped_on_and_not_trained_on(read):
    units = []
    options = {"objective": "auto", "convolution": SMALL, "training": SHORT}
    train_metrics(read, by_family(read), noted(units), **options, held_out=("animal-1",))
    assert [unit.name for unit in units] == ["cluster-0", "cluster-1"]
    assert list(units[0].spec["tasks"]) == ["colour-0", "colour-1", "colour-2"]
    assert list(units[1].spec["tasks"]) == ["animal-0", "animal-2"]
    assert units[1].spec["held_out"] == {"animal-1": read["animal-1"].fingerprint}
    assert json.dumps(units[1].spec)


@pytest.mark.parametrize("objective", ["matching", "prototypical"])
def test_a_clusters_metric_knows_its_family(read, objective):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    long = replace(SHORT, steps=300, patience=99)
    options = {"objective": objective, "convolution": SMALL, "training": long, "held_out": ("animal-1", "colour-1")}
    metrics = train_metrics(read, by_family(read), at_once(read), **options)
    assert [(metric.name, metric.kind, metric.rule) for metric in metrics] == [
        ("cluster-0", "learned", objective),
        ("cluster-1", "learned", objective),
    ]
    assert metrics[0].tasks == ("colour-0", "colour-2")
    task = read["animal-1"]
    own, other = (
        metric.learn(task.train.tokens, task.train.labels, task.labels).chances(task.valid.tokens)
        for metric in (metrics[1], metrics[0])
    )
    right = np.arange(len(task.valid)), task.valid.labels
    assert np.log(own[right]).mean() > np.log(other[right]).mean()


def test_tasks_of_the_same_labels_share_a_classifier(read, make_bank):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    animals = read_bank(make_bank(3).only([f"animal-{number}" for number in range(3)]), read.vectors)
    one = Clusters(animals.names, np.zeros(3, dtype=int))
    (metric,) = train_metrics(animals, one, at_once(animals), objective="auto", convolution=SMALL, training=SHORT)
    assert isinstance(metric, SharedLabelMetric)
    assert metric.labels == ("bird", "cat", "fish")
    task = animals["animal-1"]
    chances = metric.learn(task.train.tokens, task.train.labels, task.labels).chances(task.valid.tokens)
    assert (chances.argmax(axis=1) == task.valid.labels).mean() > 0.6


def test_a_cluster_whose_training_failed_has_no_metric(read):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")

    def work(stage, do, units):
        return {units[1].name: do(units[1], read)}

    (metric,) = train_metrics(read, by_family(read), work, objective="auto", convolution=SMALL, training=SHORT)
    assert metric.name == "cluster-1"
    assert isinstance(metric, SimilarityMetric)


def test_tasks_too_small_for_episodes_are_named(read):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    small = tuple(Task(name, Examples((f"a {name}", "b"), ("x", f"y{name}"))) for name in ("tiny", "wee"))
    bank = read_bank(TaskBank(small), read.vectors)
    one = Clusters(bank.names, np.zeros(2, dtype=int))
    with pytest.raises(
        NotEnoughExamples, match=r"None of the tasks tiny, wee has two labels with two train examples each"
    ):
        train_metrics(bank, one, at_once(bank), objective="auto", convolution=SMALL, training=SHORT)


@given(st.lists(st.text(st.characters(exclude_categories=[]), max_size=5), min_size=2, max_size=4, unique=True))
def test_what_a_metrics_file_says_of_itself_comes_back(labels):
    from safetensors.numpy import save

    about = {"objective": "shared-label", "labels": labels}
    shapes = {"filters": (3, 4, 2), "bias": (2,), "head": (2, len(labels))}
    shapes |= {"offset": (len(labels),), "prior": (len(labels),)}
    tensors = {name: np.zeros(shape, dtype=np.float32) for name, shape in shapes.items()}
    payload = save(tensors, metadata={"about": json.dumps(about)})
    assert read_about(payload) == about
    assert open_metric("c", ("t",), np.zeros((5, 4), np.float32), payload).labels == tuple(labels)
