"""S -> (Y, Omega): keep only the pairs of tasks whose transfer scores can be believed.

Paper: section 3.1, score filtering, `eqn:A`. Names here and there:
    transfer.scores[i, j]   s_ij            how well the encoder of task i serves task j; higher is better
    usual[j], spread[j]     mu_j, sigma_j   what encoders of other tasks get on task j
    pairs.alike[i, j]       Y_ij            True together, False apart
    pairs.known[i, j]       Omega           True where Y_ij may be believed
"""

import math
from collections.abc import Sequence

import numpy as np

from manymetrics.errors import RecipeError
from manymetrics.values import Floats, Ints, ObservedPairs, TransferMatrix

SAMPLED, SAMPLED_P2 = 0.5, 0.25  # where less than this share of the pairs was measured, p2 is at most this
FLAT = 1e-12  # a column whose spread is smaller than this, relative to its mean, differs by rounding only


def keep_reliable_pairs(transfer: TransferMatrix, *, p1: float = 0.5, p2: float = 0.5) -> ObservedPairs:
    """Call two tasks alike, or apart, only where both directions of transfer say so.

    A score is high above *mu_j + p1 sigma_j* and low below *mu_j - p2 sigma_j*. Each target task is compared with
    itself, because an easy task is easy for every encoder. What a task gets from its own encoder stays out of its
    mean, and so does what was not measured (NaN). A task with fewer than two scores, or with equal scores, tells
    nothing about its neighbours and makes no pairs. A task is always like itself. Paper: `eqn:A`.

    Of a sample of pairs, so few are known to be apart that the wrongly alike ones may outnumber them between two
    clusters, and merge these. There *p2* is 0.25 at most, which makes more of the pairs that were measured known.
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
    usual, spread = _usual_and_spread(scores)  # (n,) each: per target task

    high = scores > usual + p1 * spread  # (n, n); False where NaN
    low = scores < usual - p2 * spread  # (n, n); False where NaN
    alike = high & high.T  # (n, n), symmetric
    apart = low & low.T  # (n, n), symmetric
    np.fill_diagonal(alike, True)
    back = np.argsort(order)
    alike, apart = alike[np.ix_(back, back)], apart[np.ix_(back, back)]
    return ObservedPairs(transfer.names, alike=alike, known=alike | apart)


def order_by_name(names: Sequence[str]) -> Ints:
    """The places of the tasks, sorted by name.

    Every function of this room works in this order and maps back at the end, so the order in which tasks were handed
    in cannot change a result, not even in its last bit.
    """
    return np.array(sorted(range(len(names)), key=lambda place: names[place]), dtype=np.int64)  # (n,)


def _usual_and_spread(scores: Floats) -> tuple[Floats, Floats]:
    measured = ~np.isnan(scores)  # (n, n)
    count = np.maximum(measured.sum(axis=0), 1)  # (n,)
    usual = np.where(measured, scores, 0.0).sum(axis=0) / count  # (n,)
    spread = np.sqrt((np.where(measured, scores - usual, 0.0) ** 2).sum(axis=0) / count)  # (n,)
    telling = spread > FLAT * np.maximum(1.0, np.abs(usual))  # (n,); a lone score has no spread
    return np.where(telling, usual, np.nan), np.where(telling, spread, np.nan)
