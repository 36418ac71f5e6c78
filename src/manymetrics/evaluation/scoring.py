"""Predicted and true labels -> scores with 95 % bootstrap intervals.

Means over tasks have two kinds of intervals: over the texts of each task, with the tasks fixed, and over tasks (or the
sources they come from) and texts together, which also holds for other tasks of the same kind.

Accuracy is resampled over all texts of a task. Balanced accuracy and macro-F1 average over labels, so their texts are
resampled within each label: the number of texts of a label does not change, and none drops out of the average. The
variance of a label with very few texts cannot be estimated from these alone: such labels are resampled together, as
strata are collapsed in survey sampling. The bias of the resampled mean (macro-F1 is not linear) is subtracted.

Scores of the data are scikit-learn's. Those of resampled data are vectorized over draws, because a call of scikit-learn
for each of 1,000 draws takes a second for a task and a score.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manymetrics.values import Bools, Floats, Ints

DRAWS = 1000
BINS = 10  # of confidence
MAX_SAMPLES = 2**22  # texts that are drawn at once, which limits memory
MIN_STRATUM = 5  # texts of a label that is resampled by itself
SCORES = ("accuracy", "balanced_accuracy", "macro_f1")

Sources = Sequence[str] | None  # the source of each task; None: intervals are over texts, or tasks and texts


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """What the interval of a difference shows, in words."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "no difference shown"


@dataclass(frozen=True, eq=False)
class Answered:
    """The labels that a method predicted on a target task."""

    task: str
    answers: Ints  # (texts,): predicted labels
    labels: Ints  # (texts,): true labels
    seconds: float = 0.0

    @property
    def correct(self) -> Bools:
        """Whether each prediction is correct: (texts,)."""
        return self.answers == self.labels  # type: ignore[no-any-return]

    @property
    def accuracy(self) -> float:
        """The share of correct predictions."""
        return float(np.mean(self.correct))

    @property
    def balanced_accuracy(self) -> float:
        """The recall of each label that occurs, averaged."""
        from sklearn.metrics import recall_score  # slow to import; balanced_accuracy_score warns of unseen labels

        occurring = np.unique(self.labels)
        return float(recall_score(self.labels, self.answers, labels=occurring, average="macro", zero_division=0))

    @property
    def macro_f1(self) -> float:
        """The F1 of each label that occurs or was predicted, averaged."""
        from sklearn.metrics import f1_score

        return float(f1_score(self.labels, self.answers, average="macro", zero_division=0))


def means_over_tasks(answered: Sequence[Answered], *, sources: Sources = None) -> dict[str, Estimate]:
    """The mean over tasks of accuracy, balanced accuracy and macro-F1.

    Intervals are over the texts of the tasks; with `sources`, one for each task, over sources and texts.
    """
    rng = np.random.default_rng(0)
    drawn = np.stack([resample_texts([task], rng) for task in answered])  # (tasks, 3, DRAWS)
    means = drawn.mean(axis=0) if sources is None else resample_sources(drawn, sources, rng)  # (3, DRAWS)
    values = [np.mean([getattr(task, score) for task in answered]) for score in SCORES]
    rows = zip(SCORES, values, means, strict=True)
    return {score: Estimate(float(value), *interval(draws)) for score, value, draws in rows}


def paired_gain(ours: Sequence[Answered], theirs: Sequence[Answered], *, sources: Sources = None) -> Estimate:
    """The difference in accuracy on the same texts, with an interval over tasks, or their `sources`, and texts."""
    gains = [mine.correct.astype(float) - other.correct for mine, other in zip(ours, theirs, strict=True)]
    return mean_gain(gains, sources=sources)


def paired_balanced_gain(ours: Sequence[Answered], theirs: Sequence[Answered], *, sources: Sources = None) -> Estimate:
    """The difference in balanced accuracy, with the same kind of interval."""
    rng = np.random.default_rng(0)
    pairs = list(zip(ours, theirs, strict=True))
    drawn = np.stack([np.subtract(*resample_within_labels(pair, rng)[:, 0]) for pair in pairs])  # (tasks, DRAWS)
    value = np.mean([mine.balanced_accuracy - other.balanced_accuracy for mine, other in pairs])
    return Estimate(float(value), *interval(_resample_means(drawn, sources, rng)))


