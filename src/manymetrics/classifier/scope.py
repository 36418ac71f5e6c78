"""Is a text in scope? How near the examples it is -> the odds.

A mix always finds some label likeliest. Whether any label fits is asked of the encoders that learned nothing from
labels: a text is in scope when some example is near it there, more so than the examples are usually near one another.
What that is worth was learned from episodes of held-out tasks, where texts of other tasks and gibberish were mixed in.
The examples' own nearness, each left out in turn, makes the bar a bar of the task.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit, stdtrit

from manymetrics.encode.encoder import Encoder, Features
from manymetrics.errors import DataError
from manymetrics.specialize.metric import Metric, dense
from manymetrics.values import Floats, Texts
from manymetrics.weigh.comparison import Comparison

COUNTER_PULL = 20.0  # how fast the odds fall as a text comes nearer to a counter-example than to any example
COUNTER_MARGIN = 0.05
STEPS = 30
_RIDGE = 1e-3
LEARNED_ELSEWHERE = {"word-vectors": (6.98, 1.28), "letters": (5.89, 0.55)}  # from a bank of chatbots


@dataclass(frozen=True)
class Scope:
    """The log-odds that a text is in scope, as a linear function of what is known of it.

    By name of a metric that learned nothing from labels: the weight of the cosine with the nearest example, and the
    weight of that cosine less the usual one between the examples.
    """

    offset: float = 1.52
    weights: Mapping[str, tuple[float, float]] = field(default_factory=lambda: dict(LEARNED_ELSEWHERE))
    length: float = -1.03  # of the logarithm of the number of tokens
    examples: float = -0.62  # of the logarithm of the number of examples

    def __post_init__(self) -> None:
        every = [self.offset, self.length, self.examples, *(one for pair in self.weights.values() for one in pair)]
        if not all(abs(one) < 1e6 for one in every):
            raise DataError(f"The scope has weights that cannot be used: {every}.")

    def log_odds(self, features: Floats, names: Sequence[str]) -> Floats:
        """For each text, from `TaskScope.features`, whose columns are of the metrics `names`: (texts,)."""
        pairs = np.array([self.weights.get(name, (0.0, 0.0)) for name in names])  # (metrics, 2)
        return self.offset + features @ np.concatenate([*pairs.T, [self.length, self.examples]])  # type: ignore[no-any-return]


class TaskScope:
    """What is in scope for one task."""

    def __init__(self, scope: Scope, metrics: Sequence[Metric], examples: Comparison, counter_examples: Texts) -> None:
        self._scope, self._examples, self._compared = scope, examples.count, examples
        self.names = tuple(metric.name for metric in metrics)
        self.encoders: tuple[Encoder, ...] = tuple(metric.encoder for metric in metrics)
        self._usual = np.array([examples.nearest_others(encoder).mean() for encoder in self.encoders])  # (metrics,)
        self._counter_examples = Features(counter_examples) if len(counter_examples) else None

    def features(self, texts: Comparison) -> Floats:
        """What the odds are made of: nearness, nearness less the usual one, lengths: (texts, 2 * metrics + 2)."""
        nearness = self._nearness(texts)
        lengths = self.encoders[0].lengths(texts.features.texts)
        sizes = np.column_stack([np.log(np.maximum(lengths, 1)), np.full(len(lengths), np.log(self._examples))])
        return np.hstack([nearness, nearness - self._usual, sizes]).astype(np.float64)

    def leave_one_out(self) -> Floats:
        """The log-odds of each example as though it had not been given: (examples,)."""
        nearness = np.stack([self._compared.nearest_others(encoder) for encoder in self.encoders], axis=1)
        texts = self._compared.features
        lengths = self.encoders[0].lengths(texts.texts[: self._examples])
        sizes = [np.log(np.maximum(lengths, 1)), np.log(max(self._examples - 1, 1))]
        features = np.column_stack([nearness, nearness - self._usual, *np.broadcast_arrays(*sizes)])
        log_odds = self._scope.log_odds(features.astype(np.float64), self.names)
        return log_odds - self._counter_pull(texts, nearness)

    def log_odds(self, texts: Comparison) -> Floats:
        """That each text is in scope: (texts,); lowered where it is nearer to a counter-example than to any example."""
        log_odds = self._scope.log_odds(self.features(texts), self.names)
        if self._counter_examples is None:
            return log_odds
        return log_odds - self._counter_pull(texts.features, self._nearness(texts))

    def _counter_pull(self, texts: Features, nearness: Floats) -> Floats:
        """How far counter-examples lower the log-odds of texts that are so near to the examples: (texts,)."""
        if self._counter_examples is None:
            return np.zeros(len(nearness))
        products = [
            texts.directions(encoder)[: len(nearness)] @ self._counter_examples.directions(encoder).T
            for encoder in self.encoders
        ]
        counter = np.stack([dense(product).max(axis=1) for product in products], axis=1)  # (texts, metrics)
        nearer = np.maximum(counter.mean(axis=1) - nearness.mean(axis=1) + COUNTER_MARGIN, 0)
        return COUNTER_PULL * nearer  # type: ignore[no-any-return]

    def _nearness(self, texts: Comparison) -> Floats:
        """The cosine with the nearest example under each encoder: (texts, metrics)."""
        return np.stack([texts.nearest(encoder) for encoder in self.encoders], axis=1)


def lower_bound(log_odds: Floats, share: float) -> float:
    """The log-odds that a share of further texts lies below, from those of some: Student's prediction bound."""
    spread = float(log_odds.std(ddof=1)) * np.sqrt(1 + 1 / len(log_odds))
    return float(log_odds.mean() + stdtrit(len(log_odds) - 1, share) * spread)


def learn_scope(inside: Sequence[Floats], outside: Sequence[Floats], names: Sequence[str]) -> Scope:
    """Logistic regression of in scope against out of scope, both sorts weighing alike; Newton's steps.

    `inside` and `outside` hold the features of some texts each; every such set weighs as much as any other of its sort.
    """
    sets = [*inside, *outside]
    rows = np.concatenate(sets)  # (texts, features)
    truth = np.repeat([1.0] * len(inside) + [0.0] * len(outside), [len(one) for one in sets])  # (texts,)
    shares = [0.5 / len(inside)] * len(inside) + [0.5 / len(outside)] * len(outside)
    weights = np.repeat([share / len(one) for share, one in zip(shares, sets, strict=True)], [len(s) for s in sets])
    centre, scale = rows.mean(axis=0), np.maximum(rows.std(axis=0), 1e-9)
    design = np.column_stack([np.ones(len(rows)), (rows - centre) / scale])  # (texts, 1 + features)
    found = np.zeros(design.shape[1])
    for _ in range(STEPS):
        probability = expit(design @ found)
        slope = design.T @ (weights * (truth - probability)) - _RIDGE * found
        curve = (design * (weights * probability * (1 - probability))[:, None]).T @ design
        found = found + np.linalg.solve(curve + _RIDGE * np.eye(len(found)), slope)
    slopes = (found[1:] / scale).tolist()
    pairs = zip(slopes[: len(names)], slopes[len(names) : 2 * len(names)], strict=True)
    offset = float(found[0] - np.array(slopes) @ centre)
    return Scope(offset, dict(zip(names, pairs, strict=True)), *slopes[2 * len(names) :])
