"""A metric: anything that turns a few labelled examples and a text into P(y | x).

    SimilarityMetric    compares the text with the examples in an encoder's space, by one of two rules:
                        matching (eqn:base_mnet): a softmax over the examples, summed by label
                        prototypical (eqn:base_protonet): a softmax over the labels' mean examples
    SharedLabelMetric   a classifier learned over one label set; a task with other labels is compared by prototypes

A metric learns from examples into a `Fitted`, which answers two questions: P(y | x) for new texts, and P(y | x) for
each of its own examples as though that one were not there. The second is what the mix is fitted on: an example compared
with itself would flatter every metric.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.special import softmax

from manymetrics.encode.encoders import ConvolutionEncoder, unit_rows
from manymetrics.encode.phrases import PhraseEncoder
from manymetrics.encode.settings import MATCHING
from manymetrics.encode.tokens import Tokens
from manymetrics.measure.heads import Head
from manymetrics.values import Bools, Floats, Ints

SHARED_LABEL = "shared-label"
LEARNED, LINEAR, TUNED, FROZEN, LEXICAL = "learned", "linear", "tuned", "frozen", "lexical"
OTHER_LABELS_TEMPERATURE = 10.0  # of a classifier's encoder that meets other labels
ROWS_AT_ONCE = 1024  # examples compared with all others at a time, which keeps memory linear


_NETWORK, _PHRASES = "cluster-", "phrases-"
COMMON_LINEAR_METRIC = "phrases"  # the name of the linear metric that all clusters have in common


def cluster_metric(number: int) -> str:
    """The name of a cluster's metric."""
    return f"{_NETWORK}{number}"


def linear_metric(number: int) -> str:
    """The name of a cluster's linear metric."""
    return f"{_PHRASES}{number}"


def voice(name: str) -> str:
    """Who a metric speaks for: its cluster, by the name of that cluster's metric, or itself where it has none."""
    return f"{_NETWORK}{name.removeprefix(_PHRASES)}" if name.startswith(_PHRASES) else name


class Encoder(Protocol):
    """Texts in, rows of length one out; dense or sparse."""

    def encode(self, tokens: Tokens) -> Any:
        """One row for each text."""


class Fitted(Protocol):
    """A metric that knows its examples."""

    def chances(self, tokens: Tokens) -> Floats:
        """P(y | x) for each text: (texts, classes)."""

    def chances_left_out(self) -> Floats:
        """P(y | x) for each example had it not been given: (examples, classes); NaN where its label would be empty."""

    def compare(self, tokens: Tokens, among: Ints | None = None) -> tuple[Floats, Floats]:
        """P(y | x) and the cosine with every example, or with some: (texts, classes), (texts, examples)."""

    def own_cosines(self, among: Ints) -> Floats:
        """The cosine of every example with some of them: (examples, among)."""

    def likest_left_out(self) -> Floats:
        """The cosine of each example with the likest of the others: (examples,)."""


class Metric(Protocol):
    """What the mix is made of."""

    @property
    def name(self) -> str:
        """What it is called in a task's weights."""

    @property
    def kind(self) -> str:
        """How it came about: learned, linear, tuned, frozen, lexical."""

    @property
    def encoder(self) -> Any:
        """What it compares texts with."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of the bank it was learned from."""

    def learn(self, tokens: Tokens, labels: Ints, classes: tuple[str, ...]) -> Fitted:
        """Take in the examples of a task: labels (examples,) are places in `classes`."""


@dataclass(frozen=True, eq=False)
class SimilarityMetric:
    """Cosines in an encoder's space, times a temperature, through a softmax."""

    name: str
    kind: str
    encoder: Any  # ConvolutionEncoder, MeanEncoder or LexicalEncoder
    rule: str
    temperature: float
    tasks: tuple[str, ...] = ()  # of the bank, that it was learned from

    def learn(self, tokens: Tokens, labels: Ints, classes: tuple[str, ...]) -> Fitted:
        """Encode the examples and keep what the rule needs."""
        rows = self.encoder.encode(tokens)
        if self.rule == MATCHING:
            return _Matching(self.encoder, self.temperature, rows, labels, len(classes))
        return _Prototypes(self.encoder, self.temperature, rows, labels, len(classes))


