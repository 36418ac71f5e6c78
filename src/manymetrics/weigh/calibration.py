"""Probabilities that mean something: of the answers given with 0.7, seven in ten should be right.

Two things are done to the raw answer p of a mix or of a fallback, and neither changes which label is likeliest:

    p ** sharpness, scaled to sum to one    one number a task (the inverse of a temperature): what the bank's held-out
                                            tasks taught for so many examples a label, moved a little towards what the
                                            task's own examples ask for when each is answered from the others
    faith * p + (1 - faith) / labels        one number a text: the less it is like anything known, the nearer to
                                            uniform; gibberish cannot be answered with confidence
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logsumexp

from manymetrics.values import Floats, Ints

WISHES = np.linspace(-1.5, 1.5, 31)  # logarithms of the sharpness that are tried on a task's own examples
DOUBT = 0.5  # standard deviation of the prior on them
FAITH = 3.0  # log-odds of being out of scope at which half of the faith is gone
_SMALLEST = 1e-9


@dataclass(frozen=True)
class Calibration:
    """The logarithm of the sharpness, as a linear function of what is known of a task."""

    mix: float = 0.17
    alone: float = -0.23  # where a fallback answers instead of the mix
    examples: float = 0.15  # of the logarithm of the number of examples a label
    wish: float = 0.41  # of what the task's own examples ask for

    def sharpness(self, case: "Case") -> float:
        """What the probabilities of a task are raised to."""
        return float(np.exp(_features(case) @ np.array([self.mix, self.alone, self.examples, self.wish])))


@dataclass(frozen=True)
class Case:
    """What calibration looks at in a task."""

    fell_back: bool
    per_label: float  # examples
    wish: float


def own_wish(left_out: Floats, labels: Ints) -> float:
    """The logarithm of the sharpness under which the examples, each answered from the others, are likeliest.

    Drawn towards 0, the more so the fewer examples can be answered (rows of NaN cannot).
    """
    known = np.isfinite(left_out).all(axis=1)
    logs, answers = np.log(np.maximum(left_out[known], _SMALLEST)), labels[known]
    logs -= logs.max(axis=1, keepdims=True)
    right = logs[np.arange(len(answers)), answers]  # (known,)
    losses = [
        (np.log(np.exp(sharp * logs).sum(axis=1)) - sharp * right).sum() + np.log(sharp) ** 2 / (2 * DOUBT**2)
        for sharp in np.exp(WISHES)
    ]
    return float(WISHES[int(np.argmin(losses))])


def faith(log_odds: Floats) -> Floats:
    """How much of an answer survives, by the log-odds that the text is in scope: (texts,)."""
    return expit(log_odds + FAITH)  # type: ignore[no-any-return]


def calibrate(chances: Floats, sharpness: float, trusted: Floats) -> Floats:
    """Raw answers (texts, labels) -> probabilities (texts, labels)."""
    logs = sharpness * np.log(np.maximum(chances, _SMALLEST))
    sharp = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    return trusted[:, None] * sharp + (1 - trusted[:, None]) / chances.shape[1]  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Lesson:
    """A held-out task's few-shot problem, as it was answered."""

    case: Case
    chances: Floats  # (texts, labels): raw
    answers: Ints  # (texts,)
    trusted: Floats  # (texts,)


def learn_calibration(lessons: Sequence[Lesson]) -> Calibration:
    """The calibration under which the right answers of the lessons are likeliest, each lesson weighing alike."""
    from scipy.optimize import minimize  # slow to load, and predicting does not need it

    def loss(weights: Floats) -> float:
        calibration = Calibration(*(float(weight) for weight in weights))
        total = 0.0
        for lesson in lessons:
            found = calibrate(lesson.chances, calibration.sharpness(lesson.case), lesson.trusted)
            total -= float(np.log(found[np.arange(len(found)), lesson.answers]).mean())
        return total / len(lessons) + 1e-3 * float(weights @ weights)

    solved = minimize(loss, np.zeros(4), method="L-BFGS-B", bounds=[(-3, 3)] * 4, options={"maxiter": 50})
    return Calibration(*(float(weight) for weight in solved.x))


def _features(case: Case) -> Floats:
    return np.array([1.0, float(case.fell_back), np.log(case.per_label), case.wish])
