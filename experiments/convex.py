"""The weights of eqn:fsl as the paper speaks of them: a convex combination.

The paper calls its baseline (6), trained by eqn:fsl, a convex combination, and a variation of its method without
clusters; so both are mixed so here. The weights begin even, and each step of exponentiated gradient descent makes a
metric weigh more the likelier it makes the shots than all do together:

    a_k  <-  a_k exp(rate * mean over shots of  p_k(y | x) / p(y | x)),  then scaled to sum to one

Rate and number of steps are tuned on meta-validation tasks, as in the paper.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from manymetrics.values import Floats, Ints
from manymetrics.weigh.published import MetricAnswers, blend

RATES = (0.1, 0.3, 1.0, 3.0, 10.0)
STEPS = (1, 2, 5, 10, 20, 50, 100)
TINY = 1e-12  # a shot that all metrics find impossible is no more than this unlikely


@dataclass(frozen=True)
class Convex:
    """How the weights of a task are found."""

    rate: float
    steps: int

    def weigh(self, known: MetricAnswers) -> Floats:
        """The weights of the metrics, which sum to one: (metrics,)."""
        able = np.isfinite(known.shots).all(axis=(1, 2))
        truth = known.shots[able, :, known.labels[able]].astype(np.float64)  # (shots, metrics): p_k(y | x)
        logs = np.zeros(known.shots.shape[1])
        for _ in range(self.steps if len(truth) else 0):
            logs += self.rate * (truth / np.maximum(truth @ softmax(logs), TINY)[:, None]).mean(axis=0)
        return softmax(logs)  # type: ignore[no-any-return]

    def answer(self, known: MetricAnswers) -> Floats:
        """p(y | x) of eqn:fsl: (texts, classes)."""
        return blend(self.weigh(known), known.texts)


UNTUNED = Convex(1.0, 2)  # where no task is held out to tune on


def choose_convex(problems: Iterable[tuple[MetricAnswers, Ints]]) -> tuple[Convex, float]:
    """The rate and the number of steps that answer problems most accurately, and how accurately.

    A problem is what metrics answer and the right answers. Of equals the slowest and shortest.
    """
    asked = list(problems)

    def accuracy(gradient: Convex) -> float:
        right = [np.mean(gradient.answer(known).argmax(axis=1) == answers) for known, answers in asked]
        return float(np.mean(right)) if right else 0.0

    scores = {gradient: accuracy(gradient) for gradient in (Convex(rate, steps) for rate in RATES for steps in STEPS)}
    best = max(scores, key=lambda gradient: scores[gradient])
    return best, scores[best]
