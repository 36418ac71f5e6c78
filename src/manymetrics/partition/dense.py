"""`eqn:pro` for some hundreds of tasks: whole matrices, and the few of their eigenpairs that matter.

Over-relaxed alternating directions on *min ||X||_* + lambda ||P_Omega(Y - Z)||_1* such that *X = Z*, with a multiplier
L. A step shrinks the spectrum of *Z + L/penalty* to get X. Most of that spectrum is shrunk to 0, and what is not is
updated from step to step (`eigenpairs.sharpen`); every `FULL_EVERY` steps, and wherever X has many eigenvalues, a full
eigendecomposition makes sure that nothing is missed. The result of both solvers, `Solution`, is defined here as well.
"""

from dataclasses import dataclass

import numba
import numpy as np

from manymetrics.partition.eigenpairs import sharpen
from manymetrics.values import Bools, Floats

START = 4.0  # the first penalty, times the inverse of the largest eigenvalue of Y
CHECK_EVERY = 10  # steps between two checks of residuals, gap and penalty
FULL_EVERY = 30  # steps between two full eigendecompositions
OVERSHOOT = 1.7  # over-relaxation; 1 is none, and below 2 it saves steps
IMBALANCE = 3.0  # the penalty changes when one residual is this many times the other
SPARE, SPARE_SHARE = 6, 4  # columns beyond the eigenvalues kept, for the next ones: so many, or one in so many
NARROWEST = 0.3  # the polynomial is never small on less than this share of the interval that is shrunk to 0
FULL_SHARE = 1 / 3  # above this share of all eigenpairs a full eigendecomposition is faster


@dataclass(frozen=True, eq=False)
class Solution:
    """Where a solver stopped, and how far from the optimum at most."""

    low_rank: Floats  # (n, n), symmetric: X
    steps: int
    gap: float  # (primal - dual) / primal, at least 0
    residual: float  # the larger of the primal and the dual residual, relative
    converged: bool


def solve_dense(alike: Bools, known: Bools, *, sparsity: float, max_steps: int, tolerance: float) -> Solution:
    """Alternating directions on whole matrices, changed in place: new memory costs more here than arithmetic.

    After every step the multiplier is zero outside *Omega* and at most lambda inside it, so only its spectral norm
    needs scaling to make it a feasible point of the dual. The penalty is adapted to the two residuals during the first
    half of the steps and then fixed, as convergence is proved for a penalty that is fixed at some point.
    """
    observed = alike.astype(np.float64)  # (n, n): Y
    limits = sparsity * known  # (n, n): the largest absolute value the multiplier may have
    filled, multiplier = observed.copy(), np.zeros_like(observed)  # (n, n) each: Z and L
    low_rank = np.empty_like(observed)  # (n, n): X
    spectrum = _Spectrum(observed)
    penalty = START / max(1.0, float(np.linalg.eigvalsh(observed)[-1]))  # no eigenvalue of ones and zeros is larger
    gap = np.inf
    for step in range(1, max_steps + 1):
        nuclear_norm = spectrum.shrink(filled, multiplier, 1.0 / penalty, full=step % FULL_EVERY == 0, out=low_rank)
        moved, apart = _advance(low_rank, (filled, multiplier), (observed, limits), penalty)
        if step % CHECK_EVERY and step < max_steps:
            continue

        primal = apart / max(1.0, float(np.linalg.norm(low_rank)), float(np.linalg.norm(filled)))
        dual = penalty * moved / max(1.0, float(np.linalg.norm(multiplier)))
        residual = max(primal, dual)
        if residual <= tolerance or step == max_steps:
            objective = nuclear_norm + float((limits * np.abs(observed - low_rank)).sum())
            gap = max(0.0, 1.0 - _lower_bound(multiplier, observed) / objective)
        converged = residual <= tolerance and gap <= tolerance
        if converged or step == max_steps:
            break
        if step <= max_steps // 2 and not 1 / IMBALANCE <= (primal + 1e-300) / (dual + 1e-300) <= IMBALANCE:
            penalty *= 2.0 if primal > dual else 0.5
    return Solution((low_rank + low_rank.T) / 2.0, step, gap, residual, converged=converged)


