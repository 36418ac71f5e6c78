"""Answers of several seeds -> means with intervals: over targets and texts by bootstrap, over seeds by Student's t.

A method is run once for each seed; what it answered is a list of `Answered` for each. The bootstrap draws targets,
and texts within them, with replacement; a text that is drawn is drawn for every seed, and for both sides of a
comparison. Instead of texts, the counts of texts that were answered alike are drawn, which is the same and far quicker.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from manymetrics.evaluation.scoring import DRAWS, Answered, Estimate
from manymetrics.values import Floats, Ints

Seeds = Sequence[Sequence[Answered]]  # (seeds, targets)
SCORES = ("accuracy", "balanced_accuracy", "macro_f1")


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
    drawn = np.stack([_redraw(target, rng) for target in zip(*answered, strict=True)])  # (targets, 3, DRAWS)
    means = _draw_targets(drawn, rng)  # (3, DRAWS)
    return {
        score: Estimate(float(np.mean(by_seed(answered, score))), *_middle(means[place]))
        for place, score in enumerate(SCORES)
    }


def gain_in_accuracy(ours: Seeds, theirs: Seeds, *, seed: int = 0) -> Estimate:
    """How much more accurate one method is than another on the same targets and texts."""
    rng = np.random.default_rng(seed)
    gains = [
        _share_right(mine) - _share_right(others)
        for mine, others in zip(zip(*ours, strict=True), zip(*theirs, strict=True), strict=True)
    ]  # of each target: (texts,)
    drawn = np.stack([_redraw_mean(gain, rng) for gain in gains])  # (targets, DRAWS)
    value = float(np.mean([gain.mean() for gain in gains]))
    return Estimate(value, *_middle(_draw_targets(drawn, rng)))


def _share_right(seeds: Sequence[Answered]) -> Floats:
    return np.mean([one.answers == one.labels for one in seeds], axis=0)  # type: ignore[no-any-return]


def _redraw_mean(values: Floats, rng: np.random.Generator) -> Floats:
    distinct, counts = np.unique(values, return_counts=True)
    return rng.multinomial(len(values), counts / len(values), size=DRAWS) @ distinct / len(values)


def _redraw(seeds: Sequence[Answered], rng: np.random.Generator) -> Floats:
    """The three scores of one target, averaged over seeds, for each draw of its texts: (3, DRAWS)."""
    labels = seeds[0].labels
    table = np.stack([labels, *(one.answers for one in seeds)], axis=1)  # (texts, 1 + seeds)
    patterns, counts = np.unique(table, axis=0, return_counts=True)  # (patterns, 1 + seeds), (patterns,)
    drawn = rng.multinomial(len(labels), counts / len(labels), size=DRAWS).astype(np.float64)  # (DRAWS, patterns)
    classes = int(table.max()) + 1
    scores = [_scores(drawn, patterns[:, 0], patterns[:, 1 + place], classes) for place in range(len(seeds))]
    return np.mean(scores, axis=0)  # type: ignore[no-any-return]


def _scores(drawn: Floats, labels: Ints, answers: Ints, classes: int) -> Floats:
    """Accuracy, balanced accuracy and macro-F1 of drawn counts of (label, answer): (3, DRAWS)."""
    one_hot = np.eye(classes)
    truth = drawn @ one_hot[labels]  # (DRAWS, classes): texts of each label
    given = drawn @ one_hot[answers]  # (DRAWS, classes): texts answered so
    right = drawn @ (one_hot[labels] * (labels == answers)[:, None])  # (DRAWS, classes)
    occurs, seen = truth > 0, truth + given > 0
    recall = np.where(occurs, right / np.maximum(truth, 1), 0).sum(axis=1) / occurs.sum(axis=1)
    f1 = np.where(seen, 2 * right / np.maximum(truth + given, 1), 0).sum(axis=1) / seen.sum(axis=1)
    return np.stack([right.sum(axis=1) / drawn.sum(axis=1), recall, f1])


def _draw_targets(drawn: Floats, rng: np.random.Generator) -> Floats:
    """Means over targets drawn with replacement: (targets, ..., DRAWS) -> (..., DRAWS)."""
    chosen = rng.integers(len(drawn), size=(len(drawn), DRAWS))  # (targets, DRAWS)
    return np.mean([drawn[chosen[place], ..., np.arange(DRAWS)] for place in range(len(drawn))], axis=0).T  # type: ignore[no-any-return]


def _middle(draws: Floats) -> tuple[float, float]:
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)
