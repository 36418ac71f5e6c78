"""A few labelled examples and a text's cosines with them -> P(y | x): a regression over the single examples.

Texts are described by their cosines with the landmarks, rotated so that inner products are cosines again. Labels weigh
alike, however many examples each has: people give many examples of one label and one of another.

Ridge      squared errors, solved in closed form: the same solution says what each example would have been answered
           without itself, exactly and without a second fit
Logistic   the likelihood of the labels, in steps that begin at the ridge regression; this one's answers to examples
           left out stand for its own, which would take a fit for each
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import softmax

from manymetrics.specialize.metric import only_examples
from manymetrics.values import Floats, Ints

PENALTY = 0.3  # of squared errors; 0.1 and 1 do as well on held-out tasks of the bank
TEMPERATURE = 9.0  # of what squared errors give
LIKELIHOOD_PENALTY = 0.05  # on squared weights, beside the likelihood; 0.015 and 0.15 do as well on held-out tasks
MOST_STEPS, LEAST_SLOPE = 40, 1e-3  # further steps change next to no answer on held-out tasks
_JITTER = 1e-3  # above the rounding of a thousand cosines, below the penalty


class Ridge:
    """The labels as a linear function of kernel values: sums of cosines."""

    def __init__(self, kernel: Floats, landmarks: Ints, labels: Ints, classes: int) -> None:
        """`kernel` (examples, landmarks) compares the examples with those at the places `landmarks`."""
        kernel = kernel + 1  # for the offset
        root = np.linalg.cholesky(kernel[landmarks] + _JITTER * np.eye(len(landmarks)))
        self._turn = np.linalg.inv(root).T  # (landmarks, landmarks)
        self._rows = rows = kernel @ self._turn  # (examples, landmarks)
        self._labels = labels
        self._truth = np.eye(classes)[labels]  # (examples, classes)
        counts = np.bincount(labels, minlength=classes)
        self._counts = (len(labels) / (classes * counts[labels]))[:, None]  # (examples, 1): every label weighs alike
        weighted, truth = self._counts * rows, self._truth - 1 / classes
        inverse = np.linalg.inv(rows.T @ weighted + PENALTY * np.eye(len(landmarks)))
        found = inverse @ (weighted.T @ truth)  # (landmarks, classes)
        leverage = np.einsum("ik,ik->i", rows @ inverse, weighted)  # (examples,): how far each pulls its own answer
        scores = rows @ found
        self._weights = TEMPERATURE * found
        self._left_out = TEMPERATURE * (scores - (leverage / (1 - leverage))[:, None] * (truth - scores))

    def probabilities(self, kernel: Floats) -> Floats:
        """P(y | x) for texts (texts, landmarks): (texts, classes)."""
        return softmax((kernel + 1) @ self._turn @ self._weights, axis=1)  # type: ignore[no-any-return]

    def leave_one_out(self) -> Floats:
        """P(y | x) for each example had it not been given: (examples, classes); NaN where its label would be empty."""
        probabilities = softmax(self._left_out, axis=1)
        probabilities[only_examples(self._labels)] = np.nan
        return probabilities  # type: ignore[no-any-return]


class Logistic(Ridge):
    """The weights under which the labels are likeliest, small ones before large ones."""

    def __init__(self, kernel: Floats, landmarks: Ints, labels: Ints, classes: int) -> None:
        """Accelerated steps under one bound of the curvature: no softmax curves more than a half (Böhning's bound)."""
        super().__init__(kernel, landmarks, labels, classes)
        rows, penalty = self._rows, LIKELIHOOD_PENALTY * np.eye(len(landmarks))
        bound = cho_factor(rows.T @ (self._counts * rows) / 2 + penalty)
        found = ahead = self._weights  # (landmarks, classes)
        pace = 1.0
        for _ in range(MOST_STEPS):
            wrong = self._counts * (softmax(rows @ ahead, axis=1) - self._truth)  # (examples, classes)
            slope = rows.T @ wrong + LIKELIHOOD_PENALTY * ahead
            if np.abs(slope).max() <= LEAST_SLOPE:
                break
            before, found = found, ahead - cho_solve(bound, slope)
            if np.vdot(ahead - found, found - before) > 0:  # the last stride went too far
                pace = 1.0
            faster = (1 + np.sqrt(1 + 4 * pace**2)) / 2
            ahead, pace = found + (pace - 1) / faster * (found - before), faster
        self._weights = found
