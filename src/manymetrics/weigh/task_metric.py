"""A task's own metric and its head: logistic regression in a weighted sum of the encoders' cosines.

    Lambda_T(x, x') = sum_k alpha_k cos(f_k(x), f_k(x'))     alpha sums to one
    P(y | x)        = softmax(logits(x) / temperature)

Paper: section 3.2.2, with metrics summed instead of probabilities. alpha comes from the assignment of the task to
clusters: the frozen encoders share BASE_WEIGHT, each cluster's encoder has the probability of its cluster, or a share
of it, and the shared encoder has what is left. A kernel regression in a sum of cosines is a linear layer over the
concatenated embeddings, so the cost of an answer does not depend on the number of examples.

Where tasks of the bank have exactly the labels of a task, the log-probabilities of their classifiers are fixed logits
that the regression adds to: the bank determines what the labels mean, the shots what is particular to the task.

Label names are further examples where they are informative. Under the hypothesis that they are, a shot's label follows
a softmax over its similarity to the names, with an unknown inverse temperature; under the other one, labels are
independent of the names. The odds of the two, from even ones, decide; unlike a permutation test, they have power where
a task has two or three labels. Similarity to a name is taken relative to its mean over the shots, so that a name that
is similar to every text says nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_softmax, logsumexp

from manymetrics.encode.encoder import EmbeddedTexts, Encoder, dense
from manymetrics.measure.heads import Head
from manymetrics.specialize.metric import FROZEN, LEARNED, Metric
from manymetrics.values import Floats, Ints
from manymetrics.weigh.assignment import Assignment
from manymetrics.weigh.regression import L2, Regression, fit_regression

BASE_WEIGHT = 0.3  # of the frozen encoders together; 0.15 to 0.5 do as well on held-out bank tasks
MAX_LANDMARKS = 1000
KNOWN_L2 = 10.0  # penalty where a classifier knows the labels: a few shots correct it a little
MIN_WEIGHT = 1e-3  # of an encoder that is used at all
MIN_PROBABILITY = 0.25  # of a cluster whose encoder is a transformer of its own: texts pass through it once more
FOR_ANY_LABEL = {
    "label", "class", "category", "intent", "tag", "type", "group", "topic", "id", "no", "nr", "number", "option",
    "value", "code",
}  # fmt: skip
INVERSE_TEMPERATURES = (5.0, 10.0, 20.0, 40.0)  # of similarities between -1 and 1, equally probable


def encoder_weights(metrics: Sequence[Metric], assignment: Assignment | None) -> Floats:
    """alpha: how much each metric counts for a task, (metrics,), sums to one.

    Without an assignment nothing is known of the task's cluster, and the shared encoder has the weight of all clusters.
    """
    kinds = np.array([metric.kind for metric in metrics])
    weights = np.zeros(len(metrics))
    for index, metric in enumerate(metrics):
        if metric.kind == LEARNED and metric.cluster is not None and assignment is not None:
            probability = assignment.clusters[metric.cluster]
            weights[index] = metric.share * probability if metric.share == 1 or probability >= MIN_PROBABILITY else 0.0
    frozen = kinds == FROZEN
    shared = ~frozen & (kinds != LEARNED)
    if not shared.any():
        shared = kinds == LEARNED
    if shared.any():
        weights[shared] += max(1.0 - weights.sum(), 0.0) / shared.sum()
    weights[weights < MIN_WEIGHT] = 0.0
    share = BASE_WEIGHT if weights.any() else 1.0
    weights *= (1 - share * frozen.any()) / max(weights.sum(), MIN_WEIGHT)
    weights[frozen] = share / max(frozen.sum(), 1)
    return weights / weights.sum()  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class SharedLabelHead:
    """The mean log-probabilities of some classifiers, in the order of a task's labels."""

    heads: tuple[tuple[Encoder, Head], ...]
    base_rate: Floats  # (classes,): how common each label is in the bank

    @classmethod
    def of(cls, metrics: Sequence[Metric], classes: Sequence[str]) -> "SharedLabelHead | None":
        """The classifiers of the metrics that have exactly these classes; None where no metric does."""
        ordered = [
            (metric.encoder, metric.shared.in_order(classes))
            for metric in metrics
            if metric.shared is not None and set(metric.labels) == set(classes)
        ]
        if not ordered:
            return None
        rate = np.mean([shared.prior for _, shared in ordered], axis=0, dtype=np.float64)
        return cls(tuple((encoder, shared.head) for encoder, shared in ordered), rate / rate.sum())

    def logits(self, texts: EmbeddedTexts) -> Floats:
        """(texts, classes)."""
        return np.mean([head.log_probabilities(texts.rows(encoder)) for encoder, head in self.heads], axis=0)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class TaskMetric:
    """Lambda_T between texts and the examples of a task."""

    encoders: tuple[Encoder, ...]
    weights: Floats  # (encoders,)
    examples: EmbeddedTexts  # the shots and, behind them, the label names
    landmarks: Ints  # the examples that texts are compared with by the regression: all, or MAX_LANDMARKS evenly chosen

    @classmethod
    def of(cls, metrics: Sequence[Metric], weights: Floats, examples: EmbeddedTexts) -> "TaskMetric":
        """The metric of the encoders that have weight; equal encoders are one."""
        by_encoder: dict[Encoder, float] = {}
        for metric, weight in zip(metrics, weights.tolist(), strict=True):
            if weight > 0:
                by_encoder[metric.encoder] = by_encoder.get(metric.encoder, 0.0) + weight
        places = np.linspace(0, len(examples) - 1, min(len(examples), MAX_LANDMARKS)).round().astype(np.int64)
        return cls(tuple(by_encoder), np.array(list(by_encoder.values())), examples, np.unique(places))

    def kernel(self, texts: EmbeddedTexts) -> Floats:
        """Lambda_T of texts with the landmarks: (texts, landmarks)."""
        total = np.zeros((len(texts), len(self.landmarks)))
        for encoder, weight in zip(self.encoders, self.weights, strict=True):
            landmarks = self.examples.rows(encoder, unit=True)[self.landmarks]
            total += weight * dense(texts.rows(encoder, unit=True) @ landmarks.T)
        return total


