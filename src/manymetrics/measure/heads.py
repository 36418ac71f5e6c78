"""Frozen features -> a classifier on top: multinomial logistic regression, solved to convergence.

The paper trains the new head by gradient descent; the problem is convex, so it is solved instead, and two runs agree.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

from manymetrics.errors import DidNotConverge
from manymetrics.values import Floats, Ints

TOLERANCE = 1e-3
PENALTY = 1.0  # inverse variance of the Gaussian prior on the weights


@dataclass(frozen=True, eq=False)
class Head:
    """A softmax over linear functions of the features."""

    weights: Floats  # (features, classes)
    offset: Floats  # (classes,)

    def probabilities(self, features: Any) -> Floats:
        """P(label | features): (n, classes)."""
        return softmax(features @ self.weights + self.offset, axis=1)  # type: ignore[no-any-return]

    def log_probabilities(self, features: Any) -> Floats:
        """The logarithm of `probabilities`: (n, classes)."""
        return log_softmax(features @ self.weights + self.offset, axis=1)  # type: ignore[no-any-return]


def fit_head(features: Floats, labels: Ints, *, classes: int, max_steps: int = 1000) -> Head:
    """The most likely softmax regression under a Gaussian prior on its weights.

    Features are centred and brought to a common scale, so that one penalty serves every encoder and the problem is well
    conditioned. Solved until no slope of the mean loss exceeds `TOLERANCE`.
    """
    from scipy.optimize import minimize  # slow to load, and predicting does not need it

    centroid = features.mean(axis=0, dtype=np.float64).astype(np.float32)  # (d,)
    scale = np.float32(np.sqrt(np.mean(np.square(features - centroid, dtype=np.float64))) or 1.0)
    rows = (features - centroid) / scale  # (n, d) float32
    start = np.zeros((rows.shape[1] + 1) * classes)
    start[-classes:] = np.log((np.bincount(labels, minlength=classes) + 0.5) / len(rows))
    options = {"maxiter": max_steps, "gtol": TOLERANCE, "ftol": 1e-8, "maxcor": 10}
    solved = minimize(_loss_and_slope, start, args=(rows, labels), jac=True, method="L-BFGS-B", options=options)
    if solved.status == 1:
        warnings.warn(
            f"A softmax regression stopped after {solved.nit} steps with slope {np.abs(solved.jac).max():.1e} "
            f"(wanted {TOLERANCE:.1e}). Allow more steps.",
            DidNotConverge,
            stacklevel=2,
        )
    both = solved.x.astype(np.float32).reshape(-1, classes)  # (d + 1, classes)
    weights = both[:-1] / scale
    return Head(weights, both[-1] - centroid @ weights)


def _loss_and_slope(flat: Floats, rows: Floats, labels: Ints) -> tuple[float, Floats]:
    """The mean loss of a regression over rows (n, d), and its slope."""
    n, indices = len(rows), np.arange(len(rows))
    both = flat.astype(np.float32).reshape(rows.shape[1] + 1, -1)  # (d + 1, classes)
    weights = both[:-1]
    logits = rows @ weights + both[-1]  # (n, classes)
    logits -= logits.max(axis=1, keepdims=True)
    over = np.exp(logits)
    totals = over.sum(axis=1, keepdims=True)  # (n, 1)
    loss = float(np.log(totals).sum() - logits[indices, labels].sum() + 0.5 * PENALTY * np.vdot(weights, weights))
    over /= totals
    over[indices, labels] -= 1  # P - truth
    slope = np.concatenate([(rows.T @ over + PENALTY * weights).ravel(), over.sum(axis=0)])
    return loss / n, slope.astype(np.float64) / n
