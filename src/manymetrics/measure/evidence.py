"""What tells tasks apart beside transfer: how similar their label names are, and how near their texts lie.

Transfer between small tasks is noisy. Each kind of evidence is centred by rows and columns, in units of its columns'
deviation, and those that agree with transfer are added to it. Where names or texts say nothing about transfer, it
decides alone, and so it does where all tasks have the same labels: their texts tell what is spoken of, and not what a
label means. Both directions of a pair are averaged in the end: each is a noisy measure of the same.
"""

from dataclasses import dataclass

import numpy as np

from manymetrics.encode.encoder import Encoder, centroid_of, normalize
from manymetrics.values import Floats, TaskBank, TransferMatrix

LEAST_AGREEMENT = 0.05  # correlation with transfer that evidence must have to count


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence about which pairs of tasks are similar."""

    joined: TransferMatrix
    parts: tuple[TransferMatrix, ...]  # that agree on similar pairs: transfer and the rest, or transfer by itself


def similar_names(bank: TaskBank, encoder: Encoder) -> Floats:
    """How similar the label names of two tasks are: the mean cosine of best matches, both ways: (tasks, tasks)."""
    names = [normalize(encoder.encode(task.label_names)) for task in bank]
    similarity = np.zeros((len(bank), len(bank)))
    for first, rows in enumerate(names):
        for other in range(first + 1):
            cosines = rows @ names[other].T  # (labels, labels)
            mean = (cosines.max(axis=0).mean() + cosines.max(axis=1).mean()) / 2
            similarity[first, other] = similarity[other, first] = mean
    return similarity


def similar_texts(bank: TaskBank, encoder: Encoder) -> Floats:
    """The cosine between the centres of two tasks' texts, less what all tasks have in common: (tasks, tasks)."""
    centroids = np.stack([centroid_of(encoder, task.train.texts) for task in bank])  # (tasks, width)
    rows = normalize(centroids - centroids.mean(axis=0))
    return rows @ rows.T  # type: ignore[no-any-return]


def combine_evidence(transfer: TransferMatrix, bank: TaskBank, encoder: Encoder) -> Evidence:
    """Transfer, and the other evidence that agrees with it, as one symmetric matrix; what is unknown stays NaN."""
    measured = standardise(transfer.scores)
    known = np.isfinite(measured) & ~np.eye(len(measured), dtype=bool)
    further, kinds = np.zeros_like(measured), list[str]()  # what agrees; what says the same of all pairs does not
    tried = {} if bank.shared_labels is not None else {"names": similar_names, "texts": similar_texts}
    for kind, similar in tried.items():
        scores = standardise(np.where(np.isfinite(transfer.scores), similar(bank, encoder), np.nan))
        varies = known.sum() > 2 and scores[known].std() and measured[known].std()
        if varies and np.corrcoef(scores[known], measured[known])[0, 1] > LEAST_AGREEMENT:
            further, kinds = further + scores, [*kinds, kind]
    alone = TransferMatrix(transfer.names, average_directions(measured), transfer.score)
    if not kinds:
        return Evidence(alone, (transfer,))
    rest = TransferMatrix(transfer.names, average_directions(further), " + ".join(kinds))
    joined = TransferMatrix(transfer.names, alone.scores + rest.scores, f"{alone.score} + {rest.score}")
    return Evidence(joined, (alone, rest))


def average_directions(scores: Floats) -> Floats:
    """The mean of a pair's two scores, or the one that is known."""
    both = np.stack([scores, scores.T])
    count = np.isfinite(both).sum(axis=0)
    return np.where(count > 0, np.nansum(both, axis=0) / np.maximum(count, 1), np.nan)


def standardise(scores: Floats) -> Floats:
    """Scores centred by columns, in units of the columns' deviation, then by rows; the diagonal is 0."""
    off = scores.astype(np.float64)
    np.fill_diagonal(off, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        count = np.maximum(np.isfinite(off).sum(axis=0), 1)
        mean = np.nansum(off, axis=0) / count
        deviation = np.sqrt(np.nansum((off - mean) ** 2, axis=0) / count)
        off = (off - mean) / np.where(deviation > 0, deviation, 1)
        off -= (np.nansum(off, axis=1) / np.maximum(np.isfinite(off).sum(axis=1), 1))[:, None]
    np.fill_diagonal(off, 0)
    return off  # type: ignore[no-any-return]