def mean_gain(gains: Sequence[Floats], *, sources: Sources = None, seed: int = 0) -> Estimate:
    """The mean over tasks of a difference on each of their texts, with an interval over tasks or sources and texts."""
    rng = np.random.default_rng(seed)
    drawn = []
    for gain in gains:
        values, counts = np.unique(gain, return_counts=True)  # counts of equal texts instead of texts: the same, faster
        drawn.append(rng.multinomial(len(gain), counts / len(gain), size=DRAWS) @ values / len(gain))
    value = np.mean([gain.mean() for gain in gains])
    return Estimate(float(value), *interval(_resample_means(np.stack(drawn), sources, rng)))


def calibration_error(confidences: Floats, right: Bools) -> Estimate:
    """The expected calibration error over ten bins of confidence, with an interval over texts."""
    bins = np.minimum((confidences * BINS).astype(np.int64), BINS - 1)
    gaps = confidences - right  # (texts,)
    rng = np.random.default_rng(0)
    draws = []
    for count in _batches(len(gaps)):
        rows = rng.integers(len(gaps), size=(count, len(gaps)))  # (draws, texts)
        draws.append(_calibration_errors(bins[rows], gaps[rows]))
    return Estimate(float(_calibration_errors(bins[None], gaps[None])[0]), *interval(np.concatenate(draws)))


def resample_texts(runs: Sequence[Answered], rng: np.random.Generator) -> Floats:
    """The three scores of one task, averaged over several runs, for each draw of its texts: (3, DRAWS)."""
    table = np.stack([runs[0].labels, *(run.answers for run in runs)], axis=1)  # (texts, 1 + runs)
    patterns, counts = np.unique(table, axis=0, return_counts=True)  # (patterns, 1 + runs), (patterns,)
    drawn = rng.multinomial(len(table), counts / len(table), size=DRAWS)  # (DRAWS, patterns)
    correct = (patterns[:, 1:] == patterns[:, :1]).mean(axis=1)  # (patterns,): share of the runs
    by_label = resample_within_labels(runs, rng.spawn(1)[0]).mean(axis=0)  # (2, DRAWS)
    return np.concatenate([(drawn @ correct / len(table))[None], by_label])


def resample_within_labels(runs: Sequence[Answered], rng: np.random.Generator) -> Floats:
    """Balanced accuracy and macro-F1 of each run for each draw of a task's texts within labels: (runs, 2, DRAWS)."""
    order = np.argsort(runs[0].labels, kind="stable")
    strata = _Strata(runs[0].labels[order])
    answers = [run.answers[order] for run in runs]
    parts = []
    for count in _batches(len(order)):
        rows = strata.draw(count, rng)  # (draws, texts)
        parts.append([strata.scores(run, rows) for run in answers])  # (runs, 2, draws)
    drawn = np.concatenate(parts, axis=2)
    observed = np.array([strata.scores(run, np.arange(len(order))[None]) for run in answers])  # (runs, 2, 1)
    return np.clip(drawn - drawn.mean(axis=2, keepdims=True) + observed, 0, 1)  # type: ignore[no-any-return]


def resample_sources(drawn: Floats, sources: Sequence[str], rng: np.random.Generator) -> Floats:
    """Means over the tasks of sources drawn with replacement: (tasks, ..., DRAWS) -> (..., DRAWS)."""
    _, numbers = np.unique(list(sources), return_inverse=True)  # (tasks,)
    sizes = np.bincount(numbers)  # (sources,): tasks of each
    times = rng.multinomial(len(sizes), np.full(len(sizes), 1 / len(sizes)), size=DRAWS)  # (DRAWS, sources)
    total = np.einsum("t...d,dt->...d", drawn, times[:, numbers])  # (..., DRAWS)
    return total / (times @ sizes)  # type: ignore[no-any-return]


