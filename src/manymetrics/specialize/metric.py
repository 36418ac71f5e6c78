"""A metric: an encoder and a rule that turn a few labelled examples and a text into P(y | x).

    matching       eqn:base_mnet: a softmax over the examples, summed by label
    prototypical   eqn:base_protonet: a softmax over the labels' mean examples
    with a head    a classifier learned over one label set; a task with other labels is compared by prototypes

A metric learns from examples into a `FittedMetric`. Its `probabilities` are P(y | x) of new texts, (texts, classes);
its `answer_examples` are those of the examples, each as if it had been left out, NaN where its label would be empty.
The published mix is fitted on the second.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import softmax

from manymetrics.encode.encoder import EmbeddedTexts, Encoder, dense, require_finite
from manymetrics.encode.representation import START_TEMPERATURE, Fitted
from manymetrics.encode.settings import MATCHING, PROTOTYPICAL
from manymetrics.errors import DataError
from manymetrics.measure.heads import Head
from manymetrics.values import Bools, Floats, Ints

LEARNED, LINEAR, TUNED, FROZEN, OWN = "learned", "linear", "tuned", "frozen", "own"
MIN_SHARE = 1e-9  # of a label among the texts of tasks that share it
ROWS_AT_ONCE = 1024  # examples compared with all others at a time, which keeps memory linear


@dataclass(frozen=True, eq=False)
class LabelHead:
    """A classifier over the labels that some tasks share."""

    head: Head
    labels: tuple[str, ...]
    prior: Floats  # (labels,): how common each label is in these tasks

    def __post_init__(self) -> None:
        for part, tensor in (("head", self.head.weights), ("head", self.head.offset), ("prior", self.prior)):
            require_finite(tensor, f"the {part} of a classifier over shared labels")
        weights, n_labels = self.head.weights, len(self.labels)
        if weights.ndim != 2 or not weights.shape[1:] == self.head.offset.shape == self.prior.shape == (n_labels,):
            raise DataError(f"The head of a classifier over the labels {self.labels} does not fit them.")
        if not (self.prior >= MIN_SHARE).all() or len(set(self.labels)) < n_labels:
            raise DataError(f"Of the labels {self.labels}, one has no share or occurs twice.")

    @classmethod
    def of(cls, fitted: Fitted) -> "LabelHead":
        """The classifier among the tensors of a trained state."""
        tensors = fitted.tensors
        return cls(Head(tensors["head"], tensors["offset"]), fitted.classes, tensors["prior"])

    def in_order(self, classes: Sequence[str]) -> "LabelHead":
        """The same with the labels in another order."""
        columns = [self.labels.index(label) for label in classes]
        head = Head(self.head.weights[:, columns], self.head.offset[columns])
        return LabelHead(head, tuple(classes), self.prior[columns])


@dataclass(frozen=True, eq=False, repr=False)
class Metric:
    """Cosines in an encoder's space, times a temperature, through a softmax; or a classifier over shared labels."""

    name: str  # in a task's weights
    kind: str  # how it came about: learned, linear, tuned, frozen
    encoder: Encoder
    rule: str = PROTOTYPICAL
    temperature: float = START_TEMPERATURE
    tasks: tuple[str, ...] = ()  # of the bank, whose labels it was learned from
    cluster: int | None = None  # the number of its cluster; None where it is of no single one
    shared: LabelHead | None = None
    share: float = 1.0  # of its cluster's weight

    def __post_init__(self) -> None:
        if self.rule not in (MATCHING, PROTOTYPICAL):
            raise DataError(f"The metric {self.name!r} has the rule {self.rule!r}. Use {MATCHING} or {PROTOTYPICAL}.")
        if not 0 < self.temperature < 1e6:
            raise DataError(f"The metric {self.name!r} has the temperature {self.temperature}. Use one from 0 to 1e6.")
        if not 0 < self.share <= 1:
            raise DataError(f"The metric {self.name!r} has the share {self.share}. Use one from 0 to 1.")

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its classifier; none where it has none."""
        return () if self.shared is None else self.shared.labels

    def learn(self, examples: EmbeddedTexts, labels: Ints, classes: tuple[str, ...]) -> "FittedMetric":
        """Take in the examples of a task: labels (examples,) are indices into `classes`.

        For the labels of its classifier this is the classifier as it is, whatever the examples.
        """
        if self.shared is not None and set(classes) == set(self.labels):
            return _Classifier(self.encoder, self.shared.in_order(classes).head)
        compare = _Matching if self.rule == MATCHING else _Prototypes
        return compare(self, examples, labels, len(classes))

    def __repr__(self) -> str:
        cluster = "" if self.cluster is None else f", cluster {self.cluster}"
        about = f"{self.kind}{cluster}, {len(self.tasks)} tasks, {self.encoder!r}"
        return f"<Metric {self.name!r}: {about}>"


@dataclass(frozen=True)
class _Classifier:
    """A classifier that was trained on none of the examples, so each is left out as it is."""

    encoder: Encoder
    head: Head

    def probabilities(self, features: EmbeddedTexts) -> Floats:
        return self.head.probabilities(features.rows(self.encoder))

    answer_examples = probabilities


class _Prototypes:
    """eqn:base_protonet with the mean direction of each label's examples."""

    def __init__(self, metric: Metric, examples: EmbeddedTexts, labels: Ints, n_classes: int) -> None:
        self._metric, self._labels, self._rows = metric, labels, examples.rows(metric.encoder, unit=True)
        one_hot = np.eye(n_classes, dtype=np.float32)[labels]  # (examples, classes)
        self._sums = self._rows.T @ (sparse.csr_array(one_hot) if sparse.issparse(self._rows) else one_hot)
        self._lengths = np.sqrt(np.asarray((self._sums * self._sums).sum(axis=0)).ravel())  # (classes,)

    def probabilities(self, features: EmbeddedTexts) -> Floats:
        dots = dense(features.rows(self._metric.encoder, unit=True) @ self._sums)  # (texts, classes)
        return _softmax(self._metric.temperature * dots / np.maximum(self._lengths, 1e-9))

    def answer_examples(self, examples: EmbeddedTexts) -> Floats:
        """Taking x out of its label's sum s leaves s - x, whose products follow from those of s: no second encoding."""
        dots = dense(self._rows @ self._sums)  # (examples, classes)
        own_label = np.arange(len(self._labels)), self._labels
        cosines = dots / np.maximum(self._lengths, 1e-9)
        sizes = np.asarray((self._rows * self._rows).sum(axis=1)).ravel()  # (examples,): 1, or 0 for an empty row
        left = np.sqrt(np.maximum(self._lengths[self._labels] ** 2 - 2 * dots[own_label] + sizes, 0))
        nowhere = left < 1e-3 * self._lengths[self._labels]  # what is left is rounding, and points in no direction
        cosines[own_label] = np.where(nowhere, 0, (dots[own_label] - sizes) / np.maximum(left, 1e-9))
        probabilities = _softmax(self._metric.temperature * cosines)
        probabilities[only_examples(self._labels)] = np.nan
        return probabilities


