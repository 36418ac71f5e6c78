"""Calibrated probabilities: of the answers given with 0.7, seven in ten should be correct.

    p  =  shrinkage * softmax(logits / temperature)  +  (1 - shrinkage) / classes
    log temperature  =  intercept + classes * log(number of labels) + own * log(temperature of the left-out shots)

The coefficients are learned on held-out bank tasks and shrunk towards defaults that hold over several banks; the number
of labels is clipped to what was seen. The shrinkage factor falls towards zero for texts far from every example, so that
gibberish is not answered with confidence. Neither changes which label is the most probable.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, log_softmax, softmax

from manymetrics.errors import DataError, InputError
from manymetrics.values import Floats, Ints

PRIOR_TEMPERATURE, PRIOR_DEVIATION = 0.7, 0.5  # of a task's own temperature; the deviation is that of the logarithm
TEMPERATURES = np.exp(np.linspace(np.log(0.1), np.log(5.0), 60))
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.05, 20.0
PRIOR_TASKS = 0.05  # penalty on the distance from the defaults, times the number of held-out tasks
Number = float | int | np.bool_ | np.number
HALF_AT = 4.0  # log-odds of being out of scope at which the shrinkage is one half; 4 costs nothing in scope


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


@dataclass(frozen=True, eq=False)
class CalibrationEpisode:
    """An episode of a held-out task: the logits and labels of its queries, and what its shots say."""

    logits: Floats  # (texts, classes)
    labels: Ints  # (texts,)
    own_temperature: float


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


def learn_calibration(episodes: Sequence[CalibrationEpisode], n_tasks: int) -> Calibration:
    """Least squares from what is known of an episode to the logarithm of the temperature that fits its queries.

    The episodes are of `n_tasks` held-out tasks; the coefficients are shrunk towards the defaults.
    """
    default = Calibration()
    start = np.array([default.intercept, default.classes, default.own])
    sizes = [episode.logits.shape[1] for episode in episodes]
    temperatures = np.log([episode.own_temperature for episode in episodes])
    design = np.column_stack([np.ones(len(episodes)), np.log(sizes), temperatures])
    best = np.log([fit_own_temperature(episode.logits, episode.labels) for episode in episodes])
    penalty = PRIOR_TASKS / max(n_tasks, 1) * np.eye(len(start))
    residuals = design.T @ (best - design @ start) / len(episodes)
    solved = start + np.linalg.solve(design.T @ design / len(episodes) + penalty, residuals)
    intercept, classes, own_slope = solved.tolist()
    return Calibration(intercept, classes, own_slope, max(sizes))