def interval(draws: Floats) -> tuple[float, float]:
    """The central 95 % of the draws."""
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)


def _resample_means(drawn: Floats, sources: Sources, rng: np.random.Generator) -> Floats:
    """Means over tasks or sources drawn with replacement: (tasks, DRAWS) -> (DRAWS,)."""
    if sources is not None:
        return resample_sources(drawn, sources, rng)
    chosen = rng.integers(len(drawn), size=drawn.shape)  # (tasks, DRAWS)
    return np.take_along_axis(drawn, chosen, axis=0).mean(axis=0)  # type: ignore[no-any-return]


def _batches(texts: int) -> list[int]:
    """Numbers of draws of so many texts that fit into memory; their sum is `DRAWS`."""
    size = max(1, MAX_SAMPLES // texts)
    return [min(size, DRAWS - start) for start in range(0, DRAWS, size)]


def _calibration_errors(bins: Ints, gaps: Floats) -> Floats:
    """The calibration error of each draw: (draws, texts) each -> (draws,)."""
    cells = bins + BINS * np.arange(len(bins))[:, None]
    sums = np.bincount(cells.ravel(), weights=gaps.ravel(), minlength=BINS * len(bins))
    return np.abs(sums.reshape(len(bins), BINS)).sum(axis=1) / bins.shape[1]  # type: ignore[no-any-return]


class _Strata:
    """The texts of a task, ordered by label, to be resampled within labels.

    Rare labels are resampled together; a single rare one is joined by the next in size.
    """

    def __init__(self, ordered: Ints) -> None:
        self.labels, self.sizes = np.unique(ordered, return_counts=True)  # (labels,) each
        self.starts = np.cumsum(self.sizes) - self.sizes
        count = int((self.sizes < MIN_STRATUM).sum())
        self.rare = np.argsort(self.sizes, kind="stable")[: max(2, count) if count else 0]  # indices of labels
        self.rare_texts = np.flatnonzero(np.isin(ordered, self.labels[self.rare]))
        self.texts = ordered  # (texts,): their labels

    def draw(self, draws: int, rng: np.random.Generator) -> Ints:
        """For each draw and text, a text of the same label, or of any rare label if its own is rare: (draws, texts)."""
        uniform = rng.random((draws, len(self.texts)), dtype=np.float32)
        rows = (uniform * np.repeat(self.sizes, self.sizes)).astype(np.int64) + np.repeat(self.starts, self.sizes)
        if len(self.rare):
            columns = self.rare_texts
            label = self.rare[rng.integers(len(self.rare), size=(draws, len(columns)))]
            rows[:, columns] = self.starts[label] + rng.integers(self.sizes[label])
        return rows

    def scores(self, answers: Ints, rows: Ints) -> Floats:
        """Balanced accuracy and macro-F1 if each text gets the prediction of the text in its row: (2, draws).

        Between texts of different labels, a correct prediction stays correct, and a wrong one stays wrong: where it is
        the label of the text itself, it becomes the label of the drawn text.
        """
        labels, columns = self.texts, self.rare_texts
        drawn = answers[rows]  # (draws, texts)
        true, drawn_true, predicted = labels[columns], labels[rows[:, columns]], drawn[:, columns]
        drawn[:, columns] = np.where(predicted == drawn_true, true, np.where(predicted == true, drawn_true, predicted))
        classes = int(max(labels[-1], answers.max())) + 1
        hits = np.add.reduceat(drawn == labels, self.starts, axis=1, dtype=np.int64)  # (draws, labels)
        cells = classes * np.arange(len(rows))[:, None] + drawn
        given = np.bincount(cells.ravel(), minlength=len(rows) * classes).reshape(-1, classes)  # (draws, classes)
        f1 = 2 * hits / (self.sizes + given[:, self.labels])  # 0 for predicted labels that do not occur
        seen = len(np.union1d(labels, answers))
        return np.stack([(hits / self.sizes).mean(axis=1), f1.sum(axis=1) / seen])
