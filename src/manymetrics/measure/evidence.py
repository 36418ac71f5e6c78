"""What tells tasks apart beside transfer: how alike their labels are called, and how near their texts lie.

Transfer between small tasks is noisy. Each kind of evidence is centred by rows and columns, in units of its columns'
deviation, and those that agree with transfer are added to it. Where names or texts say nothing about transfer, it
decides alone.
"""

import numpy as np

from manymetrics.encode.encoder import Encoder, centre, unit_rows
from manymetrics.values import Floats, TaskBank, TransferMatrix

LEAST_AGREEMENT = 0.05  # correlation with transfer that evidence must have to count


def similar_names(bank: TaskBank, encoder: Encoder) -> Floats:
    """How alike two tasks' labels are called: the mean cosine of best matches, both ways: (tasks, tasks)."""
    names = [unit_rows(encoder.encode(task.label_names)) for task in bank]
    found = np.zeros((len(bank), len(bank)))
    for one, rows in enumerate(names):
        for other in range(one + 1):
            cosines = rows @ names[other].T  # (labels, labels)
            alike = (cosines.max(axis=0).mean() + cosines.max(axis=1).mean()) / 2
            found[one, other] = found[other, one] = alike
    return found


def similar_texts(bank: TaskBank, encoder: Encoder) -> Floats:
    """The cosine between the centres of two tasks' texts, less what all tasks have in common: (tasks, tasks)."""
    centres = np.stack([centre(encoder, task.train.texts) for task in bank])  # (tasks, width)
    rows = unit_rows(centres - centres.mean(axis=0))
    return rows @ rows.T  # type: ignore[no-any-return]


def join_evidence(transfer: TransferMatrix, bank: TaskBank, encoder: Encoder) -> TransferMatrix:
    """Transfer, and the other evidence that agrees with it, as one matrix; what was not measured stays NaN."""
    measured = standardise(transfer.scores)
    known = np.isfinite(measured) & ~np.eye(len(measured), dtype=bool)
    joined, kinds = measured.copy(), [transfer.score]
    for kind, found in (("names", similar_names(bank, encoder)), ("texts", similar_texts(bank, encoder))):
        scores = standardise(np.where(np.isfinite(transfer.scores), found, np.nan))
        if known.sum() > 2 and np.corrcoef(scores[known], measured[known])[0, 1] > LEAST_AGREEMENT:
            joined, kinds = joined + scores, [*kinds, kind]
    return TransferMatrix(transfer.names, joined, " + ".join(kinds))


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
