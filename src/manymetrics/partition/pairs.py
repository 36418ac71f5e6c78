"""S -> (Y, Omega): keep only the pairs of tasks whose transfer scores are reliable.

Paper: section 3.1, score filtering, `eqn:A`. Symbols:
    transfer.scores[i, j]   s_ij            how well the encoder of task i serves task j; higher is better
    mean[j], deviation[j]   mu_j, sigma_j   of the scores that encoders of other tasks reach on task j
    pairs.alike[i, j]       Y_ij            True together, False apart
    pairs.known[i, j]       Omega           True where Y_ij is observed
"""

import math
from collections.abc import Sequence

import numpy as np

from manymetrics.errors import RecipeError
from manymetrics.values import Floats, Ints, ObservedPairs, TransferMatrix

P1_TRIED = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
MOST_BY_CHANCE = 0.03  # of the pairs called alike; directions agree for other reasons, too, so more of them are wrong
SAMPLED, SAMPLED_P2 = 0.5, 0.25  # where less than this share of the pairs was measured, p2 is at most this
FLAT = 1e-12  # a column whose deviation is smaller than this, relative to its mean, differs by rounding only


def keep_reliable_pairs(transfer: TransferMatrix, *, p1: float = 0.5, p2: float = 0.5) -> ObservedPairs:
    """Call two tasks alike, or apart, only where both directions of transfer agree.

    A score is high above *mu_j + p1 sigma_j* and low below *mu_j - p2 sigma_j*. Thresholds are per target task, because
    an easy task is easy for every encoder. The score of a task's own encoder is left out of its mean, and so are pairs
    that were not measured (NaN). A task with fewer than two scores, or with equal scores, is in no pair. A task is
    always like itself. Paper: `eqn:A`.

    Of a sample of pairs, so few are known to be apart that the wrongly alike ones may outnumber them between two
    clusters, and merge these. There *p2* is 0.25 at most, so that more of the measured pairs are known.
    """
    for name, value in (("p1", p1), ("p2", p2)):
        if not (math.isfinite(value) and value >= 0):
            raise RecipeError(
                f"keep_reliable_pairs was given {name}={value}. Use a number from 0 up; the paper's is 0.5."
            )
    order = order_by_name(transfer.names)
    scores = transfer.scores[np.ix_(order, order)]  # (n, n): from task i, to task j
    np.fill_diagonal(scores, np.nan)
    if (~np.isnan(scores)).sum() < SAMPLED * (scores.size - len(scores)):
        p2 = min(p2, SAMPLED_P2)
    mean, deviation = _mean_and_deviation(scores)  # (n,) each: per target task

    high = scores > mean + p1 * deviation  # (n, n); False where NaN
    low = scores < mean - p2 * deviation  # (n, n); False where NaN
    alike = high & high.T  # (n, n), symmetric
    apart = low & low.T  # (n, n), symmetric
    np.fill_diagonal(alike, True)
    back = np.argsort(order)
    alike, apart = alike[np.ix_(back, back)], apart[np.ix_(back, back)]
    return ObservedPairs(transfer.names, alike=alike, known=alike | apart)


def choose_p1(transfer: TransferMatrix, further: TransferMatrix | None = None) -> float:
    """The lowest *p1* at which few pairs are high twice by chance: in both directions, or in two kinds of evidence.

    A pair that is not alike is high in one without the other. The product of how often each is so tells how often both
    are by chance: where one pair in three is alike, a low *p1* tells them, and where one in fourteen is, it takes a
    higher one. With `further` evidence the two kinds are asked, each where it is high in both directions.
    """
    order = order_by_name(transfer.names)
    one = _in_deviations(transfer, order)
    other = one.T if further is None else _in_deviations(further, order)
    measured = np.isfinite(one) & np.isfinite(one.T)
    for p1 in P1_TRIED if measured.any() else ():
        first, second = one > p1, other > p1  # (n, n); False where NaN
        if further is not None:
            first, second = first & first.T, second & second.T
        both = float((first & second)[measured].mean())
        alone = [float(high[measured].mean()) - both for high in (first, second)]
        if both and alone[0] * alone[1] <= MOST_BY_CHANCE * both * max(1 - both, FLAT):
            return p1
    return P1_TRIED[-1]


def _in_deviations(transfer: TransferMatrix, order: Ints) -> Floats:
    """How far above the mean of its column each score lies, in its deviations; the diagonal is NaN."""
    scores = transfer.scores[np.ix_(order, order)]
    np.fill_diagonal(scores, np.nan)
    mean, deviation = _mean_and_deviation(scores)
    return (scores - mean) / deviation  # type: ignore[no-any-return]


def order_by_name(names: Sequence[str]) -> Ints:
    """The places of the tasks, sorted by name.

    Every function of this package works in this order and maps back at the end, so the order in which tasks are given
    cannot change a result, not even in its last bit.
    """
    return np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)  # (n,)


def _mean_and_deviation(scores: Floats) -> tuple[Floats, Floats]:
    measured = ~np.isnan(scores)  # (n, n)
    count = np.maximum(measured.sum(axis=0), 1)  # (n,)
    mean = np.where(measured, scores, 0.0).sum(axis=0) / count  # (n,)
    deviation = np.sqrt((np.where(measured, scores - mean, 0.0) ** 2).sum(axis=0) / count)  # (n,)
    varied = deviation > FLAT * np.maximum(1.0, np.abs(mean))  # (n,); a single score has no deviation
    return np.where(varied, mean, np.nan), np.where(varied, deviation, np.nan)
