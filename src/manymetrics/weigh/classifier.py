"""Metrics and a few examples -> a classifier, under scikit-learn's contract.

Paper: section 3.2.2 and "Adaptive RobustTC-FSL". Names here and there:
    classifier.weights_     alpha_k
    classifier.fallback_    why the task was found to be out of clusters, or nothing
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from manymetrics.encode.tokens import Tokens
from manymetrics.encode.vectors import WordVectors
from manymetrics.errors import DataError, InputError, NotEnoughExamples
from manymetrics.specialize.metric import FROZEN, LEARNED, LEXICAL, Fitted, Metric
from manymetrics.values import Floats, Ints, Mix
from manymetrics.weigh.alone import Alone, ConvolutionAlone, LinearAlone
from manymetrics.weigh.estimator import Estimator
from manymetrics.weigh.mix import blend, fit_mix, fit_mix_as_published
from manymetrics.weigh.rules import Problem, Rules, lift_over_chance

DEFAULT, PAPER = "default", "paper"
PAPER_THRESHOLD = 0.2  # accuracy on the shots
MOST_LABELS = 1000
TEXTS_AT_ONCE = 8192


class KnowsMetrics(Protocol):
    """What a classifier needs of a learned model."""

    @property
    def vectors(self) -> WordVectors:
        """The word vectors its texts are read with."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What is mixed."""

    @property
    def rules(self) -> Rules:
        """How it is mixed."""


class FewShotClassifier(Estimator):
    """Classifies texts from a handful of examples of each label, with its own mix of a model's metrics.

    Parameters
    ----------
    model : a learned model, from `learn_metrics` or `load_model`.
    mix : `default`, or `paper` for the published way: the clusters' metrics alone, weights unconstrained.
    adaptive : fall back to a model trained on the examples alone when no cluster fits the task.

    Attributes
    ----------
    classes_ : the labels, sorted; the columns of `predict_proba`.
    weights_ : how much each metric counts, by name.
    mix_ : the weights with the steps and the gap of their fit.
    fallback_ : why no cluster fits, as a sentence, or None.
    """

    def __init__(self, model: KnowsMetrics | None = None, *, mix: str = DEFAULT, adaptive: bool = True) -> None:
        self.model = model
        self.mix = mix
        self.adaptive = adaptive

    def fit(self, X: Iterable[str], y: Iterable[Any]) -> "FewShotClassifier":
        """Take in the examples and find the task's own mix."""
        model = _require_model(self.model)
        if self.mix not in (DEFAULT, PAPER):
            raise InputError(f"There is no mix {self.mix!r}. Choose {DEFAULT!r} or {PAPER!r}.")
        texts, labels = as_texts(X), _as_labels(y)
        if len(texts) != len(labels):
            raise DataError(f"Found {len(texts)} texts and {len(labels)} labels. Give one label for each text.")
        self.classes_, numbers = _number(labels)
        tokens = model.vectors.read(texts)
        metrics = self._metrics(model)
        self._fitted = fit_metrics(metrics, tokens, numbers, self.classes_)
        left_out = np.stack([fitted.chances_left_out() for fitted in self._fitted], axis=1)
        self.mix_ = self._fit_mix(model.rules, left_out, numbers, metrics)
        self.weights_ = {metric.name: float(w) for metric, w in zip(metrics, self.mix_.weights, strict=True)}
        self.fallback_ = self._why_fall_back(model.rules, left_out, numbers, metrics)
        self._alone = None if self.fallback_ is None else self._train_alone(model, tokens, numbers)
        self.n_examples_ = len(texts)
        return self

    def predict_proba(self, X: Iterable[str]) -> Floats:
        """*p(y | x)*: (texts, labels), in the order of `classes_`."""
        parts = list(self._in_parts(X))
        return np.concatenate(parts) if parts else np.zeros((0, len(self.classes_)))

    def predict(self, X: Iterable[str]) -> Any:
        """The likeliest label of each text; of equal ones the first."""
        answers = [chances.argmax(axis=1) for chances in self._in_parts(X)]
        return self.classes_[np.concatenate(answers) if answers else np.zeros(0, dtype=np.int64)]

    def _in_parts(self, X: Iterable[str]) -> Iterator[Floats]:
        """The probabilities of some thousand texts at a time, which bounds the memory of a prediction."""
        self.require_fitted()
        texts, model = as_texts(X), _require_model(self.model)
        for at in range(0, len(texts), TEXTS_AT_ONCE):
            yield self._chances(model.vectors.read(texts[at : at + TEXTS_AT_ONCE]))

    def _metrics(self, model: KnowsMetrics) -> list[Metric]:
        return [metric for metric in model.metrics if self.mix == DEFAULT or metric.kind == LEARNED]

    def _fit_mix(self, rules: Rules, left_out: Floats, labels: Ints, metrics: Sequence[Metric]) -> Mix:
        if self.mix == PAPER:
            return fit_mix_as_published(left_out, labels)
        return fit_mix(left_out, labels, prior=rules.prior([m.kind for m in metrics]), strength=rules.strength)

    def _why_fall_back(self, rules: Rules, left_out: Floats, labels: Ints, metrics: Sequence[Metric]) -> str | None:
        if not self.adaptive:
            return None
        learned = np.array([metric.kind == LEARNED for metric in metrics])
        lift, chance = lift_over_chance(left_out, labels, learned), 1 / left_out.shape[2]
        best, least = chance + lift * (1 - chance), chance + rules.threshold * (1 - chance)
        if self.mix == PAPER:
            least = PAPER_THRESHOLD
        if best >= least:
            return None
        return (
            f"No cluster fits this task: the best learned metric answers {best:.0%} of the examples from the others, "
            f"less than the {least:.0%} asked for. A model trained on the examples alone answers instead."
        )

    def _train_alone(self, model: KnowsMetrics, tokens: Tokens, labels: Ints) -> Alone:
        if self.mix == PAPER:
            return ConvolutionAlone(model.vectors.table, tokens, labels, len(self.classes_))
        return train_alone(model.metrics, tokens, labels, len(self.classes_))

    def _chances(self, tokens: Tokens) -> Floats:
        if self._alone is not None:
            return self._alone.chances(tokens)
        used = np.flatnonzero(np.abs(self.mix_.weights) > 1e-6)  # a metric that does not count need not be asked
        chances = np.stack([self._fitted[k].chances(tokens) for k in used], axis=1)  # (texts, used, labels)
        return blend(self.mix_.weights[used], chances)


