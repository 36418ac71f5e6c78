"""Baseline (6) of the paper, as it is called there: a convex combination of all single-task models.

The weights of the models are on the simplex. They begin even, and each step of exponentiated gradient descent makes a
model weigh more the likelier it makes the shots than all do together:

    a_k  <-  a_k exp(rate * mean over shots of  p_k(y | x) / p(y | x)),  then scaled to sum to one

Rate and number of steps are tuned on meta-validation tasks, as the paper tunes those of eqn:fsl.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from experiments.problems import choose
from experiments.published import ask
from manymetrics.evaluation.baselines import likeliest
from manymetrics.evaluation.targets import Method
from manymetrics.specialize import Metric
from manymetrics.values import Floats, Task, TaskBank
from manymetrics.weigh.mix import blend
from manymetrics.weigh.published import Known

RATES = (0.1, 0.3, 1.0, 3.0, 10.0)
STEPS = (1, 2, 5, 10, 20, 50, 100)
TINY = 1e-12  # a shot that all models find impossible is no more than this unlikely


@dataclass(frozen=True)
class Descent:
    """How the weights of a task are found."""

    rate: float
    steps: int

    def weigh(self, known: Known) -> Floats:
        """The weights of the models, which sum to one: (models,)."""
        able = np.isfinite(known.shots).all(axis=(1, 2))
        truth = known.shots[able, :, known.labels[able]].astype(np.float64)  # (shots, models): p_k(y | x)
        logs = np.zeros(known.shots.shape[1])
        for _ in range(self.steps if len(truth) else 0):
            logs += self.rate * (truth / np.maximum(truth @ softmax(logs), TINY)[:, None]).mean(axis=0)
        return softmax(logs)  # type: ignore[no-any-return]

    def answer(self, known: Known) -> Floats:
        """The combination's answers: (texts, classes)."""
        return blend(self.weigh(known), known.texts)


def combine(metrics: Sequence[Metric], descent: Descent) -> Method:
    """Answers by all models together."""
    return lambda task: likeliest(task, descent.answer(ask(metrics, task)))


def choose_descent(metrics: Callable[[Task], Sequence[Metric]], problems: TaskBank) -> Descent:
    """The rate and the number of steps that answer problems most accurately; of equals the slowest and shortest."""
    known = {task.name: ask(metrics(task), task) for task in problems}

    def make(descent: Descent) -> Method:
        return lambda task: likeliest(task, descent.answer(known[task.name]))

    return choose([Descent(rate, steps) for rate in RATES for steps in STEPS], make, problems)
