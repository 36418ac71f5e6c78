"""(Y, Omega) -> (X, E): complete the similarity of all pairs, and separate the wrong observations.

Paper: section 3.1, matrix completion, `eqn:pro`. Symbols:
    pairs.alike, pairs.known   Y on Omega   what was observed, and where
    similarity.low_rank        X            the similarity of every pair; ones in blocks, one block for each cluster
    similarity.errors          E            observations that do not fit the blocks
    sparsity                   lambda       what a unit of error costs, measured in units of the nuclear norm

The solution comes with a certificate: `gap` is the relative distance between the objective reached and a lower bound
that is proved by a feasible point of the dual problem.

    dual of eqn:pro:   max <Y, L>   such that   ||L||_2 <= 1,  |L_ij| <= lambda on Omega,  L = 0 elsewhere

Two solvers, chosen by size in `solve`, with the same arguments and the same `Solution`: `dense.solve_dense`, on whole
matrices, for some hundreds of tasks, and `factored.solve_factored`, on the observed entries only, for thousands. Both
compute only the few eigenvectors that matter, each step starting from those of the last.
"""

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manymetrics.errors import DataError, DidNotConverge, RecipeError
from manymetrics.partition.dense import Solution, solve_dense
from manymetrics.partition.eigenpairs import one_thread
from manymetrics.partition.factored import solve_factored
from manymetrics.partition.pairs import order_by_name
from manymetrics.values import Bools, Ints, ObservedPairs, Similarity

MAX_STEPS = 3000
FACTORED = 500  # above so many tasks the factored solver is used
TOLERANCES = ((FACTORED, 1e-5), (3000, 1e-3), (math.inf, 1e-2))  # up to so many tasks, this gap is good enough
MARGIN = 2.0  # lambda, relative to the smallest at which a cluster of average size survives
NEARLY_ZERO = 0.01


def complete_similarity(
    pairs: ObservedPairs,
    *,
    sparsity: float | None = None,
    clusters: int | None = None,
    max_steps: int = MAX_STEPS,
    tolerance: float | None = None,
) -> Similarity:
    """Fill in how similar every two tasks are, from the known pairs, some of which are wrong.

    Solves `eqn:pro`: *min ||X||_* + lambda ||E||_1* such that *X + E = Y* on *Omega*. Without `sparsity`, lambda is
    `default_sparsity(pairs, clusters)`. The solver stops when both its residuals and the relative duality gap are
    within `tolerance`, and warns `DidNotConverge` when `max_steps` come first. Without `tolerance` it is 1e-5 up to 500
    tasks, 1e-3 up to 3,000 and 1e-2 above, where exactness costs hours and changes no cluster; `gap` is what was
    reached. It also warns when *X* is nearly 0: then lambda was too small for any cluster to survive.
    """
    _check_tasks(pairs)
    if sparsity is None:
        sparsity = default_sparsity(pairs, clusters)
    if tolerance is None:
        tolerance = next(gap for tasks, gap in TOLERANCES if len(pairs.names) <= tasks)
    _check_parameters(sparsity, max_steps, tolerance)
    order = order_by_name(pairs.names)
    alike, known = _in_order(pairs.alike, order), _in_order(pairs.known, order)  # (n, n) each
    solution = solve(alike, known, sparsity=sparsity, max_steps=max_steps, tolerance=tolerance)

    if not solution.converged:
        warnings.warn(
            f"complete_similarity stopped after {solution.steps} steps with gap {solution.gap:.1e} and residual "
            f"{solution.residual:.1e} (wanted {tolerance:.0e}). Raise max_steps, or loosen tolerance; "
            "the clusters may be unreliable.",
            DidNotConverge,
            stacklevel=2,
        )
    if max(solution.low_rank.max(), -solution.low_rank.min()) < NEARLY_ZERO:
        warnings.warn(
            f"complete_similarity found nothing similar: every entry of X is nearly 0 with sparsity {sparsity:.3g}. "
            f"A cluster survives only where its tasks have more than {1 / sparsity:.1f} known alike pairs each. "
            "Raise sparsity, or measure more pairs.",
            UserWarning,
            stacklevel=2,
        )
    low_rank = _in_order(solution.low_rank, np.argsort(order))  # (n, n): X
    steps, gap = solution.steps, solution.gap
    del solution  # two matrices of this size are enough to keep
    errors = np.zeros_like(low_rank)  # (n, n)
    errors[pairs.known] = pairs.alike[pairs.known] - low_rank[pairs.known]  # E = P_Omega(Y - X)
    return Similarity(pairs.names, low_rank, errors, sparsity=sparsity, steps=steps, gap=gap)


def default_sparsity(pairs: ObservedPairs, clusters: int | None = None) -> float:
    """The lambda at which clusters of average size survive: *max(1/sqrt(rho n), 2/(rho n/K))*.

    A cluster of m tasks survives in *X* only if lambda is above *1/(rho m)*, the inverse of how many known alike pairs
    each of its tasks has; the textbook's *1/sqrt(n)* takes neither rho nor m into account. Here rho is the observed
    share *with* the diagonal, as the diagonal is observed and enters `eqn:pro`, so *rho n* is the mean count of known
    entries in a row. Without `clusters`, *rho n/K* is estimated by the harmonic mean of the tasks' counts of known
    alike entries, which for K clusters of any sizes is *rho n/K* again; outliers, alike to no other task, are left out
    of it. Above 1 all lambdas have the same effect: nothing is taken for an error.
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
    return max(1.0 / math.sqrt(known_per_task), MARGIN / alike_per_task)


def solve(alike: Bools, known: Bools, *, sparsity: float, max_steps: int, tolerance: float) -> Solution:
    """Solve `eqn:pro` with the solver that suits the number of tasks; no warning when it does not converge."""
    with one_thread():
        if len(alike) > FACTORED:
            solution = solve_factored(alike, known, sparsity=sparsity, max_steps=max_steps, tolerance=tolerance)
            if solution is not None:
                return solution
        return solve_dense(alike, known, sparsity=sparsity, max_steps=max_steps, tolerance=tolerance)


def _in_order(matrix: NDArray[Any], order: Ints) -> NDArray[Any]:
    """Rows and columns in the given order, without a copy where they are in it already."""
    in_place = bool((order == np.arange(len(order))).all())
    return matrix if in_place else matrix[np.ix_(order, order)]


def _check_tasks(pairs: ObservedPairs) -> None:
    if not pairs.names:
        raise DataError("ObservedPairs names no tasks, so there is nothing to complete. Give at least one task.")


def _check_parameters(sparsity: float, max_steps: int, tolerance: float) -> None:
    if not (math.isfinite(sparsity) and sparsity > 0):
        raise RecipeError(
            f"complete_similarity was given sparsity={sparsity}. Use a number above 0, or None for the default."
        )
    if max_steps < 1:
        raise RecipeError(f"complete_similarity was given max_steps={max_steps}. Use 1 or more.")
    if not (math.isfinite(tolerance) and tolerance > 0):
        raise RecipeError(f"complete_similarity was given tolerance={tolerance}. Use a number above 0, such as 1e-5.")