def fit_metrics(metrics: Sequence[Metric], shots: Tokens, labels: Ints, classes: Sequence[Any]) -> list[Fitted]:
    """Every metric takes in the shots."""
    names = tuple(str(label) for label in classes)
    return [metric.learn(shots, labels, names) for metric in metrics]


def train_alone(metrics: Sequence[Metric], shots: Tokens, labels: Ints, classes: int) -> Alone:
    """The single-task model, on the encoders that were not learned."""
    encoders = {metric.kind: metric.encoder for metric in metrics}
    return LinearAlone(encoders[FROZEN], encoders[LEXICAL], shots, labels, classes=classes)


def pose_problem(metrics: Sequence[Metric], shots: Tokens, labels: Ints, texts: Tokens, *, answers: Ints,
                 classes: tuple[str, ...]) -> Problem:  # fmt: skip
    """Every metric's answers on a few-shot problem whose right answers are known."""
    fitted = fit_metrics(metrics, shots, labels, classes)
    return Problem(
        tuple(metric.kind for metric in metrics),
        np.stack([one.chances_left_out() for one in fitted], axis=1),
        labels,
        np.stack([one.chances(texts) for one in fitted], axis=1),
        train_alone(metrics, shots, labels, len(classes)).chances(texts),
        answers,
    )


def as_texts(texts: Iterable[str]) -> list[str]:
    """A list of texts from a list, an array or a column of a data frame."""
    if isinstance(texts, str):
        raise DataError("Found one text where a list of texts was expected. Put it in a list: [text].")
    listed = _listed(texts, "texts")
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise DataError(
                f"Found {text!r} of type {type(text).__name__} in row {row} where a text was expected. "
                "Replace missing texts by an empty one, or leave the row out."
            )
    return listed


def _as_labels(labels: Iterable[Any]) -> list[Any]:
    if isinstance(labels, str):
        raise DataError("Found one label where a list of labels was expected. Give one label for each text.")
    listed = [label.item() if isinstance(label, np.generic) else label for label in _listed(labels, "labels")]
    for row, label in enumerate(listed):
        if not isinstance(label, str | int | float) or label != label:  # noqa: PLR0124 - only NaN differs from itself
            raise DataError(
                f"Found the label {label!r} in row {row}. Every example needs a label, and labels are strings or "
                "numbers; leave the row out."
            )
    return listed


def _listed(column: Iterable[Any], what: str) -> list[Any]:
    if column is None or not hasattr(column, "__iter__"):
        raise DataError(f"Found {column!r} where a list of {what} was expected. Give one of the {what} in each place.")
    if hasattr(column, "columns"):
        raise DataError(f"Found a table where a list of {what} was expected. Give one column of it.")
    return list(column)


def _number(labels: list[Any]) -> tuple[Any, Ints]:
    if len({isinstance(label, str) for label in labels}) > 1:
        raise DataError("Some labels are strings and some are not. Use only strings or only numbers.")
    classes, numbers = np.unique(np.array(labels), return_inverse=True)
    if len(classes) < 2:
        found = (
            f"{len(labels)} example{'s' * (len(labels) > 1)} of one label, {labels[0]!r}" if labels else "no examples"
        )
        raise NotEnoughExamples(f"Found {found}. A classifier needs examples of at least two labels.")
    if len(classes) > MOST_LABELS:
        raise InputError(
            f"Found {len(classes)} labels, and at most {MOST_LABELS} can be told apart. Are the label and the text "
            "columns swapped?"
        )
    return classes, numbers.astype(np.int64)


def _require_model(model: KnowsMetrics | None) -> KnowsMetrics:
    if model is None:
        raise InputError("FewShotClassifier has no model. Make it with FewShotClassifier(load_model(path)).")
    return model