@dataclass(frozen=True, eq=False)
class SharedLabelMetric:
    """A classifier over the labels that all tasks of its cluster share."""

    name: str
    kind: str
    encoder: ConvolutionEncoder | PhraseEncoder
    head: Head
    labels: tuple[str, ...]
    prior: Floats  # (labels,): how common each is in the cluster's tasks
    tasks: tuple[str, ...] = ()

    def learn(self, tokens: Tokens, labels: Ints, classes: tuple[str, ...]) -> Fitted:
        """For the same labels the classifier as it is, whatever the examples; for others, prototypes."""
        if set(classes) == set(self.labels):
            columns = [self.labels.index(label) for label in classes]
            head = Head(self.head.weights[:, columns], self.head.offset[columns])
            return _Classifier(self.encoder, head, self.prior[columns], tokens, labels)
        rows = self.encoder.encode(tokens)
        return _Prototypes(self.encoder, OTHER_LABELS_TEMPERATURE, rows, labels, len(classes))


class _Classifier:
    """A classifier that met none of the examples, so each is left out as it is.

    It answers with the labels as common as they are in its cluster, but a handful of examples was picked label by
    label. How likely it makes them is judged as though labels were as common in its cluster as among the examples:
    else the metric of a cluster with a rare label would always seem wrong about that label's examples.
    """

    def __init__(self, encoder: Any, head: Head, prior: Floats, examples: Tokens, labels: Ints) -> None:
        self._encoder, self._head = encoder, head
        self._responses = encoder.responses(examples)  # (examples, width), sparse for phrases
        shares = np.bincount(labels, minlength=len(prior)) / len(labels)  # (classes,)
        self._picked = shares / prior

    def chances(self, tokens: Tokens) -> Floats:
        return self._head.chances(self._encoder.responses(tokens))

    def chances_left_out(self) -> Floats:
        picked = self._head.chances(self._responses) * self._picked  # (examples, classes)
        return picked / picked.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]

    def compare(self, tokens: Tokens, among: Ints | None = None) -> tuple[Floats, Floats]:
        responses = self._encoder.responses(tokens)
        return self._head.chances(responses), _cosines(_directions(responses), _directions(self._responses), among)

    def own_cosines(self, among: Ints) -> Floats:
        return _cosines(_directions(self._responses), _directions(self._responses), among)

    def likest_left_out(self) -> Floats:
        return likest_of_others(_directions(self._responses))


def _directions(responses: Any) -> Any:
    """Responses scaled to length one, as those over phrases are already."""
    return responses if sparse.issparse(responses) else unit_rows(responses)


class _Prototypes:
    """eqn:base_protonet with the mean direction of each label's examples."""

    def __init__(self, encoder: Encoder, temperature: float, rows: Any, labels: Ints, classes: int) -> None:
        self._encoder, self._temperature, self._rows, self._labels = encoder, temperature, rows, labels
        belongs = np.eye(classes, dtype=np.float32)[labels]  # (examples, classes)
        if sparse.issparse(rows):
            belongs = sparse.csr_array(belongs)
        self._sums = rows.T @ belongs  # (features, classes): sparse if the rows are
        self._lengths = np.sqrt(np.asarray((self._sums * self._sums).sum(axis=0)).ravel())  # (classes,)
        self._likest: Floats | None = None  # (examples,), once it was asked for

    def chances(self, tokens: Tokens) -> Floats:
        return self._answer(self._encoder.encode(tokens))

    def compare(self, tokens: Tokens, among: Ints | None = None) -> tuple[Floats, Floats]:
        rows = self._encoder.encode(tokens)
        return self._answer(rows), _cosines(rows, self._rows, among)

    def own_cosines(self, among: Ints) -> Floats:
        cosines = _cosines(self._rows, self._rows, among)
        if np.array_equal(among, np.arange(len(self._labels))):  # the products that `likest_left_out` needs
            self._likest = _likest(_without_themselves(cosines.copy(), 0))
        return cosines

    def likest_left_out(self) -> Floats:
        if self._likest is None:
            self._likest = likest_of_others(self._rows)
        return self._likest

    def _answer(self, rows: Any) -> Floats:
        dots = _dense(rows @ self._sums)  # (texts, classes)
        return _softmax(self._temperature * dots / np.maximum(self._lengths, 1e-9))

    def chances_left_out(self) -> Floats:
        """Taking x out of its label's sum s leaves s - x, whose products follow from those of s: no second encoding."""
        dots = _dense(self._rows @ self._sums)  # (examples, classes)
        own = np.arange(len(self._labels)), self._labels
        cosines = dots / np.maximum(self._lengths, 1e-9)
        sizes = np.asarray((self._rows * self._rows).sum(axis=1)).ravel()  # (examples,): 1, or 0 for an empty row
        left = np.sqrt(np.maximum(self._lengths[self._labels] ** 2 - 2 * dots[own] + sizes, 0))
        nowhere = left < 1e-3 * self._lengths[self._labels]  # what is left is rounding, and points in no direction
        cosines[own] = np.where(nowhere, 0, (dots[own] - sizes) / np.maximum(left, 1e-9))
        chances = _softmax(self._temperature * cosines)
        chances[_alone(self._labels)] = np.nan
        return chances


