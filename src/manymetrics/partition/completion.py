"""(Y, Omega) -> (X, E): complete the likeness of all pairs, and take the wrong observations out.

Paper: section 3.1, matrix completion, `eqn:pro`. Names here and there:
    pairs.alike, pairs.known   Y on Omega   what was observed, and where
    similarity.low_rank        X            the likeness of every pair; ones in blocks, one block for each cluster
    similarity.errors          E            observations that do not fit the blocks
    sparsity                   lambda       what a unit of error costs, measured in units of the nuclear norm

The optimum is exact, and says so: `gap` is the relative distance between the objective reached and a lower bound that
is proved by a feasible point of the dual problem.

    dual of eqn:pro:   max <Y, L>   such that   ||L||_2 <= 1,  |L_ij| <= lambda on Omega,  L = 0 elsewhere

One solver so far, `_solve_dense`: a full eigendecomposition at each step, right for some hundreds of tasks. A solver
for more tasks takes the same arguments, returns the same `Solution` and is chosen by size in `solve`.
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from manymetrics.errors import DataError, DidNotConverge, RecipeError
from manymetrics.partition.pairs import order_by_name
from manymetrics.values import Bools, Floats, ObservedPairs, Similarity

MAX_STEPS = 3000
TOLERANCE = 1e-5
CHECK_EVERY = 10  # steps between two looks at residuals, gap and penalty
OVERSHOOT = 1.7  # over-relaxation; 1 is none; 1.6 to 1.9 saved about a third of the steps on planted clusters
IMBALANCE = 3.0  # the penalty moves when one residual is this many times the other
ROOM = 1.5  # how far above its survival threshold a cluster of usual size is kept
NEARLY_ZERO = 0.01


def complete_similarity(
    pairs: ObservedPairs,
    *,
    sparsity: float | None = None,
    clusters: int | None = None,
    max_steps: int = MAX_STEPS,
    tolerance: float = TOLERANCE,
) -> Similarity:
    """Fill in how alike every two tasks are, from the pairs that are known, some of them wrongly.

    Solves `eqn:pro`: *min ||X||_* + lambda ||E||_1* such that *X + E = Y* on *Omega*. Without `sparsity`, lambda is
    `default_sparsity(pairs, clusters)`. The solver stops when both its residuals and the relative duality gap are
    within `tolerance`, and warns `DidNotConverge` when `max_steps` come first. It also warns when *X* is nearly 0:
    then lambda was too small for any cluster of this size to survive.
    """
    _check_tasks(pairs)
    if sparsity is None:
        sparsity = default_sparsity(pairs, clusters)
    _check_knobs(sparsity, max_steps, tolerance)
    order = order_by_name(pairs.names)
    alike, known = pairs.alike[np.ix_(order, order)], pairs.known[np.ix_(order, order)]  # (n, n) each
    solution = solve(alike, known, sparsity=sparsity, max_steps=max_steps, tolerance=tolerance)

    if not solution.converged:
        warnings.warn(
            f"complete_similarity stopped after {solution.steps} steps with gap {solution.gap:.1e} and residual "
            f"{solution.residual:.1e} (wanted {tolerance:.0e}). Raise max_steps, or loosen tolerance; "
            "the clusters may be unreliable.",
            DidNotConverge,
            stacklevel=2,
        )
    if np.abs(solution.low_rank).max() < NEARLY_ZERO:
        warnings.warn(
            f"complete_similarity found no likeness at all: every entry of X is nearly 0 with sparsity {sparsity:.3g}. "
            f"A cluster survives only where its tasks have more than {1 / sparsity:.1f} known alike pairs each. "
            "Raise sparsity, or measure more pairs.",
            UserWarning,
            stacklevel=2,
        )
    back = np.argsort(order)
    low_rank = solution.low_rank[np.ix_(back, back)]  # (n, n): X
    errors = np.where(pairs.known, pairs.alike - low_rank, 0.0)  # (n, n): E = P_Omega(Y - X)
    return Similarity(pairs.names, low_rank, errors, sparsity=sparsity, steps=solution.steps, gap=solution.gap)


def default_sparsity(pairs: ObservedPairs, clusters: int | None = None) -> float:
    """The lambda at which clusters of usual size survive: *max(1/sqrt(rho n), 1.5/(rho n/K))*.

    A cluster of m tasks survives in *X* only if lambda is above *1/(rho m)*, the inverse of how many known alike pairs
    each of its tasks has; the textbook's *1/sqrt(n)* knows neither rho nor m. Here rho is the observed share *with*
    the diagonal, as the diagonal is observed and enters `eqn:pro`, so *rho n* is the mean count of known entries in a
    row. Without `clusters`, *rho n/K* is estimated by the harmonic mean of the tasks' counts of known alike entries,
    which for K clusters of any sizes is *rho n/K* again; tasks alike to nobody are left out of it. Above 1 all
    lambdas act alike: no error is ever taken out.
    """
    _check_tasks(pairs)
    if clusters is not None and clusters < 1:
        raise RecipeError(
            f"default_sparsity was given clusters={clusters}. Use 1 or more, or None to have it estimated."
        )
    known_per_task = float(pairs.known.sum()) / len(pairs.names)  # rho n
    if clusters is not None:
        alike_per_task = known_per_task / clusters  # rho n/K
    else:
        counts = pairs.alike.sum(axis=1)  # (n,), each at least 1: a task is like itself
        counts = counts[counts > 1] if (counts > 1).any() else counts
        alike_per_task = len(counts) / float((1.0 / counts).sum())
    return max(1.0 / math.sqrt(known_per_task), ROOM / alike_per_task)


@dataclass(frozen=True, eq=False)
class Solution:
    """Where a solver stopped, and how far from the optimum at most."""

    low_rank: Floats  # (n, n), symmetric: X
    steps: int
    gap: float  # (primal - dual) / primal, at least 0
    residual: float  # the larger of the primal and the dual residual, relative
    converged: bool


def solve(alike: Bools, known: Bools, *, sparsity: float, max_steps: int, tolerance: float) -> Solution:
    """Solve `eqn:pro` with the solver that suits the number of tasks, without warning about how it ended.

    On one thread: the result is then the same on any number of cores, and threads of the linear algebra library that
    wait for one another on busy cores made 300 tasks 4 to 24 times slower.
    """
    observed = alike.astype(np.float64)  # (n, n)
    with threadpool_limits(limits=1, user_api="blas"):
        return _solve_dense(observed, known, sparsity=sparsity, max_steps=max_steps, tolerance=tolerance)


def _solve_dense(observed: Floats, known: Bools, *, sparsity: float, max_steps: int, tolerance: float) -> Solution:
    """Alternating directions on *min ||X||_* + lambda ||P_Omega(Y - Z)||_1* such that *X = Z*.

    After every step the scaled multiplier `push` is zero outside *Omega* and at most *lambda/penalty* inside it, so
    only its spectral norm needs scaling to make it a feasible point of the dual. The penalty follows the two residuals
    during the first half of the steps and then rests, as convergence is proved for a penalty that comes to rest.
    """
    penalty = 4.0 / max(1.0, float(np.linalg.norm(observed, 2)))
    filled = observed.copy()  # (n, n): Z
    push = np.zeros_like(observed)  # (n, n)
    for step in range(1, max_steps + 1):
        low_rank, nuclear_norm = _shrink_spectrum(filled - push, 1.0 / penalty)  # (n, n): X
        before = filled
        ahead = OVERSHOOT * low_rank + (1.0 - OVERSHOOT) * filled + push  # (n, n)
        taken_out = observed - ahead  # (n, n): E before shrinking
        pull = np.clip(taken_out, -sparsity / penalty, sparsity / penalty)  # (n, n)
        filled = np.where(known, observed - (taken_out - pull), ahead)
        push = np.where(known, -pull, 0.0)
        if step % CHECK_EVERY and step < max_steps:
            continue

        reach = max(1.0, float(np.linalg.norm(low_rank)), float(np.linalg.norm(filled)))
        primal = float(np.linalg.norm(low_rank - filled)) / reach
        dual = penalty * float(np.linalg.norm(filled - before)) / max(1.0, penalty * float(np.linalg.norm(push)))
        objective = nuclear_norm + sparsity * float(np.abs(observed - low_rank)[known].sum())
        gap = max(0.0, 1.0 - _lower_bound(-penalty * push, observed) / objective)
        residual = max(primal, dual)
        if residual <= tolerance and gap <= tolerance:
            return Solution(low_rank, step, gap, residual, converged=True)
        if step <= max_steps // 2 and not 1 / IMBALANCE <= (primal + 1e-300) / (dual + 1e-300) <= IMBALANCE:
            change = 2.0 if primal > dual else 0.5
            penalty, push = penalty * change, push / change
    return Solution(low_rank, max_steps, gap, residual, converged=False)


def _shrink_spectrum(matrix: Floats, amount: float) -> tuple[Floats, float]:
    """Bring every eigenvalue closer to 0 by `amount`: the proximal step of the nuclear norm. Also gives that norm."""
    values, vectors = np.linalg.eigh(matrix)
    shrunk = np.sign(values) * np.maximum(np.abs(values) - amount, 0.0)  # (n,)
    kept = shrunk != 0.0
    basis = vectors[:, kept]  # (n, rank)
    low_rank = (basis * shrunk[kept]) @ basis.T  # (n, n)
    return (low_rank + low_rank.T) / 2.0, float(np.abs(shrunk).sum())


def _lower_bound(multiplier: Floats, observed: Floats) -> float:
    """The dual objective at the multiplier, scaled to be feasible."""
    values = np.linalg.eigvalsh(multiplier)  # (n,)
    return float((multiplier * observed).sum()) / max(1.0, -float(values[0]), float(values[-1]))


def _check_tasks(pairs: ObservedPairs) -> None:
    if not pairs.names:
        raise DataError("ObservedPairs names no tasks, so there is nothing to complete. Give at least one task.")


def _check_knobs(sparsity: float, max_steps: int, tolerance: float) -> None:
    if not (math.isfinite(sparsity) and sparsity > 0):
        raise RecipeError(
            f"complete_similarity was given sparsity={sparsity}. Use a number above 0, or None for the default."
        )
    if max_steps < 1:
        raise RecipeError(f"complete_similarity was given max_steps={max_steps}. Use 1 or more.")
    if not (math.isfinite(tolerance) and tolerance > 0):
        raise RecipeError(f"complete_similarity was given tolerance={tolerance}. Use a number above 0, such as 1e-5.")
