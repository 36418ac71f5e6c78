"""A metric: anything that turns a few labelled examples and a text into P(y | x).

    SimilarityMetric    compares the text with the examples in an encoder's space, by one of two rules:
                        matching (eqn:base_mnet): a softmax over the examples, summed by label
                        prototypical (eqn:base_protonet): a softmax over the labels' mean examples
    SharedLabelMetric   a classifier learned over one label set; a task with other labels is compared by prototypes

A metric learns from examples into a `FittedMetric`, which answers two questions: P(y | x) for new texts, and P(y | x)
for each of its own examples had that one been left out. The second is what the mix is fitted on: an example compared
with itself would flatter every metric.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.special import softmax

from manymetrics.encode.encoder import Encoder, Features
from manymetrics.encode.settings import MATCHING, PROTOTYPICAL
from manymetrics.errors import DataError
from manymetrics.measure.heads import Head
from manymetrics.values import Bools, Floats, Ints

SHARED_LABEL = "shared-label"
LEARNED, LINEAR, TUNED, FROZEN, LEXICAL = "learned", "linear", "tuned", "frozen", "lexical"
PHRASES = "phrases"  # linear ones over phrases, beside those over the rows of a sentence encoder
OTHER_LABELS_TEMPERATURE = 10.0  # of a classifier's encoder that meets other labels
ROWS_AT_ONCE = 1024  # examples compared with all others at a time, which keeps memory linear


class FittedMetric(Protocol):
    """A metric that knows its examples."""

    def probabilities(self, features: Features) -> Floats:
        """P(y | x) for each text: (texts, classes)."""

    def leave_one_out(self) -> Floats:
        """P(y | x) for each example had it not been given: (examples, classes); NaN where its label would be empty."""


class Metric(Protocol):
    """What the mix is made of."""

    @property
    def name(self) -> str:
        """What it is called in a task's weights."""

    @property
    def kind(self) -> str:
        """How it came about: learned, linear, tuned, frozen, lexical."""

    @property
    def encoder(self) -> Encoder:
        """What it compares texts with."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of the bank whose labels it was learned from; none where it learned nothing from labels."""

    @property
    def cluster(self) -> int | None:
        """The number of the cluster it speaks for; None where it speaks for no single one."""

    def learn(self, examples: Features, labels: Ints, classes: tuple[str, ...]) -> FittedMetric:
        """Take in the examples of a task: labels (examples,) are places in `classes`."""


@dataclass(frozen=True, eq=False)
class SimilarityMetric:
    """Cosines in an encoder's space, times a temperature, through a softmax."""

    name: str
    kind: str
    encoder: Encoder
    rule: str
    temperature: float
    tasks: tuple[str, ...] = ()
    cluster: int | None = None

    def __post_init__(self) -> None:
        if self.rule not in (MATCHING, PROTOTYPICAL):
            raise DataError(f"The metric {self.name!r} has the rule {self.rule!r}. Use {MATCHING} or {PROTOTYPICAL}.")
        if not 0 < self.temperature < 1e6:
            raise DataError(f"The metric {self.name!r} has the temperature {self.temperature}. Use one from 0 to 1e6.")

    def learn(self, examples: Features, labels: Ints, classes: tuple[str, ...]) -> FittedMetric:
        """Encode the examples and keep what the rule needs."""
        compare = _Matching if self.rule == MATCHING else _Prototypes
        return compare(self.encoder, self.temperature, examples, labels, len(classes))


@dataclass(frozen=True, eq=False)
class SharedLabelMetric:
    """A classifier over the labels that all tasks of its cluster share."""

    name: str
    kind: str
    encoder: Encoder
    head: Head
    labels: tuple[str, ...]
    prior: Floats  # (labels,): how common each is in the cluster's tasks
    tasks: tuple[str, ...] = ()
    cluster: int | None = None

    def learn(self, examples: Features, labels: Ints, classes: tuple[str, ...]) -> FittedMetric:
        """For the same labels the classifier as it is, whatever the examples; for others, prototypes."""
        if set(classes) == set(self.labels):
            columns = [self.labels.index(label) for label in classes]
            head = Head(self.head.weights[:, columns], self.head.offset[columns])
            return _Classifier(self.encoder, head, self.prior[columns], examples, labels)
        return _Prototypes(self.encoder, OTHER_LABELS_TEMPERATURE, examples, labels, len(classes))


def base_rate(metric: Metric, classes: tuple[str, ...]) -> Floats:
    """How common a metric takes the labels to be before it sees a text: (classes,).

    As in its tasks, where these share the labels; all alike where the examples alone tell what a label is.
    """
    if isinstance(metric, SharedLabelMetric) and set(classes) == set(metric.labels):
        shares = np.array([metric.prior[metric.labels.index(label)] for label in classes], dtype=np.float64)
        return shares / shares.sum()  # type: ignore[no-any-return]
    return np.full(len(classes), 1 / len(classes))


