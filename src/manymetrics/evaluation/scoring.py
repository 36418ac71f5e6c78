"""Answers and right answers -> numbers with intervals.

The mean over tasks is what the paper reports; every mean comes with a 95 % interval by bootstrap. Two kinds: over the
texts of each task with the tasks held fixed ("how sure are we of these tasks?"), and, for a difference between two
methods, over tasks and texts together ("would it hold on other tasks of this sort?").
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from manymetrics.measure.scores import accuracy, balanced_accuracy, macro_f1
from manymetrics.values import Floats, Ints

DRAWS = 1000
Statistic = Callable[[Ints, Ints], float]


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


def mean_over_tasks(answered: Sequence[Answered], statistic: Statistic = accuracy, *, seed: int = 0) -> Estimate:
    """The mean of a statistic over tasks, with the interval that drawing other texts of the same tasks would give."""
    rng = np.random.default_rng(seed)
    draws = np.mean([_redrawn(one, statistic, rng) for one in answered], axis=0)  # (DRAWS,)
    value = float(np.mean([statistic(one.answers, one.labels) for one in answered]))
    return Estimate(value, *_middle(draws))


def paired_gain(ours: Sequence[Answered], theirs: Sequence[Answered], *, seed: int = 0) -> Estimate:
    """How much more accurate one method is than another on the same texts, had other tasks and texts been drawn."""
    rng = np.random.default_rng(seed)
    gains = [
        (mine.answers == mine.labels).astype(float) - (other.answers == other.labels)
        for mine, other in zip(ours, theirs, strict=True)
    ]
    draws = np.stack([gain[rng.integers(len(gain), size=(DRAWS, len(gain)))].mean(axis=1) for gain in gains])
    tasks = rng.integers(len(gains), size=(DRAWS, len(gains)))  # (DRAWS, tasks)
    redrawn = draws[tasks, np.arange(DRAWS)[:, None]].mean(axis=1)  # (DRAWS,)
    return Estimate(float(np.mean([gain.mean() for gain in gains])), *_middle(redrawn))


def _redrawn(one: Answered, statistic: Statistic, rng: np.random.Generator) -> Floats:
    rows = rng.integers(len(one.labels), size=(DRAWS, len(one.labels)))
    if statistic is accuracy:
        return (one.answers == one.labels)[rows].mean(axis=1)  # type: ignore[no-any-return]
    return np.array([statistic(one.answers[row], one.labels[row]) for row in rows])


def _middle(draws: Floats) -> tuple[float, float]:
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)
