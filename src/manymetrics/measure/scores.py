"""How well does a representation serve a task? Four answers; larger is always better.

accuracy            the paper's: share of right answers
balanced-accuracy   the same, each label counting alike
log-loss            the mean log-likelihood of the right answers (so its negative is the loss)
logme               the log-evidence of a Gaussian linear model of the labels, per example: no head to train
"""

import numpy as np

from manymetrics.values import Floats, Ints

ACCURACY, BALANCED, LOG_LOSS, LOGME = "accuracy", "balanced-accuracy", "log-loss", "logme"
SCORES = (ACCURACY, BALANCED, LOG_LOSS, LOGME)


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
    iteration, which needs one decomposition of the features for all labels.
    """
    rows = features.astype(np.float64)
    n, width = rows.shape
    left, sizes, _ = np.linalg.svd(rows, full_matrices=False)  # (n, r), (r,)
    squares = sizes**2  # (r,)
    evidences = []
    for label in range(classes):
        target = (labels == label).astype(np.float64)  # (n,)
        shadow = left.T @ target  # (r,)
        rest = max(float(target @ target - shadow @ shadow), 0.0)
        a = b = 1.0
        for _ in range(steps):
            used = float(np.sum(b * squares / (a + b * squares)))
            size = float(np.sum((b * sizes * shadow / (a + b * squares)) ** 2))
            miss = float(np.sum((a * shadow / (a + b * squares)) ** 2)) + rest
            a, b = used / max(size, 1e-12), max(n - used, 1e-12) / max(miss, 1e-12)
        size = float(np.sum((b * sizes * shadow / (a + b * squares)) ** 2))
        miss = float(np.sum((a * shadow / (a + b * squares)) ** 2)) + rest
        spread = float(np.sum(np.log(a + b * squares))) + (width - len(sizes)) * np.log(a)
        evidence = 0.5 * (width * np.log(a) + n * np.log(b) - n * np.log(2 * np.pi) - b * miss - a * size - spread)
        evidences.append(evidence / n)
    return float(np.mean(evidences))
