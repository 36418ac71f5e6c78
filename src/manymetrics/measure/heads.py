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


def fit_head(features: Floats, labels: Ints, *, classes: int, penalty: float = 1.0, max_steps: int = 1000) -> Head:
    """The most likely softmax regression under a Gaussian prior on its weights (`penalty` = inverse variance).

    Features are centred and brought to a common scale, so that one penalty serves every encoder and the problem is well
    conditioned. Solved until no slope of the mean loss exceeds `TOLERANCE`.
    """
    centroid = features.mean(axis=0, dtype=np.float64).astype(np.float32)  # (d,)
    scale = np.float32(np.sqrt(np.mean(np.square(features - centroid, dtype=np.float64))) or 1.0)
    rows = (features - centroid) / scale  # (n, d) float32
    options = {"maxiter": max_steps, "gtol": TOLERANCE, "ftol": 1e-8, "maxcor": 10}
    head = solve_softmax(rows, rows.T, labels, classes=classes, penalty=penalty, options=options)
    weights = head.weights / scale
    return Head(weights, head.offset - centroid @ weights)


def solve_softmax(rows: Any, across: Any, labels: Ints, *, classes: int, penalty: float,
                  options: dict[str, Any]) -> Head:  # fmt: skip
    """The regression over rows (n, d) as they are, dense or sparse; `across` is their transpose, ready to multiply.

    `options` are those of scipy's L-BFGS-B, for the mean loss.
    """
    from scipy.optimize import minimize  # slow to load, and predicting does not need it

    n, width = rows.shape
    indices = np.arange(n)

    def loss_and_slope(flat: Floats) -> tuple[float, Floats]:
        weights, offset = _unfold(flat.astype(np.float32), width, classes)
        logits = rows @ weights + offset  # (n, classes)
        logits -= logits.max(axis=1, keepdims=True)
        over = np.exp(logits)
        totals = over.sum(axis=1, keepdims=True)  # (n, 1)
        loss = float(np.log(totals).sum() - logits[indices, labels].sum() + 0.5 * penalty * np.vdot(weights, weights))
        over /= totals
        over[indices, labels] -= 1  # P - truth
        slope = np.concatenate([(across @ over + penalty * weights).ravel(), over.sum(axis=0)])
        return loss / n, slope.astype(np.float64) / n

    start = np.zeros(width * classes + classes)
    start[-classes:] = np.log((np.bincount(labels, minlength=classes) + 0.5) / n)
    solved = minimize(loss_and_slope, start, jac=True, method="L-BFGS-B", options=options)
    if solved.status == 1:
        warnings.warn(
            f"A softmax regression stopped after {solved.nit} steps with slope {np.abs(solved.jac).max():.1e} "
            f"(wanted {options['gtol']:.1e}). Allow more steps, or raise the penalty.",
            DidNotConverge,
            stacklevel=3,
        )
    return Head(*_unfold(solved.x.astype(np.float32), width, classes))


def _unfold(flat: Floats, width: int, classes: int) -> tuple[Floats, Floats]:
    return flat[:-classes].reshape(width, classes), flat[-classes:]
