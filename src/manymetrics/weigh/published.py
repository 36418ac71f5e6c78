"""The paper's mix, tuned as the paper tunes it: rate and number of gradient steps by accuracy on meta-validation tasks.

Metrics answer the shots and the texts of a problem once (`ask`); every rate and number of steps is tried on that.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from manymetrics.encode.encoder import Features
from manymetrics.specialize.metric import LEARNED, Metric, answer_examples
from manymetrics.values import Episode, Floats, Ints, LabelledTexts, Texts
from manymetrics.weigh.mix import PAPER_RATE, PAPER_STEPS, blend, descend_as_published, fit_mix_as_published

RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
STEPS = (1, 2, 3, 5, 10, 20, 40, 100)
MOST_SHOTS = 100  # of an episode that rate and steps are chosen on


@dataclass(frozen=True)
class Descent:
    """How the weights of a task are found."""

    rate: float = PAPER_RATE
    steps: int = PAPER_STEPS


@dataclass(frozen=True, eq=False)
class Known:
    """What each metric answers on a task."""

    shots: Floats  # (shots, metrics, classes): NaN where a shot is its label's only one
    labels: Ints  # (shots,)
    texts: Floats  # (texts, metrics, classes)

    def answer(self, descent: Descent) -> Floats:
        """p(y | x) of eqn:fsl: (texts, classes)."""
        weights = fit_mix_as_published(self.shots, self.labels, rate=descent.rate, steps=descent.steps).weights
        return blend(weights, self.texts)

    @property
    def best_accuracy(self) -> float:
        """How many of the shots that can be left out the best metric answers; infinite where none can be."""
        known = np.isfinite(self.shots).all(axis=(1, 2))
        if not known.any():
            return float("inf")
        right = self.shots[known].argmax(axis=2) == self.labels[known][:, None]  # (shots, metrics)
        return float(right.mean(axis=0).max())


def ask(metrics: Sequence[Metric], shots: LabelledTexts, texts: Texts, classes: tuple[str, ...]) -> Known:
    """Every metric's answers on the shots and the texts of a task."""
    features, asked = Features(shots.texts), Features(texts)
    fitted = [metric.learn(features, shots.labels, classes) for metric in metrics]
    return Known(
        np.stack([answer_examples(one, features) for one in fitted], axis=1),
        shots.labels,
        np.stack([one.probabilities(asked) for one in fitted], axis=1),
    )


def choose_descent(problems: Iterable[tuple[Known, Ints]]) -> tuple[Descent, float]:
    """The rate and the number of steps that answer problems most accurately, and how accurately.

    A problem is what metrics answer and the right answers. Of equals the slowest and shortest.
    """
    accuracies = [_accuracies(known, answers) for known, answers in problems]
    mean = np.mean(accuracies, axis=0) if accuracies else np.zeros((len(RATES), len(STEPS)))  # (rates, steps)
    rate, steps = divmod(int(mean.argmax()), len(STEPS))
    return Descent(RATES[rate], STEPS[steps]), float(mean.max())


def _accuracies(known: Known, answers: Ints) -> Floats:
    """By rate and number of steps: (rates, steps)."""
    found = np.zeros((len(RATES), len(STEPS)))
    for row, rate in enumerate(RATES):
        path, _ = descend_as_published(known.shots, known.labels, rate=rate, steps=max(STEPS))
        for column, steps in enumerate(STEPS):
            guesses = blend(path[min(steps, len(path) - 1)], known.texts).argmax(axis=1)
            found[row, column] = np.mean(guesses == answers)
    return found


def tune_descent(metrics: Sequence[Metric], episodes: Sequence[Episode]) -> Descent:
    """The rate and steps that mix the clusters' metrics most accurately on held-out tasks' few-shot problems."""
    learned = [metric for metric in metrics if metric.kind == LEARNED]
    few = [episode for episode in episodes if len(episode.support) <= MOST_SHOTS]
    if len(learned) < 2 or not few:
        return Descent()
    asked = ((ask(learned, one.support, one.query.texts, one.classes), one.query.labels) for one in few)
    return choose_descent(asked)[0]
