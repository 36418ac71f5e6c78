"""Answers and right answers -> numbers with intervals.

The mean over tasks is what the paper reports; every mean comes with a 95 % interval by bootstrap. Two kinds: over the
texts of each task with the tasks held fixed ("how sure are we of these tasks?"), and over tasks, or the sources they
come from, and texts together ("would it hold on other tasks of this sort?"). Instead of texts, the counts of texts that
were answered alike are drawn, which is the same and far quicker.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manymetrics.measure.scores import accuracy, balanced_accuracy, macro_f1
from manymetrics.values import Bools, Floats, Ints

DRAWS = 1000
BINS = 10  # of confidence
TEXTS_AT_ONCE = 2**22  # that are drawn together, which bounds the memory
SCORES = ("accuracy", "balanced_accuracy", "macro_f1")


@dataclass(frozen=True)
class Estimate:
    """A number and the interval it is believed to lie in."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Answered:
    """What a method answered on one target task."""

    task: str
    answers: Ints  # (texts,)
    labels: Ints  # (texts,): the right answers
    seconds: float = 0.0

    @property
    def accuracy(self) -> float:
        """The share of right answers."""
        return accuracy(self.answers, self.labels)

    @property
    def balanced_accuracy(self) -> float:
        """The share of right answers, each label counting alike."""
        return balanced_accuracy(self.answers, self.labels)

    @property
    def macro_f1(self) -> float:
        """The F1 of each label, averaged."""
        return macro_f1(self.answers, self.labels)


def means_over_tasks(
    answered: Sequence[Answered], *, sources: Sequence[str] | None = None, seed: int = 0
) -> dict[str, Estimate]:
    """Accuracy, balanced accuracy and macro-F1, averaged over tasks.

    With the interval that drawing other texts of the same tasks would give; with `sources`, one for each task, that
    drawing other sources would give, too.
    """
    rng = np.random.default_rng(seed)
    drawn = np.stack([redraw_texts([one], rng) for one in answered])  # (tasks, 3, DRAWS)
    means = drawn.mean(axis=0) if sources is None else redraw_sources(drawn, sources, rng)  # (3, DRAWS)
    values = {score: float(np.mean([getattr(one, score) for one in answered])) for score in SCORES}
    return {score: Estimate(values[score], *middle(means[place])) for place, score in enumerate(SCORES)}


def mean_over_tasks(answered: Sequence[Answered], score: str = "accuracy", *, seed: int = 0) -> Estimate:
    """The mean of one score over tasks, with the interval that drawing other texts of the same tasks would give."""
    return means_over_tasks(answered, seed=seed)[score]


def paired_gain(ours: Sequence[Answered], theirs: Sequence[Answered], *, seed: int = 0) -> Estimate:
    """How much more accurate one method is than another on the same texts, had other tasks and texts been drawn."""
    gains = [
        (mine.answers == mine.labels).astype(float) - (other.answers == other.labels)
        for mine, other in zip(ours, theirs, strict=True)
    ]
    return mean_gain(gains, seed=seed)


def mean_gain(gains: Sequence[Floats], *, sources: Sequence[str] | None = None, seed: int = 0) -> Estimate:
    """The mean over tasks of what is gained on each of their texts, had other tasks and texts been drawn.

    With `sources`, one for each task: had other sources been drawn, and other texts of their tasks.
    """
    rng = np.random.default_rng(seed)
    drawn = np.stack([_redraw_mean(gain, rng) for gain in gains])  # (tasks, DRAWS)
    means = redraw_tasks(drawn, rng) if sources is None else redraw_sources(drawn, sources, rng)  # (DRAWS,)
    return Estimate(float(np.mean([gain.mean() for gain in gains])), *middle(means))


def calibration_error(confidences: Floats, right: Bools, *, seed: int = 0) -> Estimate:
    """The expected calibration error over ten bins of confidence, with a 95 % bootstrap interval over texts."""
    bins = np.minimum((confidences * BINS).astype(np.int64), BINS - 1)
    gaps = confidences - right  # (texts,)
    rng = np.random.default_rng(seed)
    at_once = max(1, TEXTS_AT_ONCE // len(gaps))
    draws = []
    for start in range(0, DRAWS, at_once):
        rows = rng.integers(len(gaps), size=(min(at_once, DRAWS - start), len(gaps)))  # (draws, texts)
        draws.append(_errors(bins[rows], gaps[rows]))
    return Estimate(float(_errors(bins[None], gaps[None])[0]), *middle(np.concatenate(draws)))


def redraw_texts(runs: Sequence[Answered], rng: np.random.Generator) -> Floats:
    """The three scores of one task, averaged over some runs, for each draw of its texts: (3, DRAWS)."""
    labels = runs[0].labels
    table = np.stack([labels, *(one.answers for one in runs)], axis=1)  # (texts, 1 + runs)
    patterns, counts = np.unique(table, axis=0, return_counts=True)  # (patterns, 1 + runs), (patterns,)
    drawn = rng.multinomial(len(labels), counts / len(labels), size=DRAWS).astype(np.float64)  # (DRAWS, patterns)
    classes = int(table.max()) + 1
    scores = [_scores(drawn, patterns[:, 0], patterns[:, 1 + place], classes) for place in range(len(runs))]
    return np.mean(scores, axis=0)  # type: ignore[no-any-return]


def redraw_tasks(drawn: Floats, rng: np.random.Generator) -> Floats:
    """Means over tasks drawn with replacement: (tasks, ..., DRAWS) -> (..., DRAWS)."""
    chosen = rng.integers(len(drawn), size=(len(drawn), DRAWS))  # (tasks, DRAWS)
    return np.mean([drawn[chosen[place], ..., np.arange(DRAWS)] for place in range(len(drawn))], axis=0).T  # type: ignore[no-any-return]


def redraw_sources(drawn: Floats, sources: Sequence[str], rng: np.random.Generator) -> Floats:
    """Means over the tasks of sources drawn with replacement: (tasks, ..., DRAWS) -> (..., DRAWS)."""
    _, numbers = np.unique(list(sources), return_inverse=True)  # (tasks,)
    counts = np.bincount(numbers)  # (sources,): tasks of each
    times = rng.multinomial(len(counts), np.full(len(counts), 1 / len(counts)), size=DRAWS)  # (DRAWS, sources)
    total = np.einsum("t...d,dt->...d", drawn, times[:, numbers])  # (..., DRAWS)
    return total / (times @ counts)  # type: ignore[no-any-return]


def middle(draws: Floats) -> tuple[float, float]:
    """The bounds between which 95 % of the draws lie."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)


def _redraw_mean(values: Floats, rng: np.random.Generator) -> Floats:
    distinct, counts = np.unique(values, return_counts=True)
    return rng.multinomial(len(values), counts / len(values), size=DRAWS) @ distinct / len(values)


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


def _errors(bins: Ints, gaps: Floats) -> Floats:
    """The calibration error of each row of texts: (draws, texts) each -> (draws,)."""
    places = bins + BINS * np.arange(len(bins))[:, None]
    sums = np.bincount(places.ravel(), weights=gaps.ravel(), minlength=BINS * len(bins))
    return np.abs(sums.reshape(len(bins), BINS)).sum(axis=1) / bins.shape[1]  # type: ignore[no-any-return]