class _Matching:
    """eqn:base_mnet: every example adds to its label, the nearer the more."""

    def __init__(self, metric: Metric, examples: EmbeddedTexts, labels: Ints, n_classes: int) -> None:
        self._metric, self._labels, self._rows = metric, labels, examples.rows(metric.encoder, unit=True)
        self._one_hot = np.eye(n_classes, dtype=np.float32)[labels]  # (examples, classes)

    def probabilities(self, features: EmbeddedTexts) -> Floats:
        return self._sum_by_label(dense(features.rows(self._metric.encoder, unit=True) @ self._rows.T))

    def answer_examples(self, examples: EmbeddedTexts) -> Floats:
        only, probabilities = only_examples(self._labels), np.zeros(self._one_hot.shape)
        for at, cosines in _cosines_with_others(self._rows):
            rows = slice(at, at + len(cosines))
            cosines[only[rows]] = 0  # answered with NaN below; keeps one from an empty softmax
            probabilities[rows] = self._sum_by_label(cosines)
        probabilities[only] = np.nan
        return probabilities

    def _sum_by_label(self, cosines: Floats) -> Floats:
        return _softmax(self._metric.temperature * cosines) @ self._one_hot


FittedMetric = _Classifier | _Prototypes | _Matching


def nearest_others(rows: Any) -> Floats:
    """The cosine of each row with the nearest other row: (rows,); 0 for a row that is the only one."""
    largest = np.zeros(rows.shape[0])
    for at, cosines in _cosines_with_others(rows):
        largest[at : at + len(cosines)] = cosines.max(axis=1)
    return np.where(np.isfinite(largest), largest, 0)


def _cosines_with_others(rows: Any) -> Iterator[tuple[int, Floats]]:
    """ROWS_AT_ONCE rows at a time: the first one's index, and the cosines with all rows, -inf with a row itself."""
    for at in range(0, rows.shape[0], ROWS_AT_ONCE):
        cosines = dense(rows[at : at + ROWS_AT_ONCE] @ rows.T)  # (some, rows)
        some = np.arange(len(cosines))
        cosines[some, at + some] = -np.inf
        yield at, cosines


def only_examples(labels: Ints) -> Bools:
    """Which examples are the only ones of their label: (examples,)."""
    return np.bincount(labels)[labels] == 1  # type: ignore[no-any-return]


def _softmax(logits: Floats) -> Floats:
    return softmax(logits.astype(np.float64), axis=1)  # type: ignore[no-any-return]
