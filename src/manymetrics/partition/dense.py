"""`eqn:pro` for some hundreds of tasks: a full eigendecomposition at each step.

Over-relaxed alternating directions on dense matrices. What a solver gives back, `Solution`, is defined here as well.
"""

from dataclasses import dataclass

import numpy as np

from manymetrics.values import Bools, Floats

CHECK_EVERY = 10  # steps between two looks at residuals, gap and penalty
OVERSHOOT = 1.7  # over-relaxation; 1 is none, and below 2 it saves steps
IMBALANCE = 3.0  # the penalty moves when one residual is this many times the other


@dataclass(frozen=True, eq=False)
class Solution:
    """Where a solver stopped, and how far from the optimum at most."""

    low_rank: Floats  # (n, n), symmetric: X
    steps: int
    gap: float  # (primal - dual) / primal, at least 0
    residual: float  # the larger of the primal and the dual residual, relative
    converged: bool


def solve_dense(alike: Bools, known: Bools, *, sparsity: float, max_steps: int, tolerance: float) -> Solution:
    """Alternating directions on *min ||X||_* + lambda ||P_Omega(Y - Z)||_1* such that *X = Z*.

    After every step the scaled multiplier `push` is zero outside *Omega* and at most *lambda/penalty* inside it, so
    only its spectral norm needs scaling to make it a feasible point of the dual. The penalty follows the two residuals
    during the first half of the steps and then rests, as convergence is proved for a penalty that comes to rest.
    """
    observed = alike.astype(np.float64)  # (n, n): Y
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