class _Classifier:
    """A classifier that met none of the examples, so each is left out as it is.

    Examples do not follow the cluster's label frequencies: people pick them label by label. Leave-one-out scores apply
    a label-shift correction, or the metric of a cluster with a rare label would always seem wrong about that label's
    examples; predictions keep the cluster's prior.
    """

    def __init__(self, encoder: Encoder, head: Head, prior: Floats, examples: Features, labels: Ints) -> None:
        self._encoder, self._head = encoder, head
        shares = np.bincount(labels, minlength=len(prior)) / len(labels)  # (classes,)
        shifted = head.probabilities(examples.rows(encoder)) * (shares / prior)  # (examples, classes)
        self._leave_one_out = shifted / shifted.sum(axis=1, keepdims=True)

    def probabilities(self, features: Features) -> Floats:
        return self._head.probabilities(features.rows(self._encoder))

    def leave_one_out(self) -> Floats:
        return self._leave_one_out  # type: ignore[no-any-return]


class _Prototypes:
    """eqn:base_protonet with the mean direction of each label's examples."""

    def __init__(self, encoder: Encoder, temperature: float, examples: Features, labels: Ints, classes: int) -> None:
        self._encoder, self._temperature, self._labels = encoder, temperature, labels
        self._rows = rows = examples.directions(encoder)
        belongs = np.eye(classes, dtype=np.float32)[labels]  # (examples, classes)
        if sparse.issparse(rows):
            belongs = sparse.csr_array(belongs)
        self._sums = rows.T @ belongs  # (features, classes): sparse if the rows are
        self._lengths = np.sqrt(np.asarray((self._sums * self._sums).sum(axis=0)).ravel())  # (classes,)

    def probabilities(self, features: Features) -> Floats:
        dots = dense(features.directions(self._encoder) @ self._sums)  # (texts, classes)
        return _softmax(self._temperature * dots / np.maximum(self._lengths, 1e-9))

    def leave_one_out(self) -> Floats:
        """Taking x out of its label's sum s leaves s - x, whose products follow from those of s: no second encoding."""
        dots = dense(self._rows @ self._sums)  # (examples, classes)
        own = np.arange(len(self._labels)), self._labels
        cosines = dots / np.maximum(self._lengths, 1e-9)
        sizes = np.asarray((self._rows * self._rows).sum(axis=1)).ravel()  # (examples,): 1, or 0 for an empty row
        left = np.sqrt(np.maximum(self._lengths[self._labels] ** 2 - 2 * dots[own] + sizes, 0))
        nowhere = left < 1e-3 * self._lengths[self._labels]  # what is left is rounding, and points in no direction
        cosines[own] = np.where(nowhere, 0, (dots[own] - sizes) / np.maximum(left, 1e-9))
        probabilities = _softmax(self._temperature * cosines)
        probabilities[only_examples(self._labels)] = np.nan
        return probabilities


class _Matching:
    """eqn:base_mnet: every example speaks for its label, the nearer the louder."""

    def __init__(self, encoder: Encoder, temperature: float, examples: Features, labels: Ints, classes: int) -> None:
        self._encoder, self._temperature, self._labels = encoder, temperature, labels
        self._rows = examples.directions(encoder)
        self._belongs = np.eye(classes, dtype=np.float32)[labels]  # (examples, classes)

    def probabilities(self, features: Features) -> Floats:
        return self._sum_by_label(dense(features.directions(self._encoder) @ self._rows.T))

    def leave_one_out(self) -> Floats:
        only = only_examples(self._labels)
        parts = []
        for at in range(0, len(self._labels), ROWS_AT_ONCE):
            cosines = without_themselves(dense(self._rows[at : at + ROWS_AT_ONCE] @ self._rows.T), at)
            cosines[only[at : at + len(cosines)]] = 0  # answered with NaN below; keeps one from an empty softmax
            parts.append(self._sum_by_label(cosines))
        probabilities = np.concatenate(parts)
        probabilities[only] = np.nan
        return probabilities

    def _sum_by_label(self, cosines: Floats) -> Floats:
        return _softmax(self._temperature * cosines) @ self._belongs


def answer_examples(fitted: FittedMetric, examples: Features) -> Floats:
    """P(y | x) for each example, as the paper fits its weights: (examples, classes).

    A classifier met none of them and answers them as it answers texts; others answer each from the others.
    """
    return fitted.probabilities(examples) if isinstance(fitted, _Classifier) else fitted.leave_one_out()


def nearest_others(rows: Any) -> Floats:
    """The cosine of each row with the nearest other row: (rows,); 0 for a row that is the only one."""
    strips = range(0, rows.shape[0], ROWS_AT_ONCE)
    return np.concatenate(
        [nearest(without_themselves(dense(rows[at : at + ROWS_AT_ONCE] @ rows.T), at)) for at in strips]
    )


def nearest(cosines: Floats) -> Floats:
    """The largest cosine of each row; 0 where there is none."""
    largest = cosines.max(axis=1)
    return np.where(np.isfinite(largest), largest, 0)


def without_themselves(cosines: Floats, at: int) -> Floats:
    """Cosines (some, rows), changed in place: -inf where a row, the first of which stands at `at`, meets itself."""
    some = np.arange(len(cosines))
    cosines[some, at + some] = -np.inf
    return cosines


def dense(matrix: Any) -> Floats:
    """A product of rows as an array, whether these were sparse or not."""
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix  # type: ignore[no-any-return]


def only_examples(labels: Ints) -> Bools:
    """Which examples are the only ones of their label: (examples,)."""
    return np.bincount(labels, minlength=labels.max() + 1)[labels] == 1  # type: ignore[no-any-return]


def _softmax(logits: Floats) -> Floats:
    return softmax(logits.astype(np.float64), axis=1)  # type: ignore[no-any-return]
