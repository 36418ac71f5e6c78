"""The odds that a text is in scope, from its similarity to the nearest examples.

A regression always has a most probable label. Whether any label fits is decided by encoders that learned nothing from
labels: the base encoder, and character n-grams, which detect gibberish. The features are the similarity to the nearest
example, and the same relative to the usual similarity among the examples. Copies of an example count once. The
coefficients are learned on held-out bank tasks, where texts of other tasks and gibberish are out of scope, and are
shrunk towards defaults that hold over several banks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, stdtrit

from manymetrics.encode.encoder import EmbeddedTexts, Encoder
from manymetrics.errors import DataError
from manymetrics.specialize.metric import dense, nearest_others
from manymetrics.values import Bools, Floats

COUNTER_SLOPE = 20.0  # of the log-odds, as a text gets nearer to a counter-example than to any example
COUNTER_MARGIN = 0.05
FEATURES = ("base", "letters", "base_relative", "letters_relative", "log_words", "log_examples")
DEFAULTS = (-0.8, 1.0, 9.3, 10.3, 0.1, 0.05, -0.35)  # intercept, then one for each feature: mean over three banks
SCALES = np.array([1.0, 0.1, 0.1, 0.1, 0.1, 1.0, 1.0])  # usual deviation of the features, after the intercept's
PRIOR_PENALTY = 0.01  # on the squared distance from the defaults, over the number of held-out tasks
MAX_COEFFICIENT = 1e6


@dataclass(frozen=True)
class Scope:
    """The log-odds that a text is in scope, as a linear function of its features."""

    coefficients: tuple[float, ...] = DEFAULTS

    def __post_init__(self) -> None:
        usable = len(self.coefficients) == len(DEFAULTS)
        if not usable or not all(abs(b) < MAX_COEFFICIENT for b in self.coefficients):
            raise DataError(f"The scope model has coefficients that cannot be used: {self.coefficients}.")

    def log_odds(self, features: Floats) -> Floats:
        """(texts, features) -> (texts,)."""
        return self.coefficients[0] + features @ np.array(self.coefficients[1:])  # type: ignore[no-any-return]


class TaskScope:
    """What is in scope for one task."""

    def __init__(self, scope: Scope, encoders: Sequence[Encoder], texts: EmbeddedTexts,
                 counter_examples: Sequence[str] = ()) -> None:  # fmt: skip
        """`encoders`: the base encoder and, where a model has one, that of character n-grams."""
        self._scope, self.encoders = scope, tuple(encoders)
        self.distinct = distinct_texts(texts.texts)  # (examples,)
        self._examples = texts.take(np.flatnonzero(self.distinct))
        self._among = np.stack(
            [nearest_others(self._examples.unit_embeddings(encoder)) for encoder in self.encoders], axis=1
        )
        self._usual = self._among.sum(axis=0) / max(len(self._among), 1)  # (encoders,)
        self._counter_examples = EmbeddedTexts(counter_examples) if len(counter_examples) else None

    def features(self, texts: EmbeddedTexts) -> Floats:
        """(texts, features), in the order of FEATURES."""
        return self._features(self._nearest(texts, self._examples), texts.texts, len(self._examples))

    def log_odds(self, texts: EmbeddedTexts) -> Floats:
        """(texts,); lower where a text is nearer to a counter-example than to any example."""
        return self._log_odds(texts, self._nearest(texts, self._examples), len(self._examples))

    def left_out_log_odds(self) -> Floats:
        """The log-odds of each distinct example, the others given: (distinct examples,)."""
        return self._log_odds(self._examples, self._among, len(self._examples) - 1)

    def _log_odds(self, texts: EmbeddedTexts, nearest: Floats, n_examples: int) -> Floats:
        log_odds = self._scope.log_odds(self._features(nearest, texts.texts, n_examples))
        if self._counter_examples is None:
            return log_odds
        counter = self._nearest(texts, self._counter_examples).mean(axis=1)
        return log_odds - COUNTER_SLOPE * np.maximum(counter - nearest.mean(axis=1) + COUNTER_MARGIN, 0)  # type: ignore[no-any-return]

    def _nearest(self, texts: EmbeddedTexts, others: EmbeddedTexts) -> Floats:
        """The largest cosine with other texts under each encoder: (texts, encoders)."""
        if not len(others):
            return np.zeros((len(texts), len(self.encoders)))
        products = [texts.unit_embeddings(encoder) @ others.unit_embeddings(encoder).T for encoder in self.encoders]
        return np.stack([dense(product).max(axis=1) for product in products], axis=1)

    def _features(self, nearest: Floats, texts: Sequence[str], n_examples: int) -> Floats:
        similarity = np.zeros((len(texts), 4))
        similarity[:, : len(self.encoders)] = nearest
        similarity[:, 2 : 2 + len(self.encoders)] = nearest - self._usual
        words = np.log([max(1, len(text.split())) for text in texts])
        return np.column_stack([similarity, words, np.full(len(texts), np.log(max(n_examples, 1)))])


def distinct_texts(texts: Sequence[str]) -> Bools:
    """Which texts are the first of those that differ in case and white space only: (texts,)."""
    folded = [fold_text(text) for text in texts]
    first = {text: row for row, text in reversed(list(enumerate(folded)))}
    return np.array([first[text] == row for row, text in enumerate(folded)], dtype=bool)


def fold_text(text: str) -> str:
    """A text in lower case, with single spaces."""
    return " ".join(text.lower().split())


def lower_bound(log_odds: Floats, share: float) -> float:
    """The log-odds that a share of further texts lies below, from those of some: Student's prediction bound."""
    spread = float(log_odds.std(ddof=1)) * np.sqrt(1 + 1 / len(log_odds))
    return float(log_odds.mean() + stdtrit(len(log_odds) - 1, share) * spread)


def learn_scope(inside: Sequence[Floats], outside: Sequence[Floats], n_tasks: int) -> Scope:
    """Logistic regression of in scope against out of scope, both with the same weight.

    `inside` and `outside` hold the features of some texts each, of `n_tasks` held-out tasks; every array of one kind
    has the same weight. The penalty is on the distance from the defaults.
    """
    from scipy.optimize import minimize  # slow to load, and predicting does not need it

    arrays = [*inside, *outside]
    design = np.column_stack([np.ones(sum(map(len, arrays))), np.concatenate(arrays)]) / SCALES
    signs = np.repeat([1.0] * len(inside) + [-1.0] * len(outside), [len(array) for array in arrays])
    shares = [0.5 / len(inside)] * len(inside) + [0.5 / len(outside)] * len(outside)
    weights = np.concatenate(
        [np.full(len(array), share / len(array)) for share, array in zip(shares, arrays, strict=True)]
    )
    start = np.array(DEFAULTS) * SCALES
    penalty = PRIOR_PENALTY / max(n_tasks, 1)

    def loss_and_gradient(scaled: Floats) -> tuple[float, Floats]:
        margins = signs * (design @ scaled)
        gradient = penalty * (scaled - start) - design.T @ (weights * signs * expit(-margins))
        return float(weights @ np.logaddexp(0, -margins) + penalty / 2 * ((scaled - start) ** 2).sum()), gradient

    solved = minimize(loss_and_gradient, start, jac=True, method="L-BFGS-B").x
    return Scope(tuple(float(b) for b in solved / SCALES))