class _Matching:
    """eqn:base_mnet: every example speaks for its label, the nearer the louder."""

    def __init__(self, encoder: Encoder, temperature: float, rows: Any, labels: Ints, classes: int) -> None:
        self._encoder, self._temperature, self._rows, self._labels = encoder, temperature, rows, labels
        self._belongs = np.eye(classes, dtype=np.float32)[labels]  # (examples, classes)

    def chances(self, tokens: Tokens) -> Floats:
        return self._sum_by_label(_cosines(self._encoder.encode(tokens), self._rows))

    def compare(self, tokens: Tokens, among: Ints | None = None) -> tuple[Floats, Floats]:
        cosines = _cosines(self._encoder.encode(tokens), self._rows)
        return self._sum_by_label(cosines), cosines if among is None else cosines[:, among]

    def own_cosines(self, among: Ints) -> Floats:
        return _cosines(self._rows, self._rows, among)

    def likest_left_out(self) -> Floats:
        return likest_of_others(self._rows)

    def chances_left_out(self) -> Floats:
        alone = _alone(self._labels)
        parts = []
        for at, cosines in _cosines_with_others(self._rows):
            cosines[alone[at : at + len(cosines)]] = 0  # answered with NaN below; keeps one from an empty softmax
            parts.append(self._sum_by_label(cosines))
        chances = np.concatenate(parts)
        chances[alone] = np.nan
        return chances

    def _sum_by_label(self, cosines: Floats) -> Floats:
        return _softmax(self._temperature * cosines) @ self._belongs


def likest_of_others(rows: Any) -> Floats:
    """The cosine of each row with the likest other row: (rows,); 0 for a row that is alone."""
    return np.concatenate([_likest(cosines) for _, cosines in _cosines_with_others(rows)])


def _likest(cosines: Floats) -> Floats:
    """The largest cosine of each row; 0 where there is none."""
    likest = cosines.max(axis=1)
    return np.where(np.isfinite(likest), likest, 0)


def _cosines_with_others(rows: Any) -> Iterator[tuple[int, Floats]]:
    """Some rows at a time, their first place and their cosines with all rows, -inf with themselves."""
    for at in range(0, rows.shape[0], ROWS_AT_ONCE):
        yield at, _without_themselves(_dense(rows[at : at + ROWS_AT_ONCE] @ rows.T), at)


def _without_themselves(cosines: Floats, at: int) -> Floats:
    """Cosines (some, rows), changed in place: -inf where a row, the first of which stands at `at`, meets itself."""
    some = np.arange(len(cosines))
    cosines[some, at + some] = -np.inf
    return cosines


def _cosines(rows: Any, examples: Any, among: Ints | None = None) -> Floats:
    return _dense(rows @ (examples if among is None else examples[among]).T)  # (texts, examples)


def _dense(matrix: Any) -> Floats:
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix  # type: ignore[no-any-return]


def _softmax(logits: Floats) -> Floats:
    return softmax(logits.astype(np.float64), axis=1)  # type: ignore[no-any-return]


def _alone(labels: Ints) -> Bools:
    """Which examples are the only ones of their label."""
    return np.bincount(labels, minlength=labels.max() + 1)[labels] == 1  # type: ignore[no-any-return]