class _Spectrum:
    """The eigenpairs furthest from 0 of a matrix that changes from step to step."""

    def __init__(self, matrix: Floats) -> None:
        self._matrix = matrix.copy()  # (n, n)
        self._single = np.empty(matrix.shape, dtype=np.float32)  # (n, n)
        self._block: Floats | None = None  # (n, k): where the search starts; None where all are computed
        self._edge = 1.0  # eigenvalues closer to 0 are of no interest

    def shrink(self, filled: Floats, multiplier: Floats, amount: float, *, full: bool, out: Floats) -> float:
        """Bring every eigenvalue of *Z + L amount* closer to 0 by `amount`: X, written to `out`.

        That is the proximal step of the nuclear norm, which is returned. A missed eigenvalue makes the step worse, but
        not the certificate.
        """
        np.multiply(multiplier, amount, out=self._matrix)
        self._matrix += filled
        values, vectors = self._everything() if full or self._block is None else self._follow(self._block, amount)
        kept = int((np.abs(values) > amount).sum())
        size = min(len(values), kept + max(SPARE, kept // SPARE_SHARE))
        enough = kept + SPARE // 2 <= size <= FULL_SHARE * len(filled)
        self._block = np.ascontiguousarray(vectors[:, :size]) if enough else None  # (n, size)
        self._edge = max(NARROWEST * amount, float(np.abs(values[size - 1])))
        shrunk = np.sign(values[:kept]) * (np.abs(values[:kept]) - amount)  # (kept,)
        basis = vectors[:, :kept]  # (n, kept)
        np.matmul(basis * shrunk, basis.T, out=out)
        return float(np.abs(shrunk).sum())

    def _everything(self) -> tuple[Floats, Floats]:
        values, vectors = np.linalg.eigh(self._matrix)  # (n,), (n, n)
        order = np.argsort(-np.abs(values), kind="stable")
        return values[order], vectors[:, order]

    def _follow(self, block: Floats, amount: float) -> tuple[Floats, Floats]:
        np.copyto(self._single, self._matrix, casting="same_kind")
        return sharpen(self._multiply, block, beyond=min(amount, self._edge))

    def _multiply(self, block: Floats) -> Floats:
        return (self._single if block.dtype == np.float32 else self._matrix) @ block


@numba.njit(cache=True, nogil=True, fastmath={"contract", "nsz", "nnan", "reassoc"})
def _advance(
    low_rank: Floats, state: tuple[Floats, Floats], given: tuple[Floats, Floats], penalty: float
) -> tuple[float, float]:  # pragma: no cover - compiled
    """The next state (Z, L), in place. Returns how far Z moved, and how far X is from it (Frobenius norms).

    given: Y, and the largest absolute value that L may have, which is 0 outside *Omega*.
    """
    (filled, multiplier), (observed, limits) = state, given
    moved, apart = 0.0, 0.0
    for row in range(len(filled)):
        for column in range(len(filled)):
            found, before, limit = low_rank[row, column], filled[row, column], limits[row, column]
            ahead = OVERSHOOT * found + (1.0 - OVERSHOOT) * before - multiplier[row, column] / penalty
            pull = min(max((observed[row, column] - ahead) * penalty, -limit), limit)
            after = ahead + pull / penalty
            multiplier[row, column], filled[row, column] = pull, after
            moved += (after - before) ** 2
            apart += (found - after) ** 2
    return np.sqrt(moved), np.sqrt(apart)


def _lower_bound(multiplier: Floats, observed: Floats) -> float:
    """The dual objective at the multiplier, scaled to be feasible."""
    values = np.linalg.eigvalsh(multiplier)  # (n,)
    return float(np.vdot(multiplier, observed)) / max(1.0, -float(values[0]), float(values[-1]))
