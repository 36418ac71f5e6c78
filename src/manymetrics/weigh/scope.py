"""Is a text any of a classifier's business? How like the examples it is -> the odds that it is in scope.

A mix always finds some label likeliest. Whether any label fits is asked of the two spaces in which nothing was learned,
mean word vectors and letter runs: a text is in scope when some example is like it there, more so than the examples are
usually like one another. What that is worth was learned from problems of held-out tasks, where texts of other tasks and
gibberish were mixed in. The examples' own likeness, each left out in turn, makes the bar a bar of the task.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from manymetrics.values import Floats, Ints

COUNTER_PULL = 20.0  # how fast the odds fall as a text comes nearer to a counter-example than to any example
COUNTER_MARGIN = 0.05
STEPS = 30
_RIDGE = 1e-3


@dataclass(frozen=True)
class Scope:
    """The log-odds that a text is in scope, as a linear function of what is known of it."""

    offset: float = 1.52
    word_vectors: float = 6.98  # of the cosine with the likest example
    letters: float = 5.89
    word_vectors_gain: float = 1.28  # of that cosine less the usual one between the examples
    letters_gain: float = 0.55
    length: float = -1.03  # of the logarithm of the number of tokens
    examples: float = -0.62  # of the logarithm of the number of examples

    def log_odds(self, features: Floats) -> Floats:
        """For each text, from `describe`: (texts,)."""
        weights: Floats = np.array([self.word_vectors, self.letters, self.word_vectors_gain, self.letters_gain,
                            self.length, self.examples])  # fmt: skip
        return self.offset + features @ weights


def describe(likest: Floats, usual: Floats, lengths: Ints, examples: int) -> Floats:
    """What the odds are made of: likest (texts, 2), usual (2,), lengths (texts,) -> (texts, 6)."""
    sizes = np.column_stack([np.log(np.maximum(lengths, 1)), np.full(len(lengths), np.log(examples))])
    return np.hstack([likest, likest - usual, sizes]).astype(np.float64)


def against_counter_examples(log_odds: Floats, likest: Floats, counter: Floats) -> Floats:
    """The odds, lowered where a text is nearer to a counter-example than to any example: (texts,)."""
    nearer = np.maximum(counter.mean(axis=1) - likest.mean(axis=1) + COUNTER_MARGIN, 0)
    return log_odds - COUNTER_PULL * nearer  # type: ignore[no-any-return]


def learn_scope(own: Sequence[Floats], strange: Sequence[Floats]) -> Scope:
    """Logistic regression of in scope against out of scope, both sorts weighing alike; Newton's steps.

    `own` and `strange` hold the features of some texts each; every such set weighs as much as any other of its sort.
    """
    sets = [*own, *strange]
    rows = np.concatenate(sets)  # (texts, 6)
    inside = np.repeat([1.0] * len(own) + [0.0] * len(strange), [len(one) for one in sets])  # (texts,)
    shares = [0.5 / len(own)] * len(own) + [0.5 / len(strange)] * len(strange)
    weights = np.repeat([share / len(one) for share, one in zip(shares, sets, strict=True)], [len(s) for s in sets])
    centre, scale = rows.mean(axis=0), np.maximum(rows.std(axis=0), 1e-9)
    design = np.column_stack([np.ones(len(rows)), (rows - centre) / scale])  # (texts, 7)
    found = np.zeros(design.shape[1])
    for _ in range(STEPS):
        chance = expit(design @ found)
        slope = design.T @ (weights * (inside - chance)) - _RIDGE * found
        curve = (design * (weights * chance * (1 - chance))[:, None]).T @ design + _RIDGE * np.eye(len(found))
        found = found + np.linalg.solve(curve, slope)
    slopes = found[1:] / scale
    return Scope(float(found[0] - slopes @ centre), *(float(slope) for slope in slopes))
