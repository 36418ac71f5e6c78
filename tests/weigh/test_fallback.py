"""Tasks that no metric of the bank fits, planted: the labels hidden from its encoders, or assigned at random."""

import numpy as np
import pytest
from planted import Numbers, frozen, of_cluster, planted_texts, shared

from manymetrics.classifier import Predictor, adapt
from manymetrics.classifier.examples import support_set
from manymetrics.encode import EmbeddedTexts
from manymetrics.weigh import TaskMetric, fit_head
from manymetrics.weigh.fallback import (
    LeftOutShots,
    leave_out_shots,
    permutation_p_value,
    why_better_without,
    why_chance,
)

ALL = Numbers(*[1] * 12)
BLIND = Numbers(0, 0, *[1] * 10)  # of two labels, as planted, it sees nothing
SHARP = Numbers(5, 5, *[1] * 10)


def fit(encoder, texts, labels, n_classes):
    return fit_head(TaskMetric.of([frozen(encoder)], np.ones(1), EmbeddedTexts(texts)), labels, n_classes)


def adapted_task(metrics, n_classes, per_label, *, spread=0.3, seed=0, random_labels=False):
    labels = np.arange(n_classes * per_label) % n_classes
    texts = planted_texts(labels, 12, spread=spread, seed=seed)
    if random_labels:
        labels = np.random.default_rng(seed).permutation(labels)
    return adapt(Predictor(tuple(metrics)), support_set(texts, labels.tolist()))


# --- the encoders of the bank hide the labels


@pytest.mark.parametrize("metrics", [
    [shared(BLIND), frozen(ALL)],
    [of_cluster(0, BLIND), frozen(ALL)],
    [shared(BLIND), of_cluster(0, BLIND), of_cluster(1, BLIND), frozen(ALL)],
])  # fmt: skip
def test_tasks_whose_labels_the_learned_encoders_destroy_fall_back_also_with_one_cluster(metrics):
    adapted = [adapted_task(metrics, 2, 5, spread=0.4, seed=seed) for seed in range(10)]
    fallen = [one for one in adapted if one.fallback_reason is not None]
    assert len(fallen) >= 7, "in the others the frozen encoder's share of the metric is enough"
    for one in fallen:
        assert one.fallback_reason.startswith("No cluster fits this task: of 10 examples left out in turn")
        assert one.fallback_reason.endswith("The frozen encoder answers alone.")
        assert one.weights.tolist() == [0.0] * (len(metrics) - 1) + [1.0]


def test_a_task_that_the_learned_encoders_fit_does_not_fall_back():
    for seed in range(10):
        assert adapted_task([shared(SHARP), frozen(ALL)], 2, 5, seed=seed).fallback_reason is None


def left_out(n_correct, *, total=40, sure=1.0):
    """Two labels, so many answered correctly."""
    labels = np.arange(total) % 2
    signs = np.where(np.arange(total) < n_correct, 1.0, -1.0)
    return LeftOutShots(sure * signs[:, None] * (2 * np.eye(2)[labels] - 1), labels)


def test_the_frozen_encoders_must_be_better_by_a_margin_and_in_likelihood():
    assert why_better_without(left_out(30), left_out(32)) is not None
    assert why_better_without(left_out(30), left_out(31)) is None, "one more of forty"
    assert why_better_without(left_out(30, total=100), left_out(33, total=100)) is None, "three more of a hundred"
    assert why_better_without(left_out(30), left_out(30)) is None
    assert why_better_without(left_out(30, sure=0.1), left_out(32, sure=9.0)) is None, "more probable as it is"
    nobody = left_out(0, total=0)
    assert why_better_without(nobody, nobody) is None


def test_shots_are_answered_from_the_others_and_the_only_one_of_a_label_is_omitted():
    labels = np.array([0, 0, 0, 1, 1, 2])
    head = fit(ALL, planted_texts(labels, 12, spread=0.1, seed=0), labels, 3)
    found = leave_out_shots(head, 6)
    assert found.labels.tolist() == [0, 0, 0, 1, 1]
    assert found.logits.argmax(axis=1).tolist() == [0, 0, 0, 1, 1]
    assert leave_out_shots(head, 2).labels.tolist() == [0, 0], "names behind the shots are not left out"


def test_of_very_many_shots_some_are_left_out(monkeypatch):
    monkeypatch.setattr("manymetrics.weigh.fallback.MAX_LEFT_OUT", 5)
    labels = np.arange(30) % 3
    found = leave_out_shots(fit(ALL, planted_texts(labels, 12, spread=0.1, seed=0), labels, 3), 30)
    assert found.labels.tolist() == labels[[0, 7, 14, 22, 29]].tolist()


# --- labels assigned at random


@pytest.mark.parametrize(("n_classes", "at_least"), [(2, 8), (3, 8), (10, 9)])
def test_labels_assigned_at_random_are_found_and_planted_ones_are_not(n_classes, at_least):
    def reasons(encoder, **options):
        tasks = (
            adapted_task([shared(encoder), frozen(ALL)], n_classes, 10, seed=seed, **options) for seed in range(10)
        )
        return [task.fallback_reason for task in tasks if task.fallback_reason is not None]

    found = reasons(SHARP, random_labels=True)
    assert len(found) >= at_least
    assert all("assigned at random (p = 0." in reason for reason in found if "random" in reason)
    assert len(reasons(ALL, spread=0.5)) <= 1


def test_few_shots_are_not_tested_for_chance():
    labels = np.random.default_rng(0).permutation(np.arange(14) % 2)
    texts = planted_texts(np.arange(14) % 2, 12, spread=0.3, seed=0)
    assert why_chance(fit(ALL, texts, labels, 2), texts) is None


def test_the_p_value_of_random_labels_is_uniform_and_that_of_planted_ones_is_the_smallest():
    rng, labels = np.random.default_rng(0), np.arange(24) % 3
    rows = np.eye(6)[labels] + 0.3 * rng.standard_normal((24, 6))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert permutation_p_value(rows @ rows.T, labels, 3, rng) == 1 / 200
    p_values = [permutation_p_value(rows @ rows.T, rng.permutation(labels), 3, rng) for _ in range(100)]
    assert np.mean(np.array(p_values) <= 0.1) == pytest.approx(0.1, abs=0.09)
    assert np.mean(p_values) == pytest.approx(0.5, abs=0.1)
