"""Means over tasks and paired gains: known answers, and intervals with the right coverage."""

from functools import partial

import numpy as np
import pytest
from sklearn import metrics

from manymetrics.evaluation.scoring import SCORES, Answered, means_over_tasks, paired_balanced_gain, paired_gain


def answered(right, texts):
    """A task with two alternating labels, of which the first `right` texts are predicted correctly."""
    labels = np.arange(texts) % 2
    return Answered("t", np.where(np.arange(texts) < right, labels, 1 - labels), labels)


def rare_labels(rng):
    """A task of 20 labels, of which most have one to three texts and a low recall; and these recalls."""
    sizes = np.maximum(1, np.round(60 / np.arange(1, 21) ** 1.5)).astype(int)
    recalls = np.linspace(0.9, 0.3, 20)
    labels = np.repeat(np.arange(20), sizes)
    right = rng.random(len(labels)) < recalls[labels]
    wrong = (labels + rng.integers(1, 20, size=len(labels))) % 20
    return Answered("t", np.where(right, labels, wrong), labels), recalls


def test_a_predicted_label_that_does_not_occur_counts_in_f1_but_not_in_balanced_accuracy(recwarn):
    task = Answered("t", np.array([0, 2, 1, 1]), np.array([0, 0, 1, 1]))
    assert task.accuracy == task.balanced_accuracy == 0.75
    assert task.macro_f1 == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert not recwarn


def test_the_mean_is_over_tasks_of_any_size():
    mean = means_over_tasks([answered(10, 10), answered(0, 1000)])["accuracy"]
    assert (mean.value, mean.low, mean.high) == (0.5, 0.5, 0.5)  # the texts of each task do not differ


def test_intervals_contain_their_own_estimate_where_labels_are_rare():
    rng = np.random.default_rng(0)
    tasks = [rare_labels(rng)[0] for _ in range(15)]
    constant = [Answered("t", np.zeros(len(task.labels), dtype=np.int64), task.labels) for task in tasks]
    for answers in (tasks, constant, tasks[:1]):
        for sources in (None, [str(number % 7) for number in range(len(answers))]):
            for score, mean in means_over_tasks(answers, sources=sources).items():
                assert mean.low - 1e-9 <= mean.value <= mean.high + 1e-9, (score, mean)


def test_intervals_over_texts_have_the_right_coverage():
    rng = np.random.default_rng(1)
    draws = [rare_labels(rng) for _ in range(200)]
    expected_f1 = np.mean([rare_labels(rng)[0].macro_f1 for _ in range(2000)])
    covered = dict.fromkeys(SCORES, 0)
    for task, recalls in draws:
        means = means_over_tasks([task])
        for score, truth in (("balanced_accuracy", recalls.mean()), ("macro_f1", expected_f1)):
            covered[score] += means[score].low <= truth <= means[score].high
    assert 0.90 <= covered["balanced_accuracy"] / len(draws) <= 0.99
    assert 0.90 <= covered["macro_f1"] / len(draws) <= 0.99


def test_intervals_are_those_of_resampled_texts_scored_by_scikit_learn():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=200)
    task = Answered("t", np.where(np.arange(200) < 150, labels, (labels + 1) % 3), labels)
    rows = rng.integers(200, size=(500, 200))
    f1_score = partial(metrics.f1_score, average="macro")
    scorers = (metrics.accuracy_score, metrics.balanced_accuracy_score, f1_score)
    for score, scorer in zip(SCORES, scorers, strict=True):
        low, high = np.quantile([scorer(labels[row], task.answers[row]) for row in rows], [0.025, 0.975])
        mean = means_over_tasks([task])[score]
        assert mean.value == pytest.approx(getattr(task, score)) == pytest.approx(scorer(labels, task.answers))
        assert (mean.low, mean.high) == pytest.approx((low, high), abs=0.015)


def test_sources_that_differ_widen_the_interval_and_tasks_of_one_source_count_together():
    tasks = [answered(95 if source in "ab" else 55, 100) for source in "aabbccdd"]
    fixed = means_over_tasks(tasks)["accuracy"]
    separate = means_over_tasks(tasks, sources="stuvwxyz")["accuracy"]
    joint = means_over_tasks(tasks, sources="aabbccdd")["accuracy"]
    assert fixed.value == separate.value == joint.value == pytest.approx(0.75)
    assert fixed.high - fixed.low < (separate.high - separate.low) / 2
    assert separate.high - separate.low < joint.high - joint.low


def test_a_gain_is_the_mean_difference_on_the_same_texts():
    ours, theirs = [answered(9, 10), answered(50, 100)], [answered(5, 10), answered(50, 100)]
    assert paired_gain(ours, theirs).value == pytest.approx(0.2)
    assert paired_gain(theirs, ours).value == pytest.approx(-0.2)
    same = paired_gain(ours, ours)
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_a_gain_on_one_of_many_tasks_is_not_significant_and_a_gain_on_all_is():
    base = [answered(50, 100) for _ in range(8)]
    assert paired_gain([answered(90, 100), *base[1:]], base).low <= 0.01
    assert paired_gain([answered(70, 100) for _ in range(8)], base).low > 0.1


def test_a_gain_in_balanced_accuracy_weights_labels_equally_and_is_paired():
    labels = np.array([0] * 90 + [1] * 10)
    ours = [Answered("t", labels, labels)] * 4
    theirs = [Answered("t", np.zeros(100, dtype=np.int64), labels)] * 4
    assert paired_gain(ours, theirs).value == pytest.approx(0.1)
    gain = paired_balanced_gain(ours, theirs)
    assert (gain.value, gain.low) == pytest.approx((0.5, gain.high))
    first, second = (rare_labels(np.random.default_rng(seed))[0] for seed in (0, 5))
    gain = paired_balanced_gain([first], [second])
    assert gain.low < gain.value < gain.high
    same = paired_balanced_gain(theirs, theirs, sources="aabb")
    assert (same.value, same.low, same.high) == (0, 0, 0)