@dataclass(frozen=True, eq=False)
class TaskHead:
    """The regression of a task in its metric, beside a classifier that knows the task's labels where there is one."""

    metric: TaskMetric
    regression: Regression
    labels: Ints  # (examples,): of the shots and the label names
    known: SharedLabelHead | None = None

    @cached_property
    def layers(self) -> tuple[Floats, ...]:
        """Of each encoder, what its unit embeddings are multiplied with: (width, classes) each."""
        rows, dual = self.metric.landmarks, self.regression.dual
        return tuple(
            weight * np.asarray(self.metric.examples.rows(encoder, unit=True)[rows].T @ dual)
            for encoder, weight in zip(self.metric.encoders, self.metric.weights, strict=True)
        )

    def logits(self, texts: EmbeddedTexts) -> Floats:
        """(texts, classes), before any temperature."""
        logits = np.zeros((len(texts), self.regression.targets.shape[1])) + self.regression.intercept
        for encoder, layer in zip(self.metric.encoders, self.layers, strict=True):
            logits += texts.rows(encoder, unit=True) @ layer
        return logits if self.known is None else logits + self.known.logits(texts)

    def encoder_logits(self, texts: EmbeddedTexts, encoder: Encoder) -> Floats:
        """What the logits would be if one encoder of the metric had all the weight: (texts, classes)."""
        index = self.metric.encoders.index(encoder)
        logits = texts.rows(encoder, unit=True) @ (self.layers[index] / self.metric.weights[index])
        return np.asarray(logits, dtype=np.float64) + self.regression.intercept

    def example_shares(self, text: EmbeddedTexts, label: int, n_shots: int) -> tuple[Floats, Floats]:
        """How much each shot adds to the logit of a label over the mean of all, and its similarity: (shots,) each.

        What counts against the label is left out of the shares, which sum to one.
        """
        landmarks, dual = self.metric.landmarks, self.regression.dual
        kernel = self.metric.kernel(text)[0]  # (landmarks,)
        added = np.maximum(kernel * (dual[:, label] - dual.mean(axis=1)), 0)
        shots = landmarks < n_shots
        shares, similarity = np.zeros(n_shots), np.zeros(n_shots)
        shares[landmarks[shots]], similarity[landmarks[shots]] = added[shots], kernel[shots]
        return shares / max(shares.sum(), 1e-12), similarity


def fit_head(metric: TaskMetric, labels: Ints, n_classes: int, known: SharedLabelHead | None = None) -> TaskHead:
    """The regression on the examples of the metric; it adds to the logits of what is known of the labels."""
    offset, l2 = (None, L2) if known is None else (known.logits(metric.examples), KNOWN_L2)
    kernel = metric.kernel(metric.examples)
    regression = fit_regression(kernel, metric.landmarks, labels, n_classes, offset, l2=l2)
    return TaskHead(metric, regression, labels, known)


def are_words(names: Iterable[str]) -> bool:
    """Whether at least half of the names are more than numbers, single letters and words for any label: "class 3"."""
    informative = [
        any(len(word) > 1 and not word.isdecimal() and word not in FOR_ANY_LABEL for word in name.split())
        for name in names
    ]
    return 2 * sum(informative) >= len(informative)


def log_odds_of_names(similarity: Floats, labels: Ints) -> float:
    """The log-odds that names are informative: similarity (shots, names), labels (shots,); 0 without shots."""
    if not len(labels):
        return 0.0
    n_classes = similarity.shape[1]
    weights = 1 / np.bincount(labels, minlength=n_classes)[labels]  # every label has the same weight in the mean
    relative = similarity - np.average(similarity, axis=0, weights=weights)
    gains = [
        (log_softmax(scale * relative, axis=1)[np.arange(len(labels)), labels] + np.log(n_classes)).sum()
        for scale in INVERSE_TEMPERATURES
    ]
    return float(logsumexp(gains) - np.log(len(gains)))
