"""(Y, Omega) -> (X, E): complete the similarity of all pairs, and separate the wrong observations.

Paper: section 3.1, matrix completion, `eqn:pro`. Symbols:
    pairs.similar, .observed   Y on Omega   what was observed, and where
    similarity.low_rank        X            the similarity of every pair; ones in blocks, one block for each cluster
    similarity.errors          E            observations that do not fit the blocks
    sparsity                   lambda       what a unit of error costs, measured in units of the nuclear norm

The solution comes with a certificate: `gap` is the relative distance between the objective reached and a lower bound
that is proved by a feasible point of the dual problem.

    dual of eqn:pro:   max <Y, L>   such that   ||L||_2 <= 1,  |L_ij| <= lambda on Omega,  L = 0 elsewhere

`solver.solve` computes both.
"""

import math
import warnings

import numpy as np

from manymetrics.errors import DataError, DidNotConverge, RecipeError
from manymetrics.partition.solver import EXACT, one_thread, solve
from manymetrics.values import ObservedPairs, Similarity

MAX_STEPS = 3000
TOLERANCES = ((EXACT, 1e-5), (3000, 1e-3), (math.inf, 1e-2))  # up to so many tasks, this gap is good enough
MARGIN = 2.0  # lambda, relative to the smallest at which a cluster of average size survives
NEARLY_ZERO = 0.01


def complete_similarity(pairs: ObservedPairs, *, sparsity: float | None = None, n_clusters: int | None = None,
                        max_steps: int = MAX_STEPS, tolerance: float | None = None) -> Similarity:  # fmt: skip
    """Fill in how similar every two tasks are, from the observed pairs, some of which are wrong.

    Solves `eqn:pro`: *min ||X||_* + lambda ||E||_1* such that *X + E = Y* on *Omega*. Without `sparsity`, lambda is
    `default_sparsity(pairs, n_clusters)`. The solver stops when both its residuals and the relative duality gap are
    within `tolerance`, and warns `DidNotConverge` when `max_steps` come first. Without `tolerance` it is 1e-5 up to 500
    tasks, 1e-3 up to 3,000 and 1e-2 above, where exactness costs hours and changes no cluster; `gap` is what was
    reached. It also warns when *X* is nearly 0: then lambda was too small for any cluster to survive.
    """
    default = default_sparsity(pairs, n_clusters)
    sparsity = default if sparsity is None else sparsity
    if tolerance is None:
        tolerance = next(gap for tasks, gap in TOLERANCES if len(pairs.names) <= tasks)
    for name, value in {"sparsity": sparsity, "max_steps": max_steps, "tolerance": tolerance}.items():
        if not 0 < value < math.inf:
            raise RecipeError(f"complete_similarity was given {name}={value}. Use a number above 0, or the default.")
    with one_thread():
        solution = solve(pairs.similar, pairs.observed, sparsity=sparsity, max_steps=max_steps, tolerance=tolerance)
    if not solution.converged:
        warnings.warn(
            f"complete_similarity stopped after {solution.steps} steps with gap {solution.gap:.1e} and residual "
            f"{solution.residual:.1e} (wanted {tolerance:.0e}). Raise max_steps, or loosen tolerance; "
            "the clusters may be unreliable.",
            DidNotConverge,
            stacklevel=2,
        )
    low_rank = solution.low_rank  # (n, n): X
    if max(low_rank.max(), -low_rank.min()) < NEARLY_ZERO:
        warnings.warn(
            f"complete_similarity found nothing similar: every entry of X is nearly 0 with sparsity {sparsity:.3g}. "
            f"A cluster survives only where its tasks have more than {1 / sparsity:.1f} observed similar pairs each. "
            "Raise sparsity, or measure more pairs.",
            UserWarning,
            stacklevel=2,
        )
    errors = np.zeros_like(low_rank)  # (n, n)
    errors[pairs.observed] = pairs.similar[pairs.observed] - low_rank[pairs.observed]  # E = P_Omega(Y - X)
    return Similarity(pairs.names, low_rank, errors, sparsity=sparsity, steps=solution.steps, gap=solution.gap)


def default_sparsity(pairs: ObservedPairs, n_clusters: int | None = None) -> float:
    """The lambda at which clusters of average size survive: *max(1/sqrt(rho n), 2/(rho n/K))*.

    A cluster of m tasks survives in *X* only if lambda is above *1/(rho m)*, the inverse of how many observed similar
    pairs each of its tasks has; the textbook's *1/sqrt(n)* takes neither rho nor m into account. Here rho is the
    observed share *with* the diagonal, which enters `eqn:pro`, so *rho n* is the mean count of observed entries in a
    row. Without `n_clusters`, *rho n/K* is estimated by the harmonic mean of the tasks' counts of observed
    similar entries, which for K clusters of any sizes is *rho n/K* again; outliers, similar to no other task, are left
    out of it. Above 1 all lambdas have the same effect: no observation is treated as an error.
    """
    if not pairs.names:
        raise DataError("ObservedPairs names no tasks, so there is nothing to complete. Give at least one task.")
    if n_clusters is not None and n_clusters < 1:
        raise RecipeError(
            f"default_sparsity was given n_clusters={n_clusters}. Use 1 or more, or None to have it estimated."
        )
    observed_per_task = float(pairs.observed.sum()) / len(pairs.names)  # rho n
    if n_clusters is not None:
        similar_per_task = observed_per_task / n_clusters  # rho n/K
    else:
        counts = pairs.similar.sum(axis=1)  # (n,), each at least 1: a task is similar to itself
        counts = counts[counts > 1] if (counts > 1).any() else counts
        similar_per_task = len(counts) / float((1.0 / counts).sum())
    return max(1.0 / math.sqrt(observed_per_task), MARGIN / similar_per_task)
