"""How far an answer can be relied on: the odds that a text is in scope, and calibrated probabilities.

A regression always has a most probable label. Whether any label fits is decided by encoders that learned nothing from
labels: the base encoder, and character n-grams, which detect gibberish. The features are the similarity to the nearest
example, and the same relative to the usual similarity among the examples. Copies of an example count once.

    p  =  shrinkage * softmax(logits / temperature)  +  (1 - shrinkage) / classes
    log temperature  =  intercept + classes * log(number of labels) + own * log(temperature of the left-out shots)

Of the answers given with 0.7, seven in ten should be correct. The number of labels is clipped to what was seen. The
shrinkage factor falls towards zero for texts far from every example, so that gibberish is not answered with confidence.
Neither changes which label is the most probable. The defaults hold over several banks; see `learn_scope`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, log_softmax, softmax, stdtrit

from manymetrics.encode.encoder import EmbeddedTexts, Encoder, dense
from manymetrics.errors import DataError, InputError
from manymetrics.specialize.metric import nearest_others
from manymetrics.values import Floats, Ints, fold_text

FEATURES = ("base", "letters", "base_relative", "letters_relative", "log_words", "log_examples")
DEFAULTS = (-0.8, 1.0, 9.3, 10.3, 0.1, 0.05, -0.35)  # intercept, then one for each feature: mean over three banks
MAX_COEFFICIENT = 1e6
COUNTER_SLOPE = 20.0  # of the log-odds, as a text gets nearer to a counter-example than to any example
COUNTER_MARGIN = 0.05
HALF_AT = 4.0  # log-odds of being out of scope at which the shrinkage is one half; 4 costs nothing in scope
PRIOR_TEMPERATURE, PRIOR_DEVIATION = 0.7, 0.5  # of a task's own temperature; the deviation is that of the logarithm
TEMPERATURES = np.exp(np.linspace(np.log(0.1), np.log(5.0), 60))
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.05, 20.0
Number = float | int | np.bool_ | np.number


@dataclass(frozen=True)
class Scope:
    """The log-odds that a text is in scope, as a linear function of its features."""

    coefficients: tuple[float, ...] = DEFAULTS

    def __post_init__(self) -> None:
        usable = len(self.coefficients) == len(DEFAULTS)
        if not usable or not all(abs(b) < MAX_COEFFICIENT for b in self.coefficients):
            raise DataError(f"The scope model has coefficients that cannot be used: {self.coefficients}.")


@dataclass(frozen=True)
class Calibration:
    """The temperature of a task from its number of labels and from its own left-out shots."""

    intercept: float = -0.38
    classes: float = -0.16
    own: float = 0.22
    max_classes: int = 30  # in the tasks it was learned on

    def __post_init__(self) -> None:
        if not all(abs(b) < 100 for b in (self.intercept, self.classes, self.own)) or self.max_classes < 2:
            raise DataError(f"The calibration has coefficients that cannot be used: {self}.")

    def temperature(self, n_classes: int, own_temperature: float) -> float:
        """What the logits of a task are divided by."""
        log_classes = np.log(min(n_classes, self.max_classes))
        log_temperature = self.intercept + self.classes * log_classes + self.own * np.log(own_temperature)
        return float(np.clip(np.exp(log_temperature), MIN_TEMPERATURE, MAX_TEMPERATURE))


class TaskScope:
    """What is in scope for one task; of examples that differ in case and white space only, the first one counts."""

    def __init__(self, scope: Scope, encoders: Sequence[Encoder], texts: EmbeddedTexts,
                 counter_examples: Sequence[str] = ()) -> None:  # fmt: skip
        """`encoders`: the base encoder and, where a model has one, that of character n-grams."""
        self.encoders = tuple(encoders)
        folded = [fold_text(text) for text in texts.texts]
        first = {text: row for row, text in reversed(list(enumerate(folded)))}
        self.distinct = np.array([first[text] == row for row, text in enumerate(folded)], dtype=bool)  # (examples,)
        self._coefficients = np.array(scope.coefficients)
        self._examples = texts.take(np.flatnonzero(self.distinct))
        rows = [self._examples.rows(encoder, unit=True) for encoder in self.encoders]
        self._among = np.stack([nearest_others(embeddings) for embeddings in rows], axis=1)  # (examples, encoders)
        self._usual = self._among.sum(axis=0) / max(len(self._among), 1)  # (encoders,)
        self._counter_examples = EmbeddedTexts(counter_examples)

    def log_odds(self, texts: EmbeddedTexts | None = None) -> Floats:
        """(texts,); lower where a text is nearer to a counter-example than to any example.

        Without texts, the log-odds of each distinct example, the others given: (distinct examples,).
        """
        asked = self._examples if texts is None else texts
        nearest = self._among if texts is None else self._nearest(asked, self._examples)
        features = self.features(asked, nearest)
        log_odds = self._coefficients[0] + features @ self._coefficients[1:]
        if len(self._counter_examples):
            nearer = self._nearest(asked, self._counter_examples).mean(axis=1) - nearest.mean(axis=1)
            log_odds = log_odds - COUNTER_SLOPE * np.maximum(nearer + COUNTER_MARGIN, 0)
        return log_odds  # type: ignore[no-any-return]

    def features(self, texts: EmbeddedTexts, nearest: Floats | None = None) -> Floats:
        """(texts, features), in the order of FEATURES, from the cosines with the nearest examples."""
        similarity, n_others = np.zeros((len(texts), 4)), len(self._examples) - (texts is self._examples)
        nearest = self._nearest(texts, self._examples) if nearest is None else nearest
        similarity[:, : len(self.encoders)] = nearest
        similarity[:, 2 : 2 + len(self.encoders)] = nearest - self._usual
        words = np.log([max(1, len(text.split())) for text in texts.texts])
        return np.column_stack([similarity, words, np.full(len(texts), np.log(max(n_others, 1)))])

    def _nearest(self, texts: EmbeddedTexts, others: EmbeddedTexts) -> Floats:
        """The largest cosine with other texts under each encoder: (texts, encoders)."""
        if not len(others):
            return np.zeros((len(texts), len(self.encoders)))
        products = [texts.rows(encoder, unit=True) @ others.rows(encoder, unit=True).T for encoder in self.encoders]
        return np.stack([dense(product).max(axis=1) for product in products], axis=1)


def lower_bound(log_odds: Floats, share: float) -> float:
    """The log-odds that a share of further texts lies below, from those of some: Student's prediction bound."""
    spread = float(log_odds.std(ddof=1)) * np.sqrt(1 + 1 / len(log_odds))
    return float(log_odds.mean() + stdtrit(len(log_odds) - 1, share) * spread)


