"""Tasks of one bank that share their labels, among tasks that have others."""

from dataclasses import replace

import numpy as np
import pytest

import manymetrics as mm
from manymetrics.classifier import Predictor
from manymetrics.errors import DataError
from manymetrics.learn import MIN_SHARING, sharing_labels
from manymetrics.values import TaskBank

LABELS = ("blue", "green", "red")


@pytest.fixture(scope="module")
def mixed(make_bank):
    """As many tasks with the same three labels as are needed, two tasks with others, and one more that shares them."""
    every = make_bank(MIN_SHARING + 1)
    colours, animals = every.tasks[:MIN_SHARING], every.tasks[MIN_SHARING + 1 :][:2]
    return TaskBank((*colours, *animals)), every.tasks[MIN_SHARING]


@pytest.fixture(scope="module")
def learned(mixed, tiny_recipe, vectors):
    return mm.learn_metrics(mixed[0], tiny_recipe, vectors=vectors)


def test_parts_of_a_bank_that_share_their_labels(mixed, make_bank):
    bank, _ = mixed
    assert sharing_labels(bank.tasks) == [list(bank.tasks[:MIN_SHARING])]
    assert sharing_labels(bank.tasks[1:]) == []
    assert [len(part) for part in sharing_labels(make_bank(MIN_SHARING).tasks)] == [MIN_SHARING] * 2
    assert sharing_labels(bank.tasks[:MIN_SHARING]) == []


def test_they_have_the_metrics_that_they_would_have_alone(mixed, learned, tiny_recipe, vectors):
    alone = mm.learn_metrics(mixed[0].only(mixed[0].names[:MIN_SHARING]), replace(tiny_recipe, clusters=None),
                             vectors=vectors)  # fmt: skip
    (own,) = learned.predictor.by_labels
    assert own.labels == set(LABELS)
    assert own.fingerprint == alone.fingerprint


def test_a_new_task_with_the_same_labels_is_answered_by_them_and_another_by_all(mixed, learned):
    task = mixed[1]
    same = learned.adapt(task.train.texts, task.train.labels)
    assert same.classifier_.head.known is not None
    assert np.mean(same.predict(task.test.texts) == np.array(task.test.labels)) > 0.7
    other = learned.adapt(task.train.texts, [f"{label}ish" for label in task.train.labels])
    assert other.classifier_.head.known is None
    assert learned.predictor.for_labels(("red", "blue", "green")) is learned.predictor.by_labels[0]
    assert learned.predictor.for_labels(("red", "blue")) is learned.predictor


def test_they_are_saved_loaded_and_reported(mixed, learned, tmp_path):
    learned.save(tmp_path / "model")
    again, task = mm.load_model(tmp_path / "model"), mixed[1]
    assert again.fingerprint == learned.fingerprint
    assert again.predictor.by_labels[0].fingerprint == learned.predictor.by_labels[0].fingerprint
    assert again.origin.by_labels == learned.origin.by_labels
    assert again.origin.by_labels[0].labels == LABELS
    assert again.origin.by_labels[0].tasks == mixed[0].names[:MIN_SHARING]
    before, after = (one.adapt(task.train.texts, task.train.labels) for one in (learned, again))
    assert (before.predict_proba(task.test.texts) == after.predict_proba(task.test.texts)).all()
    told = f"{MIN_SHARING} tasks have the labels blue, green, red"
    assert told in (tmp_path / "model" / "README.md").read_text()


def test_labels_that_are_there_twice_or_not_at_all_are_refused(learned):
    own = learned.predictor.by_labels[0]
    for wrong in ((own, own), (replace(learned.predictor, by_labels=()),), (replace(own, by_labels=(own,)),)):
        with pytest.raises(DataError, match="Give each set of labels once"):
            Predictor(own.metrics, by_labels=wrong)


def test_tasks_whose_training_left_no_metric_that_knows_the_labels_are_served_as_all_others(
    mixed, tiny_recipe, vectors, monkeypatch
):
    monkeypatch.setattr("manymetrics.learn.train_linear_metric", lambda *args, **options: [])
    model = mm.learn_metrics(mixed[0], tiny_recipe, vectors=vectors)
    assert model.predictor.by_labels == ()
    assert model.origin.by_labels == ()
