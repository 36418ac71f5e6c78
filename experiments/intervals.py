"""Answers of several seeds -> means with intervals: over sources and texts by bootstrap, over seeds by Student's t.

A method is run once for each seed; what it answered is a list of `Answered` for each. The bootstrap draws sources with
all their targets, and texts within targets, with replacement; a text that is drawn is drawn for every seed, and for
both sides of a comparison. Targets of one source share what makes it easy or hard, so they are not drawn apart.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from manymetrics.evaluation.scoring import (
    SCORES,
    Answered,
    Estimate,
    interval,
    mean_gain,
    resample_sources,
    resample_texts,
)
from manymetrics.values import Floats, Task

Seeds = Sequence[Sequence[Answered]]  # (seeds, targets)


def source_of(task: Task) -> str:
    """The product, corpus or repository that a task comes from: the first word of its source."""
    return task.source.partition(" ")[0]


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


def over_targets(answered: Seeds, sources: Sequence[str], *, seed: int = 0) -> dict[str, Estimate]:
    """Each score, averaged over targets and seeds, had other sources and other texts of their targets been drawn."""
    rng = np.random.default_rng(seed)
    drawn = np.stack([resample_texts(target, rng) for target in zip(*answered, strict=True)])  # (targets, 3, DRAWS)
    means = resample_sources(drawn, sources, rng)  # (3, DRAWS)
    return {
        score: Estimate(float(np.mean(by_seed(answered, score))), *interval(means[place]))
        for place, score in enumerate(SCORES)
    }


def gain_in_accuracy(ours: Seeds, theirs: Seeds, sources: Sequence[str], *, seed: int = 0) -> Estimate:
    """How much more accurate one method is than another on the same targets and texts."""
    gains = [mine - others for mine, others in zip(shares_right(ours), shares_right(theirs), strict=True)]
    return mean_gain(gains, sources=sources, seed=seed)


def shares_right(answered: Seeds) -> list[Floats]:
    """Of each target, the share of seeds that answered each text rightly: (texts,)."""
    return [np.mean([one.answers == one.labels for one in target], axis=0) for target in zip(*answered, strict=True)]
