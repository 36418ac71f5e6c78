"""S -> (Y, Omega): keep only the pairs of tasks whose transfer scores are reliable.

Paper: section 3.1, score filtering, `eqn:A`. Symbols:
    transfer.scores[i, j]   s_ij            how well the encoder of task i serves task j; higher is better
    mean[j], deviation[j]   mu_j, sigma_j   of the scores that encoders of other tasks reach on task j
    pairs.similar[i, j]     Y_ij            True similar, False dissimilar
    pairs.observed[i, j]    Omega           True where Y_ij is observed
"""

import math
import warnings

import numpy as np

from manymetrics.errors import RecipeError, TaskSkipped
from manymetrics.values import Floats, ObservedPairs, TransferMatrix

P1_TRIED = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
MAX_BY_CHANCE = 0.03  # share of the similar pairs; directions agree for other reasons, too, so more of them are wrong
SAMPLED, SAMPLED_P2 = 0.5, 0.25  # where less than this share of the pairs was measured, p2 is at most this
FLAT = 1e-12  # a column whose deviation is smaller than this, relative to its mean, differs by rounding only


def filter_pairs(transfer: TransferMatrix, *, p1: float = 0.5, p2: float = 0.5) -> ObservedPairs:
    """Call two tasks similar, or dissimilar, only where both directions of transfer agree.

    A score is high above *mu_j + p1 sigma_j* and low below *mu_j - p2 sigma_j*. Thresholds are per target task, because
    an easy task is easy for every encoder. The score of a task's own encoder is left out of its mean, and so are pairs
    that were not measured (NaN). A task with fewer than two scores, or with equal scores, is in no pair. A task is
    always similar to itself. Paper: `eqn:A`.

    In a sample of pairs, so few are observed as dissimilar that pairs wrongly called similar may outnumber them between
    two clusters, and merge these. There *p2* is 0.25 at most, so that more of the measured pairs are observed.
    """
    for name, value in (("p1", p1), ("p2", p2)):
        if not (math.isfinite(value) and value >= 0):
            raise RecipeError(f"filter_pairs was given {name}={value}. Use a number from 0 up; the paper's is 0.5.")
    scores, mean, deviation = _scores_of_others(transfer)  # (n, n): from task i, to task j; (n,) each: per target task
    if (~np.isnan(scores)).sum() < SAMPLED * (scores.size - len(scores)):
        p2 = min(p2, SAMPLED_P2)
    high = scores > mean + p1 * deviation  # (n, n); False where NaN
    low = scores < mean - p2 * deviation  # (n, n); False where NaN
    similar = high & high.T  # (n, n), symmetric
    dissimilar = low & low.T  # (n, n), symmetric
    np.fill_diagonal(similar, True)
    return ObservedPairs(transfer.names, similar=similar, observed=similar | dissimilar)


def leave_out_unmeasured(
    transfer: TransferMatrix, pairs: ObservedPairs, *, fewest: int = 2
) -> tuple[TransferMatrix, ObservedPairs]:
    """Both without the tasks to which no transfer could be measured, though it was measured from them.

    Such a task has too few examples to answer some from others. It is in no pair, so it would be
    in an arbitrary cluster. It is named in a warning. If fewer than `fewest` tasks would be left, all stay.
    """
    measured = np.isfinite(transfer.scores) & ~np.eye(len(transfer.names), dtype=bool)
    unmeasured = measured.any(axis=1) & ~measured.any(axis=0)  # (n,)
    rows = np.flatnonzero(~unmeasured)
    if not unmeasured.any() or len(rows) < fewest:
        return transfer, pairs
    names, block = tuple(transfer.names[row] for row in rows), np.ix_(rows, rows)
    left_out = ", ".join(repr(transfer.names[row]) for row in np.flatnonzero(unmeasured))
    warnings.warn(
        f"Left out of clustering, as transfer to them cannot be measured: {left_out}. Add examples of their labels.",
        TaskSkipped,
        stacklevel=2,
    )
    return (
        TransferMatrix(names, transfer.scores[block], transfer.score),
        ObservedPairs(names, similar=pairs.similar[block], observed=pairs.observed[block]),
    )


def choose_p1(transfer: TransferMatrix, further: TransferMatrix | None = None) -> float:
    """The lowest *p1* at which few pairs are high twice by chance: in both directions, or in two kinds of evidence.

    A pair that is not similar is often high in one without the other. The product of the two rates estimates how often
    both are high by chance: a low *p1* is enough where one pair in three is similar, and a higher one is needed where
    one in fourteen is. With `further` evidence the two kinds are compared, each where it is high in both directions.
    """
    kinds = [_scores_of_others(kind) for kind in (transfer, further) if kind is not None]
    scores, *others = [(scores - mean) / deviation for scores, mean, deviation in kinds]  # (n, n) each, in deviations
    other = others[0] if others else scores.T
    measured = np.isfinite(scores) & np.isfinite(scores.T)
    for p1 in P1_TRIED if measured.any() else ():
        first, second = scores > p1, other > p1  # (n, n); False where NaN
        if further is not None:
            first, second = first & first.T, second & second.T
        both = float((first & second)[measured].mean())
        alone = [float(high[measured].mean()) - both for high in (first, second)]
        if both and alone[0] * alone[1] <= MAX_BY_CHANCE * both * max(1 - both, FLAT):
            return p1
    return P1_TRIED[-1]


def _scores_of_others(transfer: TransferMatrix) -> tuple[Floats, Floats, Floats]:
    """The scores, NaN on the diagonal; mean and deviation of those measured of each column, NaN where they do not vary.

    Sums are of sorted numbers, so that the order of the tasks does not change their rounding.
    """
    scores = transfer.scores.copy()
    np.fill_diagonal(scores, np.nan)
    measured = ~np.isnan(scores)  # (n, n)
    count = np.maximum(measured.sum(axis=0), 1)  # (n,)
    mean = np.sort(np.where(measured, scores, 0.0), axis=0).sum(axis=0) / count  # (n,)
    squares = np.where(measured, scores - mean, 0.0) ** 2  # (n, n)
    deviation = np.sqrt(np.sort(squares, axis=0).sum(axis=0) / count)  # (n,)
    varied = deviation > FLAT * np.maximum(1.0, np.abs(mean))  # (n,); a single score has no deviation
    return scores, np.where(varied, mean, np.nan), np.where(varied, deviation, np.nan)