def fit_own_temperature(logits: Floats, labels: Ints) -> float:
    """The most probable temperature of left-out shots: logits (shots, classes), labels (shots,)."""
    rows = np.arange(len(labels))
    losses = [
        -log_softmax(logits / temperature, axis=1)[rows, labels].sum()
        + np.log(temperature / PRIOR_TEMPERATURE) ** 2 / (2 * PRIOR_DEVIATION**2)
        for temperature in TEMPERATURES
    ]
    return float(TEMPERATURES[int(np.argmin(losses))])


def calibrate(logits: Floats, temperature: float, scope_log_odds: Floats) -> Floats:
    """Probabilities (texts, classes) from logits (texts, classes) and log-odds of being in scope (texts,)."""
    shrinkage = expit(scope_log_odds + HALF_AT)[:, None]
    return shrinkage * softmax(logits / temperature, axis=1) + (1 - shrinkage) / logits.shape[1]  # type: ignore[no-any-return]


def apply_class_prior(probabilities: Floats, prior: Floats, base_rate: Floats) -> Floats:
    """Probabilities (texts, classes) where classes are as common as `prior`, not as `base_rate`: (classes,) each."""
    shifted = probabilities * (prior / base_rate)
    return shifted / shifted.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]


def class_shares(prior: Mapping[Any, float], labels: Sequence[Any]) -> Floats:
    """A class prior as users give it, in the order of the labels: (labels,), sums to one."""
    if not isinstance(prior, Mapping) or not all(isinstance(n, Number) and 0 < n < np.inf for n in prior.values()):
        raise InputError(f"Found class_prior={prior!r}. Give a number above 0 for each label: {{label: share}}.")
    for label in (*prior, *labels):
        if label not in labels:
            raise InputError(f"The label {label!r} is in class_prior and not in the examples. Set class_prior anew.")
        if label not in prior:
            raise InputError(f"The label {label!r} is in the examples and not in class_prior. Set class_prior anew.")
    shares = np.array([prior[label] for label in labels], dtype=np.float64)
    shares /= shares.max()  # so that the sum is finite
    return shares / shares.sum()  # type: ignore[no-any-return]
