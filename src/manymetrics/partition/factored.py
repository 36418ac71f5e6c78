"""`eqn:pro` for a thousand tasks and more: X as factors, everything else on the observed entries only.

Over-relaxed alternating directions as in `dense`. Outside *Omega* the multiplier U is 0 and Z is a mixture of the X of
this step and of those before, so the matrix whose spectrum is shrunk is

    Z - U  =  a matrix of low rank (factors)  +  something on Omega (sparse)

and a product with k columns costs n*k*k + |Omega|*k, never n*n*k. The eigenvectors of one step are where the search for
those of the next one starts (`eigenpairs.follow`), and Z is kept in the space they span: what is cut off there is 0 at
the optimum, where Z equals X. Eigenvalues of both signs are kept, as the nuclear norm counts both.

The gap assumes one thing more than the dense solver's: the spectral norm of the multiplier, by which it is scaled to be
feasible, comes from a Lanczos iteration and is raised by the tolerance of that iteration, so the lower bound holds
unless Lanczos misses the largest eigenvalue. The objective is that of the current factors, whose columns are
orthonormal: a missed eigenpair makes the gap larger, never smaller.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numba
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError, eigsh

from manymetrics.partition.dense import CHECK_EVERY, FULL_SHARE, NARROWEST, OVERSHOOT, Solution
from manymetrics.partition.eigenpairs import follow, scatter
from manymetrics.values import Bools, Floats, Ints

START = 8.0  # the first penalty, times the inverse of the largest eigenvalue X can be expected to have
IMBALANCE, CHANGE = 2.0, 1.5  # the penalty changes by CHANGE when one part of the gap is IMBALANCE times the other
FIRST_BLOCK, FRESH = 32, 4  # pseudo-random columns, at the start and at each step: they find what the block misses
SPARE, SPARE_SHARE = 12, 4  # columns beyond the eigenvalues kept, for the next ones: so many, or one in so many
MISSED = 4  # eigenvectors of the multiplier, its largest, added to the block at each check
NORM_TOLERANCE, NORM_SHARE = 2e-4, 0.2  # of the multiplier's spectral norm; never more than this share of the gap's
DENSE_SHARE, DENSE_TASKS = 0.15, 4000  # above this share, up to so many tasks, a dense product beats a sparse one
STRIP = 512


@dataclass(frozen=True, eq=False)
class Factors:
    """A symmetric matrix in a space of few dimensions: *basis core basis^T*."""

    basis: Floats  # (n, k), orthonormal columns
    core: Floats  # (k, k), symmetric

    @cached_property
    def weighted(self) -> Floats:
        """*basis core*: (n, k)."""
        return self.basis @ self.core

    def core_in(self, basis: Floats) -> Floats:
        """The core of this matrix after projection to the space of another basis."""
        turn = basis.T @ self.basis  # (other k, k)
        return turn @ self.core @ turn.T

    def dense(self) -> Floats:
        """All entries, symmetric to the last bit, made in strips so that nothing else of that size is needed."""
        n = len(self.basis)
        whole = np.empty((n, n))
        for start in range(0, n, STRIP):
            rows = self.weighted[start : start + STRIP] @ self.basis[start:].T  # (strip, n - start)
            corner = rows[:, : len(rows)]  # (strip, strip)
            corner[...] = (corner + corner.T) / 2.0
            whole[start : start + STRIP, start:] = rows
            whole[start:, start : start + STRIP] = rows.T
        return whole


@dataclass(frozen=True, eq=False)
class Omega:
    """The observed entries: vectors of their upper triangle, and how to make a whole matrix of such a vector."""

    n: int
    rows: Ints  # (m,): upper triangle with the diagonal, row by row
    columns: Ints  # (m,)
    weights: Floats  # (m,): how often an entry stands in the whole matrix, 1 or 2
    mirror: Ints  # (all observed entries,): which of the m each is
    indices: Ints  # (all observed entries,): their columns, row by row
    starts: Ints  # (n + 1,): where each row starts

    @classmethod
    def of(cls, known: Bools) -> "Omega":
        """Where the pairs are known."""
        n = len(known)
        rows, columns = np.nonzero(known)  # row by row
        upper = rows <= columns
        keys = np.minimum(rows, columns) * n + np.maximum(rows, columns)
        mirror = np.searchsorted(keys[upper], keys)
        weights = np.where(rows == columns, 1.0, 2.0)[upper]
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
        return cls(n, rows[upper], columns[upper], weights, mirror, columns.astype(np.int32), starts.astype(np.int32))

    @property
    def share(self) -> float:
        """How much of the whole matrix is observed, with the diagonal."""
        return len(self.mirror) / self.n**2

    def matrix(self, entries: Floats) -> Any:
        """The symmetric matrix with these entries, stored as is best for products: (m,) -> (n, n)."""
        sparse = csr_array((entries[self.mirror], self.indices, self.starts), shape=(self.n, self.n))
        return sparse.toarray() if self.n <= DENSE_TASKS and self.share > DENSE_SHARE else sparse

    def read(self, factors: Factors) -> Floats:
        """The observed entries of a matrix in factors: (m,)."""
        left, right = np.ascontiguousarray(factors.weighted), np.ascontiguousarray(factors.basis)
        return np.asarray(_dots(left, right, self.rows, self.columns))

    def total(self, entries: Floats) -> float:
        """The sum over the whole matrix."""
        return float(self.weights @ entries)

    def square(self, entries: Floats) -> float:
        """The sum of squares over the whole matrix."""
        return float(self.weights @ entries**2)


@numba.njit(cache=True, nogil=True, fastmath=True)
def _dots(left: Floats, right: Floats, rows: Ints, columns: Ints) -> Any:  # pragma: no cover - compiled
    found = np.empty(len(rows))
    for place in range(len(rows)):
        one, other = left[rows[place]], right[columns[place]]
        total = 0.0
        for part in range(left.shape[1]):
            total += one[part] * other[part]
        found[place] = total
    return found


class _Sum:
    """Factors plus a sparse matrix, to be multiplied with columns in single or in double precision."""

    def __init__(self, factors: Factors, sparse: Any) -> None:
        self._double = (factors.weighted, factors.basis.T, sparse)
        self._single = tuple(part.astype(np.float32) for part in self._double)

    def __call__(self, block: Floats) -> Floats:
        left, right, sparse = self._single if block.dtype == np.float32 else self._double
        product: Floats = left @ (right @ block) + sparse @ block
        return product


@dataclass(frozen=True, eq=False)
class _State:
    """The state of the iteration; X and Z share a basis."""

    penalty: float
    edge: float  # eigenvalues closer to 0 are of no interest
    block: Floats  # (n, about k): where the search for eigenvectors starts
    low_rank: Factors  # X
    values: Floats  # (k,): the eigenvalues of X
    mixture: Factors  # Z outside Omega
    here: Floats  # (m,): X on Omega
    mixture_here: Floats  # (m,): what the mixture would be on Omega
    filled: Floats  # (m,): Z on Omega
    scaled: Floats  # (m,): U, the multiplier divided by the penalty


@dataclass(frozen=True, eq=False)
class _Check:
    """How good a state is, and what to adjust."""

    gap: float
    residual: float
    excess: float  # by how much the multiplier's spectral norm is above 1: the dual's part of the gap
    missed: Floats  # (n, some): its eigenvectors


def solve_factored(alike: Bools, known: Bools, *, sparsity: float, max_steps: int, tolerance: float) -> Solution | None:
    """Alternating directions on factors; None when X has so many eigenvalues that the dense solver is faster.

    The penalty is adapted to the two parts of the gap during the first half of the steps, then fixed: too large a
    penalty keeps the multiplier from becoming feasible, too small a one keeps X from becoming optimal.
    """
    omega = Omega.of(known)
    observed = alike[omega.rows, omega.columns].astype(np.float64)  # (m,): Y
    state, within = _begin(omega, observed), min(NORM_TOLERANCE, NORM_SHARE * tolerance)
    for step in range(1, max_steps + 1):
        before, state = state, _advance(state, omega, observed, sparsity=sparsity, seed=step)
        if len(state.values) > FULL_SHARE * omega.n and omega.n <= DENSE_TASKS:
            return None
        if step % CHECK_EVERY and step < max_steps:
            continue
        check = _check(before, state, omega, observed, sparsity=sparsity, within=within)
        converged = check.residual <= tolerance and check.gap <= tolerance
        if converged or step == max_steps:
            break
        state = _adjust(state, check, move=step <= max_steps // 2)
    return Solution(state.low_rank.dense(), step, check.gap, check.residual, converged=converged)


def _begin(omega: Omega, observed: Floats) -> _State:
    """X = 0 and Z = Y. Where a cluster has m tasks, Y has an eigenvalue near *rho m*, and X is to have one near m."""
    largest = max(1.0, _spectral_norm(omega.matrix(observed), within=0.01)[0]) / omega.share
    nothing, empty = np.zeros_like(observed), Factors(np.zeros((omega.n, 0)), np.zeros((0, 0)))
    block = scatter(omega.n, min(omega.n, FIRST_BLOCK), seed=0)
    return _State(START / largest, largest, block, empty, np.zeros(0), empty, nothing, nothing, observed, nothing)


def _advance(state: _State, omega: Omega, observed: Floats, *, sparsity: float, seed: int) -> _State:
    """One step of alternating directions: shrink the spectrum, then the errors, then move the multiplier."""
    amount, bound = 1.0 / state.penalty, sparsity / state.penalty
    matrix = _Sum(state.mixture, omega.matrix(state.filled - state.scaled - state.mixture_here))
    edge = min(amount, state.edge)
    found, vectors = follow(matrix, state.block, beyond=amount, edge=edge)  # (k,), (n, k)
    kept = int((np.abs(found) > amount).sum())
    size = min(omega.n, kept + max(SPARE, kept // SPARE_SHARE))
    basis = np.ascontiguousarray(vectors[:, :size])  # (n, size)
    values = (np.sign(found) * np.maximum(np.abs(found) - amount, 0.0))[:size]  # (size,)
    edge = max(NARROWEST * amount, float(np.abs(found[:size])[-1]))
    low_rank = Factors(basis, np.diag(values))
    mixture = Factors(basis, OVERSHOOT * low_rank.core + (1.0 - OVERSHOOT) * state.mixture.core_in(basis))
    here = omega.read(Factors(basis[:, :kept], low_rank.core[:kept, :kept]))  # (m,)
    errors = observed - (OVERSHOOT * here + (1.0 - OVERSHOOT) * state.filled + state.scaled)  # (m,): E, not yet shrunk
    pull = np.clip(errors, -bound, bound)  # (m,)
    block = np.hstack([basis, scatter(omega.n, min(FRESH, omega.n - basis.shape[1]), seed=seed)])
    filled = observed - (errors - pull)  # (m,)
    return _State(state.penalty, edge, block, low_rank, values, mixture, here, omega.read(mixture), filled, -pull)


def _check(before: _State, state: _State, omega: Omega, observed: Floats, *, sparsity: float, within: float) -> _Check:
    """Residuals, and the gap between the objective at X and the dual objective at the multiplier, scaled."""
    apart = float(np.linalg.norm(state.low_rank.core - state.mixture.core)) ** 2
    apart += omega.square(state.here - state.filled) - omega.square(state.here - state.mixture_here)
    moved = float(np.linalg.norm(state.mixture.core - before.mixture.core_in(state.mixture.basis))) ** 2
    moved += omega.square(state.filled - before.filled) - omega.square(state.mixture_here - before.mixture_here)
    primal = np.sqrt(max(0.0, apart)) / max(1.0, float(np.linalg.norm(state.values)))
    dual = np.sqrt(max(0.0, moved)) / max(1.0 / state.penalty, np.sqrt(omega.square(state.scaled)))
    multiplier = -state.penalty * state.scaled  # (m,)
    norm, missed = _spectral_norm(omega.matrix(multiplier), within=within)
    objective = float(np.abs(state.values).sum()) + sparsity * omega.total(np.abs(observed - state.here))
    gap = max(0.0, 1.0 - omega.total(multiplier * observed) / max(1.0, norm) / objective)
    return _Check(gap, float(max(primal, dual)), max(0.0, norm - 1.0), missed)


def _adjust(state: _State, check: _Check, *, move: bool) -> _State:
    """Add to the block what it missed, and change the penalty so as to reduce the larger part of the gap."""
    rest = check.gap - check.excess
    change = CHANGE if rest > IMBALANCE * check.excess else 1.0 / CHANGE if check.excess > IMBALANCE * rest else 1.0
    change = change if move else 1.0
    block = np.hstack([state.block, check.missed])[:, : len(state.block)]
    return replace(state, penalty=state.penalty * change, scaled=state.scaled / change, block=block)


def _spectral_norm(matrix: Any, *, within: float) -> tuple[float, Floats]:
    """An upper bound of the spectral norm, and the eigenvectors that come near it.

    The bound is what Lanczos finds, raised by the relative tolerance `within` at which it stopped. Where Lanczos does
    not converge: the largest sum of a row, a bound that is certain, but loose.
    """
    n = matrix.shape[0]
    start = scatter(n, 1, seed=n)[:, 0]  # (n,)
    try:
        values, vectors = eigsh(matrix, k=MISSED, which="LM", v0=start, tol=within)
    except ArpackError:
        return float(abs(matrix).sum(axis=1).max()), np.zeros((n, 0))
    return float(np.abs(values).max()) * (1.0 + within), vectors
