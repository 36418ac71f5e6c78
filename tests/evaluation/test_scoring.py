"""Means over tasks and paired gains: known answers, and intervals that hold them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manymetrics.evaluation.scoring import SCORES, Answered, mean_over_tasks, means_over_tasks, paired_gain
from manymetrics.measure import scores


def answered(right, texts, name="t"):
    """A task of two labels in turn, of which the first `right` texts are answered rightly."""
    labels = np.arange(texts) % 2
    answers = np.where(np.arange(texts) < right, labels, 1 - labels)
    return Answered(name, answers, labels)


def test_the_mean_is_over_tasks_whatever_their_sizes():
    found = mean_over_tasks([answered(10, 10), answered(0, 1000)])
    assert found.value == 0.5
    assert found.low == found.high == 0.5  # nothing is left to chance: every text of each task went the same way


def test_an_answered_task_knows_its_scores():
    one = Answered("t", np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]))
    assert one.accuracy == 0.75
    assert one.balanced_accuracy == 0.75
    assert one.macro_f1 == pytest.approx((4 / 5 + 2 / 3) / 2)


def test_other_statistics_have_intervals_too():
    for score in ("balanced_accuracy", "macro_f1"):
        found = mean_over_tasks([answered(15, 20)], score)
        assert found.low < found.value < found.high


def test_drawing_counts_is_drawing_texts():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=200)
    one = Answered("t", np.where(np.arange(200) < 150, labels, (labels + 1) % 3), labels)
    rows = rng.integers(200, size=(1000, 200))
    for score in SCORES:
        drawn = [getattr(scores, score)(one.answers[row], one.labels[row]) for row in rows]
        low, high = np.quantile(drawn, [0.025, 0.975])
        found = means_over_tasks([one])[score]
        assert found.value == pytest.approx(getattr(one, score))
        assert found.low == pytest.approx(low, abs=0.015)
        assert found.high == pytest.approx(high, abs=0.015)


def test_nothing_is_scored_text_by_text_for_an_interval(monkeypatch):
    counted = []
    for score in SCORES:
        monkeypatch.setattr(f"manymetrics.evaluation.scoring.{score}", lambda *_: counted.append(1) or 0.5)
    means_over_tasks([answered(75, 100) for _ in range(4)])
    assert len(counted) == 4 * len(SCORES), "once for each task and score, not once for each draw"


def test_sources_that_differ_widen_the_interval_and_tasks_of_one_source_count_together():
    tasks = [answered(95 if source in "ab" else 55, 100) for source in "aabbccdd"]
    fixed = means_over_tasks(tasks)["accuracy"]
    apart = means_over_tasks(tasks, sources="stuvwxyz")["accuracy"]
    together = means_over_tasks(tasks, sources="aabbccdd")["accuracy"]
    assert fixed.value == apart.value == together.value == pytest.approx(0.75)
    assert fixed.high - fixed.low < (apart.high - apart.low) / 2
    assert apart.high - apart.low < together.high - together.low


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=5))
def test_intervals_hold_their_values(pairs):
    ours, theirs = ([answered(right, 40) for right in rights] for rights in zip(*pairs, strict=True))
    for found in (mean_over_tasks(ours), paired_gain(ours, theirs)):
        assert found.low - 1e-9 <= found.value <= found.high + 1e-9


def test_more_texts_make_a_narrower_interval():
    few, many = (mean_over_tasks([answered(3 * texts // 4, texts)]) for texts in (20, 2000))
    assert many.high - many.low < (few.high - few.low) / 5
    assert few.value == many.value == 0.75


def test_the_interval_is_the_binomial_one():
    found = mean_over_tasks([answered(750, 1000)])
    half = 1.96 * np.sqrt(0.75 * 0.25 / 1000)
    assert found.low == pytest.approx(0.75 - half, abs=0.005)
    assert found.high == pytest.approx(0.75 + half, abs=0.005)


def test_a_gain_is_the_mean_difference_on_the_same_texts():
    ours, theirs = [answered(9, 10), answered(50, 100)], [answered(5, 10), answered(50, 100)]
    assert paired_gain(ours, theirs).value == pytest.approx(0.2)
    assert paired_gain(theirs, ours).value == pytest.approx(-0.2)


def test_no_difference_is_surely_none():
    same = [answered(7, 10), answered(3, 10)]
    found = paired_gain(same, same)
    assert (found.value, found.low, found.high) == (0, 0, 0)


def test_a_gain_on_one_of_many_tasks_is_not_sure_and_a_gain_on_all_is():
    base = [answered(50, 100) for _ in range(8)]
    once = [answered(90, 100), *base[1:]]
    always = [answered(70, 100) for _ in range(8)]
    assert paired_gain(once, base).low <= 0.01
    assert paired_gain(always, base).low > 0.1


def test_the_same_seed_draws_the_same_interval():
    tasks = [answered(7, 20)]
    assert mean_over_tasks(tasks) == mean_over_tasks(tasks)
    assert mean_over_tasks(tasks, seed=1) != mean_over_tasks(tasks)
