"""Intervals of several seeds: known answers."""

import numpy as np
import pytest
from experiments.intervals import by_seed, gain_in_accuracy, over_seeds, over_targets

from manymetrics.evaluation.scoring import Answered


def answered(task, right, wrong, *, classes=3, seed=0):
    """A target of which so many texts are answered rightly and so many wrongly."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=right + wrong)
    answers = labels.copy()
    answers[right:] = (labels[right:] + 1) % classes
    return Answered(task, answers, labels)


def test_the_mean_of_seeds_has_students_interval():
    found = over_seeds([0.7, 0.8, 0.9])
    half = 4.302652729911275 * 0.1 / np.sqrt(3)  # t at 97.5 % with two degrees of freedom
    assert found.value == pytest.approx(0.8)
    assert (found.low, found.high) == (pytest.approx(0.8 - half), pytest.approx(0.8 + half))
    assert vars(over_seeds([0.7])) == {"value": 0.7, "low": 0.7, "high": 0.7}, "one seed has no interval"


def test_a_gain_is_paired_text_by_text():
    ours, theirs = [[answered("a", 90, 10), answered("b", 60, 40)]], [[answered("a", 80, 20), answered("b", 50, 50)]]
    gain = gain_in_accuracy(ours, theirs, "ab")
    assert gain.value == pytest.approx(0.1)
    assert 0.04 < gain.low < 0.1 < gain.high < 0.16
    assert vars(gain_in_accuracy(ours, ours, "ab")) == {"value": 0, "low": 0, "high": 0}


def test_targets_of_one_source_are_drawn_together():
    seeds = [[answered("a", 8, 2), answered("b", 5, 5)], [answered("a", 6, 4), answered("b", 5, 5)]]
    assert by_seed(seeds, "accuracy") == [pytest.approx(0.65), pytest.approx(0.55)]
    assert over_targets(seeds, "ab")["accuracy"].value == pytest.approx(0.6)
    runs = [[answered(str(at), 45 + 50 * (at % 2), 55 - 50 * (at % 2), seed=at) for at in range(6)]]
    apart, together = (over_targets(runs, sources)["accuracy"] for sources in ("abcdef", "ababab"))
    assert together.high - together.low > 1.2 * (apart.high - apart.low), "two sources tell less than six"
    better = [[answered(str(at), 55 + 40 * (at % 2), 45 - 40 * (at % 2), seed=at) for at in range(6)]]
    assert gain_in_accuracy(better, runs, "ababab").low == pytest.approx(0, abs=0.02), "one of them gains nothing"
