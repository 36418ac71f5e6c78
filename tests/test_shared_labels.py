"""Tasks of one bank that share their labels, among tasks that have others."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing trains")

import manymetrics as mm
from manymetrics.classifier import Serving
from manymetrics.collect.diversity import FEWEST_SHARING, measure_diversity, sharing_labels
from manymetrics.errors import DataError
from manymetrics.values import TaskBank

LABELS = ("blue", "green", "red")


@pytest.fixture(scope="module")
def mixed(make_bank):
    """As many tasks with the same three labels as are needed, two tasks with others, and one more that shares them."""
    every = make_bank(FEWEST_SHARING + 1)
    colours, animals = every.tasks[:FEWEST_SHARING], every.tasks[FEWEST_SHARING + 1 :][:2]
    return TaskBank((*colours, *animals)), every.tasks[FEWEST_SHARING]


@pytest.fixture(scope="module")
def learned(mixed, tiny_recipe, vectors):
    return mm.learn_metrics(mixed[0], tiny_recipe, vectors=vectors)


def test_parts_of_a_bank_that_share_their_labels(mixed, make_bank):
    bank, _ = mixed
    assert sharing_labels(bank.tasks) == [list(bank.tasks[:FEWEST_SHARING])]
    assert sharing_labels(bank.tasks[1:]) == []
    assert [len(part) for part in sharing_labels(make_bank(FEWEST_SHARING).tasks)] == [FEWEST_SHARING] * 2
    assert sharing_labels(bank.tasks[:FEWEST_SHARING]) == []
    told = measure_diversity(bank.tasks)
    assert told.same_labels == (bank.names[:FEWEST_SHARING],)
    assert str(told).endswith(f" {FEWEST_SHARING} tasks have the same labels; they get metrics of their own.")


def test_they_have_the_metrics_that_they_would_have_alone(mixed, learned, tiny_recipe, vectors):
    alone = mm.learn_metrics(mixed[0].only(mixed[0].names[:FEWEST_SHARING]), replace(tiny_recipe, clusters=None),
                             vectors=vectors)  # fmt: skip
    (own,) = learned.serving.by_labels
    assert own.labels == set(LABELS)
    assert own.fingerprint == alone.fingerprint


def test_a_new_task_with_the_same_labels_is_answered_by_them_and_another_by_all(mixed, learned):
    task = mixed[1]
    same = learned.adapt(task.train.texts, task.train.labels)
    assert "phrases" in same.weights_
    assert np.mean(same.predict(task.test.texts) == np.array(task.test.labels)) > 0.7
    other = learned.adapt(task.train.texts, [f"{label}ish" for label in task.train.labels])
    assert "phrases" not in other.weights_
    assert learned.serving.for_labels(("red", "blue", "green")) is learned.serving.by_labels[0]
    assert learned.serving.for_labels(("red", "blue")) is learned.serving


def test_they_are_saved_and_loaded_and_told_of(mixed, learned, tmp_path):
    learned.save(tmp_path / "model")
    again, task = mm.load_model(tmp_path / "model"), mixed[1]
    assert again.fingerprint == learned.fingerprint
    assert again.serving.by_labels[0].fingerprint == learned.serving.by_labels[0].fingerprint
    assert again.origin.by_labels == learned.origin.by_labels
    assert again.origin.by_labels[0].labels == LABELS
    assert again.origin.by_labels[0].tasks == mixed[0].names[:FEWEST_SHARING]
    before, after = (one.adapt(task.train.texts, task.train.labels) for one in (learned, again))
    assert (before.predict_proba(task.test.texts) == after.predict_proba(task.test.texts)).all()
    told = f"{FEWEST_SHARING} tasks have the labels blue, green, red"
    assert told in (tmp_path / "model" / "README.md").read_text()


def test_what_serves_knows_the_difference(learned):
    assert replace(learned.serving, by_labels=()).fingerprint != learned.fingerprint


def test_labels_that_are_there_twice_or_not_at_all_are_refused(learned):
    own = learned.serving.by_labels[0]
    for wrong in ((own, own), (replace(learned.serving, by_labels=()),), (replace(own, by_labels=(own,)),)):
        with pytest.raises(DataError, match="Give each set of labels once"):
            Serving(own.metrics, by_labels=wrong)


def test_tasks_whose_training_left_no_metric_that_knows_the_labels_are_served_as_all_others(
    mixed, tiny_recipe, vectors, monkeypatch
):
    monkeypatch.setattr("manymetrics.learn.train_linear_metrics", lambda *args, **options: [])
    model = mm.learn_metrics(mixed[0], replace(tiny_recipe, objective="prototypical"), vectors=vectors)
    assert model.serving.by_labels == ()
    assert model.origin.by_labels == ()
