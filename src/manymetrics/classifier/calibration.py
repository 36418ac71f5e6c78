"""Probabilities that mean something: of the answers given with 0.7, seven in ten should be right.

Two things are done to the raw answer p of a mix or of a fallback, and neither changes which label is likeliest:

    p ** (1 / temperature), scaled       temperature scaling, one number a task: what the bank's held-out tasks taught
                                         for so many examples a label, moved a little towards what fits the task's own
                                         examples when each is left out
    share * p + (1 - share) / labels     one number a text: the less it is like anything known, the nearer to uniform;
                                         gibberish cannot be answered with confidence
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

from manymetrics.errors import DataError
from manymetrics.values import Floats, Ints

TRIED = np.linspace(-1.5, 1.5, 31)  # logarithms of the inverse temperature that are tried on a task's own examples
PRIOR_DEVIATION = 0.5  # standard deviation of the prior on them
HALF_AT = 1.5  # log-odds of being out of scope at which half of an answer is left
FARTHEST = 50.0  # from 0, that the logarithm of a temperature can be
_SMALLEST = 1e-9


@dataclass(frozen=True)
class CalibrationCase:
    """What the calibration looks at in a task."""

    fell_back: bool
    examples_per_label: float
    leave_one_out: float  # the logarithm of the inverse temperature that fits its own examples


@dataclass(frozen=True)
class Calibration:
    """The logarithm of the inverse temperature, as a linear function of what is known of a task."""

    offset: float = 0.17
    fell_back: float = -0.23  # added where a fallback answers instead of the mix
    examples: float = 0.15  # of the logarithm of the number of examples a label
    leave_one_out: float = 0.41  # of what fits the task's own examples

    def __post_init__(self) -> None:
        if not all(abs(one) < 100 for one in (self.offset, self.fell_back, self.examples, self.leave_one_out)):
            raise DataError(f"The calibration has weights that cannot be used: {self}.")

    def temperature(self, case: CalibrationCase) -> float:
        """What the logarithms of a task's probabilities are divided by."""
        log_inverse = (
            self.offset
            + self.fell_back * case.fell_back
            + self.examples * np.log(case.examples_per_label)
            + self.leave_one_out * case.leave_one_out
        )
        return float(np.exp(-np.clip(log_inverse, -FARTHEST, FARTHEST)))


def fit_leave_one_out(leave_one_out: Floats, labels: Ints) -> float:
    """The logarithm of the inverse temperature under which the examples, each left out in turn, are likeliest.

    Shrunk towards 0, the more so the fewer examples can be answered (rows of NaN cannot).
    """
    known = np.isfinite(leave_one_out).all(axis=1)
    logs, answers = np.log(np.maximum(leave_one_out[known], _SMALLEST)), labels[known]
    logs -= logs.max(axis=1, keepdims=True)
    right = logs[np.arange(len(answers)), answers]  # (known,)
    losses = [
        (np.log(np.exp(inverse * logs).sum(axis=1)) - inverse * right).sum()
        + np.log(inverse) ** 2 / (2 * PRIOR_DEVIATION**2)
        for inverse in np.exp(TRIED)
    ]
    return float(TRIED[int(np.argmin(losses))])


def share_kept(log_odds: Floats) -> Floats:
    """How much of an answer is kept, by the log-odds that the text is in scope: (texts,)."""
    return expit(log_odds + HALF_AT)  # type: ignore[no-any-return]


def calibrate(probabilities: Floats, temperature: float, kept: Floats) -> Floats:
    """Raw answers (texts, labels) -> probabilities (texts, labels); `kept` (texts,) is the share that is kept."""
    scaled = softmax(np.log(np.maximum(probabilities, _SMALLEST)) / temperature, axis=1)
    return kept[:, None] * scaled + (1 - kept[:, None]) / probabilities.shape[1]  # type: ignore[no-any-return]


def follow_prior(probabilities: Floats, prior: Floats, base: Floats) -> Floats:
    """Probabilities (texts, labels) where labels are as common as `prior` says, not as `base` has it: (labels,) each.

    Bayes' rule: what a text says of its label stays, how common the label is changes.
    """
    shifted = probabilities * (prior / base)
    return shifted / shifted.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class CalibrationEpisode:
    """A held-out task's episode, as it was answered."""

    case: CalibrationCase
    probabilities: Floats  # (texts, labels): raw
    answers: Ints  # (texts,)
    kept: Floats  # (texts,)


def learn_calibration(episodes: Sequence[CalibrationEpisode]) -> Calibration:
    """The calibration under which the right answers of the episodes are likeliest, each episode weighing alike."""
    from scipy.optimize import minimize  # slow to load, and predicting does not need it

    def loss(weights: Floats) -> float:
        calibration = Calibration(*(float(weight) for weight in weights))
        total = 0.0
        for episode in episodes:
            found = calibrate(episode.probabilities, calibration.temperature(episode.case), episode.kept)
            total -= float(np.log(found[np.arange(len(found)), episode.answers]).mean())
        return total / len(episodes) + 1e-3 * float(weights @ weights)

    solved = minimize(loss, np.zeros(4), method="L-BFGS-B", bounds=[(-3, 3)] * 4, options={"maxiter": 50})
    return Calibration(*(float(weight) for weight in solved.x))
