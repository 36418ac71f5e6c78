"""How well does a representation serve a task? Larger is always better.

accuracy    the paper's: the share of right answers of a new head, trained on the representation
logme       the log-evidence of a Gaussian linear model of the labels, per example: no head to train
log-loss    the mean log-likelihood of the right answers of a whole model as it is, where tasks share their labels
"""

import numpy as np

from manymetrics.values import Floats, Ints

ACCURACY, LOG_LOSS, LOGME = "accuracy", "log-loss", "logme"
SCORES = (ACCURACY, LOG_LOSS, LOGME)


def accuracy(answers: Ints, labels: Ints) -> float:
    """The share of right answers."""
    return float(np.mean(answers == labels))


def balanced_accuracy(answers: Ints, labels: Ints) -> float:
    """The share of right answers of each label, averaged over the labels that occur."""
    return float(np.mean([np.mean(answers[labels == label] == label) for label in np.unique(labels)]))


def macro_f1(answers: Ints, labels: Ints) -> float:
    """The harmonic mean of precision and recall of each label, averaged over the labels that occur or were answered."""
    seen = np.union1d(answers, labels)
    both = [np.sum((answers == label) & (labels == label)) for label in seen]
    either = [np.sum(answers == label) + np.sum(labels == label) for label in seen]
    return float(np.mean([2 * hit / total for hit, total in zip(both, either, strict=True)]))


def mean_log_likelihood(logs: Floats, labels: Ints) -> float:
    """The mean log-likelihood of the right answers; logs (n, classes)."""
    return float(np.mean(logs[np.arange(len(labels)), labels]))


def log_evidence(features: Floats, labels: Ints, *, classes: int, steps: int = 20) -> float:
    """LogME: the largest log-evidence of labels as linear functions of features, per example, averaged over labels.

    For each label, weights have precision `a` and noise precision `b`; both are set by the usual fixed-point
    iteration. All labels share one eigendecomposition, of the smaller of the two products of the features.
    """
    rows = features.astype(np.float64)  # (n, d)
    n, width = rows.shape
    truth = np.eye(classes)[labels]  # (n, classes)
    squares, shadow = _spectrum(rows, truth)  # (r, 1), (r, classes)
    rest = np.maximum((truth**2).sum(axis=0) - (shadow**2).sum(axis=0), 0.0)  # (classes,)
    a, b = np.ones(classes), np.ones(classes)
    for _ in range(steps):
        used, size, miss = _fit(squares, shadow, rest, a, b)
        a, b = used / np.maximum(size, 1e-12), np.maximum(n - used, 1e-12) / np.maximum(miss, 1e-12)
    _, size, miss = _fit(squares, shadow, rest, a, b)
    spread = np.log(a + b * squares).sum(axis=0) + (width - len(squares)) * np.log(a)
    evidence = 0.5 * (width * np.log(a) + n * np.log(b) - n * np.log(2 * np.pi) - b * miss - a * size - spread)
    return float(evidence.mean() / n)


def _spectrum(rows: Floats, truth: Floats) -> tuple[Floats, Floats]:
    """The squared singular values of the rows, and the truth seen along the left singular vectors."""
    n, width = rows.shape
    squares, vectors = np.linalg.eigh(rows @ rows.T if n < width else rows.T @ rows)
    large = squares > 1e-10 * max(float(squares[-1]), 1e-12)
    squares, vectors = squares[large], vectors[:, large]
    left = vectors if n < width else rows @ (vectors / np.sqrt(squares))  # (n, r)
    return squares[:, None], left.T @ truth


def _fit(squares: Floats, shadow: Floats, rest: Floats, a: Floats, b: Floats) -> tuple[Floats, Floats, Floats]:
    """How many weights are used, how large they are, and what they miss: (classes,) each."""
    total = a + b * squares  # (r, classes)
    used = (b * squares / total).sum(axis=0)
    size = (squares * (b * shadow / total) ** 2).sum(axis=0)
    return used, size, ((a * shadow / total) ** 2).sum(axis=0) + rest
