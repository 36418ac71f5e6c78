"""Whether the metrics learned from the bank fit a task at all; where they do not, the frozen encoders answer alone.

Paper: "Adaptive RobustTC-FSL", which falls back below 20 % accuracy on the shots. Two reasons to fall back here:

    better without   left-out shots are answered better in the metric of the frozen encoders alone: more of them
                     correctly, by a margin, and with a higher likelihood
    chance           left-out shots are answered no better than if labels had been assigned at random: a permutation
                     test of the labels, on the regression for squared errors, whose leave-one-out answers are exact
                     and linear in the labels
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from manymetrics.values import Floats, Ints
from manymetrics.weigh.regression import SQUARES_L2
from manymetrics.weigh.task_metric import TaskHead

MARGIN, MIN_MORE = 0.05, 2  # of left-out shots answered correctly: as a share, and in number
MIN_PER_LABEL = 8  # shots, for the permutation test; with fewer, tasks that fit often do not pass it either
MAX_P_VALUE = 0.1
N_PERMUTATIONS = 199
MAX_LEFT_OUT = 200  # shots, evenly chosen


@dataclass(frozen=True, eq=False)
class LeftOutShots:
    """The answers to shots that are left out."""

    logits: Floats  # (left out, classes)
    labels: Ints  # (left out,)


def leave_out_shots(head: TaskHead, n_shots: int) -> LeftOutShots:
    """Every shot, or MAX_LEFT_OUT of them, answered from the others; the only example of a label is omitted."""
    labels = head.labels
    known = np.flatnonzero(np.bincount(labels)[labels[:n_shots]] > 1)
    if len(known) > MAX_LEFT_OUT:
        known = known[np.linspace(0, len(known) - 1, MAX_LEFT_OUT).round().astype(np.int64)]
    return LeftOutShots(head.regression.leave_out(known), labels[known])


def why_better_without(learned: LeftOutShots, frozen: LeftOutShots) -> str | None:
    """The reason to fall back, where the frozen encoders alone answer left-out shots better; else None."""
    n_shots, both = len(learned.labels), (learned, frozen)
    n_learned, n_frozen = (int((shots.logits.argmax(axis=1) == shots.labels).sum()) for shots in both)
    likelihood_learned, likelihood_frozen = (
        log_softmax(shots.logits, axis=1)[np.arange(n_shots), shots.labels].sum() for shots in both
    )
    if n_frozen - n_learned < max(MIN_MORE, MARGIN * n_shots) or likelihood_frozen <= likelihood_learned:
        return None
    return (
        f"No cluster fits this task: of {n_shots} examples left out in turn, {n_learned} are answered "
        f"correctly with the encoders learned from the bank and {n_frozen} without. The frozen encoder answers "
        "alone."
    )


def why_chance(head: TaskHead, shots: Sequence[str]) -> str | None:
    """The reason to fall back, where the shots' labels could have been assigned at random; else None."""
    n_shots, n_classes = len(shots), head.regression.targets.shape[1]
    if n_shots < MIN_PER_LABEL * n_classes or len(head.metric.landmarks) < len(head.labels):
        return None
    digest = hashlib.sha256("\n".join(shots).encode("utf-8", "surrogatepass")).digest()
    features, rng = head.regression.features, np.random.default_rng(list(digest))
    p_value = permutation_p_value(features @ features.T, head.labels[:n_shots], n_classes, rng)
    if p_value <= MAX_P_VALUE:
        return None
    return (
        f"No metric fits this task: its {n_shots} examples answer one another no better than examples whose labels are "
        f"assigned at random (p = {p_value:.2f}). The frozen encoder answers alone; `doctor` shows which labels are "
        "confused."
    )


def permutation_p_value(kernel: Floats, labels: Ints, n_classes: int, rng: np.random.Generator) -> float:
    """How often permuted labels are predicted as well from the other shots as these are.

    kernel (rows, rows), with the intercept; labels (shots,) of the first rows. Further rows are the names of the
    classes, in order. A margin is the score of a shot's own label less the mean of all labels; it is linear in the
    targets of the shots of that label alone, as targets and scores sum to zero over the labels.
    """
    n_shots = len(labels)
    hat = np.linalg.solve(kernel + SQUARES_L2 * np.eye(len(kernel)), kernel).T
    leverage = np.diag(hat)[:, None]
    left_out = ((hat - np.diag(np.diag(hat))) / (1 - leverage))[:n_shots]  # targets -> leave-one-out scores
    from_names = left_out[:, n_shots:] @ (np.eye(n_classes) - 1 / n_classes)[: len(kernel) - n_shots]
    from_names -= left_out[:, :n_shots].sum(axis=1, keepdims=True) / n_classes
    ends = np.cumsum(np.bincount(labels, minlength=n_classes))[:-1]

    def statistic(permuted: Ints) -> float:
        """The mean margin of a label's shots, averaged over labels."""
        shots = np.split(np.argsort(permuted, kind="stable"), ends)  # of each label
        margins = [
            (left_out[np.ix_(members, members)].sum() + from_names[members, label].sum()) / len(members)
            for label, members in enumerate(shots)
            if len(members)
        ]
        return float(np.mean(margins))

    observed = statistic(labels)
    exceeded = sum(statistic(rng.permutation(labels)) >= observed for _ in range(N_PERMUTATIONS))
    return (1 + exceeded) / (1 + N_PERMUTATIONS)
