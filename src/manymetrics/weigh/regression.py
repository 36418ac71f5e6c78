"""A kernel and labels -> P(y | x): logistic regression in a task's metric, every label with the same total weight.

    minimize   sum_i w_i * -log P(y_i | x_i)  +  L2 / 2 * |coefficients|^2

The rows of the kernel matrix are mapped to features whose inner products are the kernel (Nystroem's method over
landmarks, exact where every example is one), so the coefficients are those of a linear model. The solver starts at the
solution for squared errors and takes accelerated steps under Boehning's bound: no softmax has a curvature above 1/2.

`leave_out` fits the regression again for each group of examples with the weights of these examples set to zero. A
zero weight is the same as leaving an example out, because the solution lies in the span of the weighted examples.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import softmax

from manymetrics.values import Floats, Ints

L2 = 0.1  # penalty on the coefficients
SQUARES_L2 = 0.18  # penalty of the starting solution for squared errors
SQUARES_SCALE = 9.0  # logits per unit of its solution
INTERCEPT = 1.0  # added to the kernel, so that an intercept is penalized like the other coefficients
MAX_ITER, TOLERANCE = 40, 1e-3  # further steps change next to no answer on held-out bank tasks
JITTER = 1e-3  # on the diagonal of the landmarks' kernel: above rounding, below the penalty
MAX_FOLDS, MIN_FOLDS = 40, 5  # refits for leaving examples out; of more examples several are left out at once
MAX_FOLD_SIZE = 1e7  # folds * examples * landmarks * classes: milliseconds for each step of the solver


@dataclass(frozen=True, eq=False)
class Regression:
    """A fitted regression: the logits of texts are kernel (texts, landmarks) @ dual + intercept."""

    features: Floats  # (examples, landmarks): the examples' features
    targets: Floats  # (examples, classes): one-hot labels
    sample_weight: Floats  # (examples,)
    offset: Floats  # (examples, classes): known logits that the regression adds to
    to_features: Floats  # (landmarks, landmarks): kernel rows -> features
    l2: float = L2  # penalty

    @cached_property
    def least_squares(self) -> tuple[Floats, Floats]:
        """The regression for squared errors: (landmarks, examples), what maps residuals to its coefficients, and these.

        Residuals are what is left of the targets by what is known: (examples, classes).
        """
        weighted = self.sample_weight[:, None] * self.features
        penalty = SQUARES_L2 * np.eye(self.features.shape[1])
        solution = np.linalg.solve(self.features.T @ weighted + penalty, weighted.T)
        return solution, self.targets - softmax(self.offset, axis=1)

    @cached_property
    def coefficients(self) -> Floats:
        """The minimum: (landmarks, classes)."""
        solution, residuals = self.least_squares
        start = SQUARES_SCALE * solution @ residuals
        return _solve(self, start[None], self.sample_weight[None])[0]  # type: ignore[no-any-return]

    @cached_property
    def dual(self) -> Floats:
        """What kernel values with the landmarks are multiplied with: (landmarks, classes)."""
        return self.to_features @ self.coefficients

    @cached_property
    def intercept(self) -> Floats:
        """Added to the logits: (classes,)."""
        return INTERCEPT * self.dual.sum(axis=0)  # type: ignore[no-any-return]

    def leave_out(self, examples: Ints) -> Floats:
        """Logits of some examples, each fitted without itself: (examples, classes).

        Exact, up to the tolerance of the solver, for up to MAX_FOLDS examples; of more, several are left out in the
        same fit. Where a problem is too large for MIN_FOLDS fits, the regression for squared errors is left out of
        instead, whose answers follow from one fit.
        """
        if not len(examples):
            return np.zeros((0, self.targets.shape[1]))
        affordable = int(MAX_FOLD_SIZE / (self.features.size * self.targets.shape[1]))
        if affordable < min(MIN_FOLDS, len(examples)):
            solution, residuals = self.least_squares
            leverage = np.einsum("em,me->e", self.features, solution)[:, None]
            scores = self.features @ (solution @ residuals)
            left_out = SQUARES_SCALE * (scores - leverage / (1 - leverage) * (residuals - scores))
            return self.offset[examples] + left_out[examples]  # type: ignore[no-any-return]
        n_folds = min(len(examples), MAX_FOLDS, affordable)
        fold_of = np.arange(len(examples)) % n_folds
        weights = np.repeat(self.sample_weight[None], n_folds, axis=0)  # (folds, examples)
        weights[fold_of, examples] = 0.0
        coefficients = _solve(self, self.coefficients[None], weights)
        added = np.einsum("em,emc->ec", self.features[examples], coefficients[fold_of])
        return self.offset[examples] + added  # type: ignore[no-any-return]


def fit_regression(kernel: Floats, landmarks: Ints, labels: Ints, n_classes: int,
                   offset: Floats | None = None, *, l2: float = L2) -> Regression:  # fmt: skip
    """From kernel values (examples, landmarks), labels (examples,) and known logits (examples, classes).

    The problem is solved when its coefficients are first read.
    """
    gram = kernel[landmarks] + INTERCEPT + JITTER * np.eye(len(landmarks))
    to_features = np.linalg.inv(np.linalg.cholesky(gram)).T  # features whose inner products are the kernel
    targets = np.eye(n_classes)[labels]
    sample_weight = len(labels) / (n_classes * np.bincount(labels, minlength=n_classes)[labels])
    known = np.zeros(targets.shape) if offset is None else offset
    return Regression((kernel + INTERCEPT) @ to_features, targets, sample_weight, known, to_features, l2)


def _solve(problem: Regression, start: Floats, weights: Floats) -> Floats:
    """Coefficients (fits, landmarks, classes) for several sample weights (fits, examples), none above the problem's.

    All fits share one bound on the curvature. A fit restarts its momentum when a step went too far.
    """
    features, n_features = problem.features, problem.features.shape[1]
    curvature = features.T @ (problem.sample_weight[:, None] * features) / 2
    bound = cho_factor(curvature + problem.l2 * np.eye(n_features))
    current = extrapolated = np.repeat(start, len(weights), axis=0)
    momentum = np.ones(len(weights))
    for _ in range(MAX_ITER):
        errors = softmax(features @ extrapolated + problem.offset, axis=2) - problem.targets
        gradient = features.T @ (weights[:, :, None] * errors) + problem.l2 * extrapolated  # (fits, landmarks, classes)
        if np.abs(gradient).max() <= TOLERANCE:
            break
        columns = gradient.transpose(1, 0, 2)  # (landmarks, fits, classes)
        step = cho_solve(bound, columns.reshape(n_features, -1)).reshape(columns.shape).transpose(1, 0, 2)
        previous, current = current, extrapolated - step
        too_far = np.einsum("fmc,fmc->f", extrapolated - current, current - previous) > 0
        momentum = np.where(too_far, 1.0, momentum)
        increased = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        factor = ((momentum - 1) / increased)[:, None, None]
        extrapolated, momentum = current + factor * (current - previous), increased
    return current
