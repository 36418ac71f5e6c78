"""Answers of several seeds -> means with intervals: over sources and texts by bootstrap, over seeds by Student's t.

A method is run once for each seed; what it answered is a list of `Answered` for each. The bootstrap draws sources with
all their targets, and texts within targets, with replacement; a text that is drawn is drawn for every seed, and for
both sides of a comparison. Targets of one source share what makes it easy or hard, so they are not drawn apart.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import stdtrit

from manymetrics.evaluation.scoring import (
    DRAWS,
    SCORES,
    Answered,
    Estimate,
    interval,
    mean_gain,
    resample_sources,
    resample_texts,
)
from manymetrics.values import Floats

Seeds = Sequence[Sequence[Answered]]  # (seeds, targets)


def by_seed(answered: Seeds, score: str) -> list[float]:
    """The mean of a score over targets, for each seed."""
    return [float(np.mean([getattr(target, score) for target in one])) for one in answered]


def balanced_accuracy(answered: Seeds) -> float:
    """The mean balanced accuracy over targets and seeds."""
    return float(np.mean(by_seed(answered, "balanced_accuracy")))


def over_seeds(values: Sequence[float]) -> Estimate:
    """The mean of one value for each seed, with Student's 95 % interval; a single seed has no spread to tell."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return Estimate(mean, mean, mean)
    half = float(stdtrit(len(values) - 1, 0.975) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return Estimate(mean, mean - half, mean + half)


def over_targets(answered: Seeds, sources: Sequence[str], *, seed: int = 0) -> dict[str, Estimate]:
    """Each score, averaged over targets and seeds, had other sources and other texts of their targets been drawn."""
    rng = np.random.default_rng(seed)
    drawn = np.stack([resample_texts(target, rng) for target in zip(*answered, strict=True)])  # (targets, 3, DRAWS)
    means = resample_sources(drawn, sources, rng)  # (3, DRAWS)
    return {
        score: Estimate(float(np.mean(by_seed(answered, score))), *interval(means[place]))
        for place, score in enumerate(SCORES)
    }


def over_groups(values: Mapping[str, float], groups: Mapping[str, str]) -> dict[str, float] | None:
    """The mean of one value for each task, had other groups of tasks been drawn; None of no tasks."""
    if not values:
        return None
    each = np.array(list(values.values()))
    drawn = np.repeat(each[:, None], DRAWS, axis=1)  # (tasks, DRAWS)
    means = resample_sources(drawn, [groups[task] for task in values], np.random.default_rng(0))
    return vars(Estimate(float(each.mean()), *interval(means)))


def scores(answered: Seeds, sources: Sequence[str]) -> dict[str, Any]:
    """The mean accuracy over targets and seeds with its interval, and the mean balanced accuracy."""
    accuracy = mean_gain(shares_correct(answered), sources=sources)
    return {"accuracy": vars(accuracy), "balanced_accuracy": balanced_accuracy(answered)}


def gain_in_accuracy(ours: Seeds, theirs: Seeds, sources: Sequence[str], *, seed: int = 0) -> Estimate:
    """How much more accurate one method is than another on the same targets and texts."""
    gains = [mine - others for mine, others in zip(shares_correct(ours), shares_correct(theirs), strict=True)]
    return mean_gain(gains, sources=sources, seed=seed)


def shares_correct(answered: Seeds) -> list[Floats]:
    """Of each target, the share of seeds that answered each text correctly: (texts,)."""
    return [np.mean([one.answers == one.labels for one in target], axis=0) for target in zip(*answered, strict=True)]
