"""Does a classifier know when it does not know: calibration, areas under curves, and texts out of scope."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from manymetrics.errors import InputError
from manymetrics.evaluation import evaluate_scope
from manymetrics.evaluation.scope import auroc, draw_tasks
from manymetrics.evaluation.scoring import calibration_error
from manymetrics.values import Examples, Task, TaskBank


def test_the_error_of_planted_confidences_is_known():
    right = np.array([True] * 60 + [False] * 40)
    assert calibration_error(np.full(100, 0.9), right).value == pytest.approx(0.3)
    assert calibration_error(np.full(100, 0.6), right).value == pytest.approx(0)
    found = calibration_error(np.full(100, 0.9), right)
    assert found.low < 0.3 < found.high


def test_errors_of_different_bins_do_not_cancel():
    confidences = np.repeat([0.95, 0.55], 50)
    right = np.array([True] * 25 + [False] * 25 + [True] * 50)
    assert calibration_error(confidences, right).value == pytest.approx(0.45)


def test_the_interval_of_an_error_is_that_of_drawing_texts():
    rng = np.random.default_rng(0)
    confidences = rng.uniform(0.3, 1, 300)
    right = rng.uniform(size=300) < confidences**2
    bins = np.minimum((confidences * 10).astype(int), 9)
    drawn = []
    for row in rng.integers(300, size=(1000, 300)):
        gaps = [abs((confidences - right)[row][bins[row] == number].sum()) for number in range(10)]
        drawn.append(sum(gaps) / 300)
    found = calibration_error(confidences, right)
    assert (found.low, found.high) == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.01)


def test_errors_of_many_texts_are_drawn_some_at_a_time(monkeypatch):
    confidences, right = np.full(100, 0.9), np.array([True] * 60 + [False] * 40)
    whole = calibration_error(confidences, right)
    monkeypatch.setattr("manymetrics.evaluation.scoring.TEXTS_AT_ONCE", 700)
    assert calibration_error(confidences, right) == whole


def test_the_area_is_scikit_learns():
    rng = np.random.default_rng(0)
    inside, outside = rng.integers(0, 9, 40) / 8, rng.integers(0, 7, 70) / 8
    wanted = roc_auc_score([1] * 40 + [0] * 70, [*inside, *outside])
    assert auroc(inside, outside) == pytest.approx(wanted)


def shots_task(name, shots):
    return Task(name, shots, Examples(), shots)


def test_a_drawn_task_has_one_example_of_each_label_and_twenty_more():
    train = Examples(tuple(f"text {row}" for row in range(60)), tuple("abc"[row % 3] for row in range(60)))
    (task,) = draw_tasks(TaskBank((Task("t", train, Examples(), train),)), 5, seed=0)
    assert len(task.train) == 23
    assert set(task.train.labels) == {"a", "b", "c"}
    assert len(set(task.train.texts)) == 23


def test_scope_is_evaluated_on_targets_and_texts_out_of_scope(model, shots):
    targets = TaskBank((shots_task("new", shots),))
    bank = TaskBank((shots_task("other", Examples(("blue sky", "green sea"), ("x", "y"))),))
    first = evaluate_scope(model, targets, bank, out_of_scope=40).as_dict()
    assert (first["classifiers"], first["out_of_scope"], first["seed"]) == (1, 40, 0)
    assert 0 <= first["targets"]["out_of_scope_recall"] <= 1
    assert first["targets"]["auroc"] > 0.5
    assert first["targets"]["in_scope_accuracy"] <= first["targets"]["accuracy_without_rejection"]
    assert set(first["calibration_error_of_targets"]) == {"value", "low", "high"}
    assert first == evaluate_scope(model, targets, bank, out_of_scope=40).as_dict()
    assert first != evaluate_scope(model, targets, bank, out_of_scope=40, seed=1).as_dict()


def test_a_bank_without_test_texts_has_no_off_topic_ones(model, shots):
    bank = TaskBank((Task("other", shots),))
    with pytest.raises(InputError, match="No task of the bank has test texts"):
        evaluate_scope(model, TaskBank((shots_task("new", shots),)), bank)
