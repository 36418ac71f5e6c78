"""Answers of several seeds -> means with intervals: over targets and texts by bootstrap, over seeds by Student's t.

A method is run once for each seed; what it answered is a list of `Answered` for each. The bootstrap draws targets,
and texts within them, with replacement; a text that is drawn is drawn for every seed, and for both sides of a
comparison.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from manymetrics.evaluation.scoring import (
    SCORES,
    Answered,
    Estimate,
    mean_gain,
    middle,
    redraw_tasks,
    redraw_texts,
)
from manymetrics.values import Floats

Seeds = Sequence[Sequence[Answered]]  # (seeds, targets)


def by_seed(answered: Seeds, score: str) -> list[float]:
    """The mean of a score over targets, for each seed."""
    return [float(np.mean([getattr(target, score) for target in one])) for one in answered]


def over_seeds(values: Sequence[float]) -> Estimate:
    """The mean of one value for each seed, with Student's 95 % interval; a single seed has no spread to tell."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return Estimate(mean, mean, mean)
    half = float(stdtrit(len(values) - 1, 0.975) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return Estimate(mean, mean - half, mean + half)


def over_targets(answered: Seeds, *, seed: int = 0) -> dict[str, Estimate]:
    """Each score, averaged over targets and seeds, had other targets and other texts of them been drawn."""
    rng = np.random.default_rng(seed)
    drawn = np.stack([redraw_texts(target, rng) for target in zip(*answered, strict=True)])  # (targets, 3, DRAWS)
    means = redraw_tasks(drawn, rng)  # (3, DRAWS)
    return {
        score: Estimate(float(np.mean(by_seed(answered, score))), *middle(means[place]))
        for place, score in enumerate(SCORES)
    }


def gain_in_accuracy(ours: Seeds, theirs: Seeds, *, seed: int = 0) -> Estimate:
    """How much more accurate one method is than another on the same targets and texts."""
    gains = [
        _share_right(mine) - _share_right(others)
        for mine, others in zip(zip(*ours, strict=True), zip(*theirs, strict=True), strict=True)
    ]  # of each target: (texts,)
    return mean_gain(gains, seed=seed)


def _share_right(seeds: Sequence[Answered]) -> Floats:
    return np.mean([one.answers == one.labels for one in seeds], axis=0)  # type: ignore[no-any-return]
