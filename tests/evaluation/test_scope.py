"""Calibration, and the rejection of texts out of scope."""

from dataclasses import replace

import numpy as np
import pytest

from manymetrics.errors import InputError
from manymetrics.evaluation import evaluate_scope
from manymetrics.evaluation.scoring import calibration_error
from manymetrics.values import Examples, Task, TaskBank

RIGHT = np.array([True] * 60 + [False] * 40)


def test_the_calibration_error_of_planted_confidences_is_known_and_errors_of_bins_do_not_cancel():
    error = calibration_error(np.full(100, 0.9), RIGHT)
    assert error.value == pytest.approx(0.3)
    assert error.low < 0.3 < error.high
    assert calibration_error(np.full(100, 0.6), RIGHT).value == pytest.approx(0)
    right = np.array([True] * 25 + [False] * 25 + [True] * 50)
    assert calibration_error(np.repeat([0.95, 0.55], 50), right).value == pytest.approx(0.45)


def test_the_interval_of_an_error_is_that_of_resampled_texts():
    rng = np.random.default_rng(0)
    confidences = rng.uniform(0.3, 1, 300)
    right = rng.uniform(size=300) < confidences**2
    bins = np.minimum((confidences * 10).astype(int), 9)
    draws = []
    for rows in rng.integers(300, size=(1000, 300)):
        gaps = [abs((confidences - right)[rows][bins[rows] == number].sum()) for number in range(10)]
        draws.append(sum(gaps) / 300)
    error = calibration_error(confidences, right)
    assert (error.low, error.high) == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=0.01)


def test_an_interval_does_not_depend_on_the_size_of_batches(monkeypatch):
    at_once = calibration_error(np.full(100, 0.9), RIGHT)
    monkeypatch.setattr("manymetrics.evaluation.scoring.MAX_SAMPLES", 700)
    assert calibration_error(np.full(100, 0.9), RIGHT) == at_once


def task_of(name, shots):
    return Task(name, shots, Examples(), shots)


def test_scope_is_evaluated_on_targets_and_texts_out_of_scope(model, shots):
    targets = TaskBank((task_of("new", shots),))
    bank = TaskBank((task_of("other", Examples(("blue sky", "green sea"), ("x", "y"))),))
    first = evaluate_scope(model, targets, bank, out_of_scope=40).as_dict()
    assert (len(first["tasks"]), first["out_of_scope"], first["seed"]) == (1, 40, 0)
    assert first["targets"]["out_of_scope_recall"] > 0.2
    unlimited = evaluate_scope(model, targets, bank, out_of_scope=40, reject=0.0).as_dict()["targets"]
    assert (unlimited["in_scope_kept"], unlimited["out_of_scope_recall"]) == (1, 0)
    assert first["targets"]["auroc"] > 0.5
    assert first["targets"]["in_scope_accuracy"] <= first["targets"]["accuracy_without_rejection"]
    assert set(first["calibration_error_of_targets"]) == {"value", "low", "high"}
    assert first == evaluate_scope(model, targets, bank, out_of_scope=40).as_dict()
    assert first != evaluate_scope(model, targets, bank, out_of_scope=40, seed=1).as_dict()


def test_texts_of_the_most_similar_tasks_are_scored_apart(model, shots):
    def others(texts):
        return [task_of(f"task {number}", Examples(texts, ("x", "y"))) for number in range(3)]

    targets = TaskBank((task_of("new", shots),))
    far = [replace(task, name=f"far {task.name}") for task in others(("blue sky", "green sea"))]
    near = others((shots.texts[0], shots.texts[-1]))
    scores = evaluate_scope(model, targets, TaskBank((*far, *near)), out_of_scope=40).as_dict()["targets"]
    alone = evaluate_scope(model, targets, TaskBank(tuple(far)), out_of_scope=40).as_dict()["targets"]
    assert scores["auroc_similar_tasks"] < 0.6 < alone["auroc_similar_tasks"]
    assert alone["out_of_scope_recall"] > 0.2


def test_a_bank_without_test_texts_and_two_thresholds_are_refused(model, shots):
    targets = TaskBank((task_of("new", shots),))
    with pytest.raises(InputError, match="No task of the bank has test texts"):
        evaluate_scope(model, targets, TaskBank((Task("other", shots),)))
    with pytest.raises(InputError, match="Found both reject and reject_share"):
        evaluate_scope(model, targets, targets, reject=0.5, reject_share=0.1)
