"""(Y, Omega) -> (X, E): complete the similarity of all pairs, and separate the wrong observations.

Paper: section 3.1, matrix completion, `eqn:pro`. Symbols:
    pairs.similar, .observed   Y on Omega   what was observed, and where
    similarity.low_rank        X            the similarity of every pair; ones in blocks, one block for each cluster
    similarity.errors          E            observations that do not fit the blocks
    sparsity                   lambda       what a unit of error costs, measured in units of the nuclear norm

The solution comes with a certificate: `gap` is the relative distance between the objective reached and a lower bound
that is proved by a feasible point of the dual problem.

    dual of eqn:pro:   max <Y, L>   such that   ||L||_2 <= 1,  |L_ij| <= lambda on Omega,  L = 0 elsewhere

`solve` computes both by over-relaxed alternating directions on *min ||X||_* + lambda ||P_Omega(Y - Z)||_1* such that
*X = Z*, with a multiplier L. A step shrinks the spectrum of *Z + L/penalty* to get X. Most of that spectrum is shrunk
to 0, and the rest is updated from step to step (`sharpen`).

Up to `EXACT` tasks, a full eigendecomposition every `FULL_EVERY` steps makes sure that no eigenvalue is missed, and the
norm in the certificate comes from all eigenvalues. Above, each step adds pseudo-random columns to the search instead,
matrices may be in single precision, and the norm comes from a Lanczos iteration and is proved by two Cholesky
decompositions.

The eigenpairs furthest from 0 of a large symmetric matrix are found by rounds of subspace iteration (`sharpen`). A
round puts a polynomial of the matrix between a block of columns and its Rayleigh-Ritz approximation: a Chebyshev
polynomial, small on the interval [-beyond, beyond] and steep outside it, which amplifies both ends of the spectrum at
once (Zhou, Saad, Tiago and Chelikowsky 2006). Where a matrix changes little from step to step, the vectors of the last
step are such a good start that one round is enough.

Everything is deterministic: instead of random numbers, `scatter` gives the same columns for the same seed, and with one
thread the number of cores does not change the order of summation.
"""

import math
import warnings
from contextlib import suppress

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError, eigsh
from threadpoolctl import threadpool_limits

from manymetrics.errors import DataError, DidNotConverge, RecipeError
from manymetrics.values import Bools, Floats, ObservedPairs, Similarity

EXACT = 500  # up to so many tasks full eigendecompositions are fast enough
MAX_STEPS = 3000
TOLERANCES = ((EXACT, 1e-5), (3000, 1e-3), (math.inf, 1e-2))  # up to so many tasks, this gap is good enough
MARGIN = 2.0  # lambda, relative to the smallest at which a cluster of average size survives
NEARLY_ZERO = 0.01
SINGLE = 1e-4  # above EXACT tasks, tolerances down to this one are reached in single precision
START = 4.0  # the first penalty, times the inverse of the largest eigenvalue of Y
CHECK_EVERY = 10  # steps between two checks of residuals, gap and penalty
FULL_EVERY = 30  # steps between two full eigendecompositions
OVERSHOOT = 1.7  # over-relaxation; 1 is none, and below 2 it saves steps
IMBALANCE = 3.0  # the penalty changes when one residual is this many times the other
SPARE, SPARE_SHARE = 6, 4  # columns beyond the rank of X, for the next eigenvalues: so many, or one in so many
FIRST, FRESH, MORE = 32, 4, 16  # pseudo-random columns: at the start, at each step, and where the block was too small
NARROWEST = 0.3  # the polynomial is never small on less than this share of the interval that is shrunk to 0
FULL_SHARE = 1 / 3  # above this share of all eigenpairs a full eigendecomposition is faster
NORM_SHARE = 0.05  # relative tolerance of Lanczos, as a share of the tolerance of the gap
STRIP = 32768  # elements of a matrix that are updated at a time, so that they stay in the processor's cache
DEGREE = 3  # of the polynomial; 2 to 4 took about as long, as more degrees save steps
SETTLED = 1e-5  # eigenvalues that move less than this in a round, relative to the largest, have converged
ROUNDS = 60


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
    with threadpool_limits(1, user_api="blas"):
        similarity, residual = solve(pairs, sparsity=sparsity, max_steps=max_steps, tolerance=tolerance)
    if not max(residual, similarity.gap) <= tolerance:
        warnings.warn(
            f"complete_similarity stopped after {similarity.steps} steps with gap {similarity.gap:.1e} and residual "
            f"{residual:.1e} (wanted {tolerance:.0e}). Raise max_steps, or loosen tolerance; "
            "the clusters may be unreliable.",
            DidNotConverge,
            stacklevel=2,
        )
    if max(similarity.low_rank.max(), -similarity.low_rank.min()) < NEARLY_ZERO:
        warnings.warn(
            f"complete_similarity found nothing similar: every entry of X is nearly 0 with sparsity {sparsity:.3g}. "
            f"A cluster survives only where its tasks have more than {1 / sparsity:.1f} observed similar pairs each. "
            "Raise sparsity, or measure more pairs.",
            UserWarning,
            stacklevel=2,
        )
    return similarity


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


def solve(pairs: ObservedPairs, *, sparsity: float, max_steps: int, tolerance: float) -> tuple[Similarity, float]:
    """Alternate until both residuals and the gap are within `tolerance`, or for `max_steps`.

    The penalty is adapted to the two residuals during the first half of the steps and then fixed, as convergence is
    proved for a penalty that is fixed at some point. Returns the larger of the two residuals, relative, as well.
    """
    single = len(pairs.names) > EXACT and tolerance >= SINGLE
    state = _State(pairs.similar, pairs.observed, sparsity, np.float32 if single else np.float64)
    penalty, gap = START / max(1.0, _spectral_norm(state.target, within=0.01)), np.inf
    for step in range(1, max_steps + 1):
        nuclear_norm = state.shrink(1.0 / penalty, step=step)
        moved, distance = state.update(penalty)
        if step % CHECK_EVERY and step < max_steps:
            continue

        primal = distance / max(1.0, float(np.linalg.norm(state.low_rank)), float(np.linalg.norm(state.filled)))
        dual = penalty * moved / max(1.0, float(np.linalg.norm(state.multiplier)))
        residual = max(primal, dual)
        if residual <= tolerance or step == max_steps:
            gap = state.gap(nuclear_norm, tolerance=tolerance, prove=step == max_steps)
        if max(residual, gap) <= tolerance or step == max_steps:
            break
        if step <= max_steps // 2 and not 1 / IMBALANCE <= (primal + 1e-300) / (dual + 1e-300) <= IMBALANCE:
            penalty *= 2.0 if primal > dual else 0.5
    low_rank = state.low_rank.astype(np.float64)
    low_rank = (low_rank + low_rank.T) / 2.0  # (n, n): X
    errors = np.where(pairs.observed, pairs.similar - low_rank, 0.0)  # (n, n): E = P_Omega(Y - X)
    return Similarity(pairs.names, low_rank, errors, sparsity=sparsity, steps=step, gap=gap), residual


class _State:
    """X, Z and L, changed in place: new memory costs more here than arithmetic.

    After each step the multiplier L is zero outside *Omega* and at most lambda inside it, so only its spectral norm
    needs scaling to make it a feasible point of the dual.
    """

    def __init__(self, similar: Bools, observed: Bools, sparsity: float, dtype: DTypeLike) -> None:
        n = len(similar)
        self.target: Floats = similar.astype(dtype)  # (n, n): Y
        self.limits: Floats = np.multiply(observed, sparsity, dtype=dtype)  # (n, n): largest absolute values of L
        self.low_rank: Floats = np.zeros_like(self.target)  # (n, n): X
        self.filled: Floats = self.target.copy()  # (n, n): Z
        self.multiplier: Floats = np.zeros_like(self.target)  # (n, n): L
        self._buffers: Floats = np.empty((2, max(1, min(n, STRIP // n)), n), dtype)
        self._matrix: Floats = np.empty((n, n), dtype)  # (n, n): what is shrunk
        self._block = scatter(n, min(n, FIRST), seed=0)  # (n, k): where the search for its eigenpairs starts
        self._enough = False  # whether the block has enough columns beyond the rank of X
        self._edge = np.inf  # eigenvalues closer to 0 are of no interest

    def shrink(self, amount: float, *, step: int) -> float:
        """Bring every eigenvalue of *Z + L amount* closer to 0 by `amount` to get X.

        That is the proximal step of the nuclear norm, which is returned. A missed eigenvalue makes the step worse, but
        not the certificate.
        """
        np.multiply(self.multiplier, amount, out=self._matrix)
        self._matrix += self.filled
        values, vectors = self._eigenpairs(amount, step)
        rank = int((np.abs(values) > amount).sum())
        size = min(len(values), rank + max(SPARE, rank // SPARE_SHARE))
        self._enough = rank + SPARE // 2 <= size
        self._block = np.ascontiguousarray(vectors[:, :size])  # (n, size)
        self._edge = max(NARROWEST * amount, float(np.abs(values[size - 1])))
        shrunk = np.sign(values[:rank]) * (np.abs(values[:rank]) - amount)  # (rank,)
        basis = vectors[:, :rank].astype(self._matrix.dtype, copy=False)  # (n, rank)
        np.matmul(basis * shrunk.astype(basis.dtype), basis.T, out=self.low_rank)
        return float(np.abs(shrunk).sum())

    def _eigenpairs(self, amount: float, step: int) -> tuple[Floats, Floats]:
        """Those further than `amount` from 0 and some more, found from the block of the last step; or all of them."""
        n = len(self._matrix)
        block = self._block if n <= EXACT else np.hstack([self._block, scatter(n, FRESH, seed=step)])
        full = n <= EXACT and (not self._enough or step % FULL_EVERY == 0)
        while not full and block.shape[1] <= FULL_SHARE * n:
            values, vectors = sharpen(self._matrix, block, beyond=min(amount, self._edge))
            if n <= EXACT or (np.abs(values) > amount).sum() + SPARE // 2 <= len(values):
                return values, vectors
            block = np.hstack([vectors, scatter(n, max(MORE, len(values) // 3), seed=len(values))])
        values, vectors = np.linalg.eigh(self._matrix)  # (n,), (n, n)
        order = np.argsort(-np.abs(values), kind="stable")
        return values[order], vectors[:, order]

    def update(self, penalty: float) -> tuple[float, float]:
        """The next Z and L, a strip of rows at a time.

        Returns how far Z moved, and how far X is from it (Frobenius norms).
        """
        strip, moved, distance = self._buffers.shape[1], 0.0, 0.0
        for start in range(0, len(self.target), strip):
            rows = slice(start, start + strip)
            low_rank, filled, pull, limit = (
                matrix[rows] for matrix in (self.low_rank, self.filled, self.multiplier, self.limits)
            )
            ahead, spare = self._buffers[:, : len(pull)]
            np.multiply(low_rank, OVERSHOOT, out=ahead)
            ahead += np.multiply(filled, 1.0 - OVERSHOOT, out=spare)
            ahead -= np.divide(pull, penalty, out=spare)
            np.subtract(self.target[rows], ahead, out=pull)
            pull *= penalty
            np.minimum(pull, limit, out=pull)
            np.maximum(pull, np.negative(limit, out=spare), out=pull)
            ahead += np.divide(pull, penalty, out=spare)
            moved += float(np.vdot(np.subtract(ahead, filled, out=spare), spare))
            distance += float(np.vdot(np.subtract(low_rank, ahead, out=spare), spare))
            filled[...] = ahead
        return float(np.sqrt(moved)), float(np.sqrt(distance))

    def gap(self, nuclear_norm: float, *, tolerance: float, prove: bool) -> float:
        """The relative duality gap at X and L scaled, certain where it is within the tolerance or to be proved."""
        errors = np.abs(self.target - self.low_rank)
        primal = nuclear_norm + float(np.multiply(errors, self.limits, out=errors).sum(dtype=np.float64))
        dual = float(np.multiply(self.multiplier, self.target, out=errors).sum(dtype=np.float64))
        norm = _spectral_norm(self.multiplier, within=NORM_SHARE * tolerance)
        gap = 1.0 - dual / max(1.0, norm) / primal
        if (prove or gap <= tolerance) and len(errors) > EXACT and not _is_bound(norm, self.multiplier):
            gap = 1.0 - dual / max(1.0, _spectral_norm(self.multiplier)) / primal
        return max(0.0, gap)


def _spectral_norm(matrix: Floats, *, within: float = 0.0) -> float:
    """The spectral norm: exact, or of a large matrix as Lanczos finds it, raised by its relative tolerance `within`."""
    n = len(matrix)
    if n > EXACT and within:
        with suppress(ArpackError):
            start = scatter(n, 1, seed=n)[:, 0]  # (n,)
            values = eigsh(csr_array(matrix), k=1, which="LM", v0=start, tol=within, return_eigenvectors=False)
            return float(np.abs(values[0])) * (1.0 + within)
    values = np.linalg.eigvalsh(matrix.astype(np.float64, copy=False))  # (n,)
    return max(-float(values[0]), float(values[-1]))


def _is_bound(norm: float, matrix: Floats) -> bool:
    """Whether no eigenvalue is larger in absolute value: *norm I - M* and *norm I + M* have Cholesky factors."""
    try:
        return all(len(np.linalg.cholesky(norm * np.eye(len(matrix)) + sign * matrix)) for sign in (1.0, -1.0))
    except np.linalg.LinAlgError:
        return False


def scatter(n: int, count: int, *, seed: int) -> Floats:
    """Pseudo-random columns of length about 1, the same at every call (SplitMix64)."""
    start = (np.arange(n * count, dtype=np.uint64) + np.uint64(seed * 0x10001)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (start ^ (start >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    columns: Floats = ((mixed / 2.0**64 - 0.5) * np.sqrt(12.0 / n)).reshape(n, count)
    return columns


def sharpen(matrix: Floats, block: Floats, *, beyond: float) -> tuple[Floats, Floats]:
    """One round: approximate eigenvalues, those furthest from 0 first, and their vectors in columns.

    The polynomial is computed in single precision: it only has to turn the block in the right direction. The result is
    computed in the precision of the matrix. block (n, k) -> values (k,), vectors (n, k), orthonormal
    """
    single, last = matrix.astype(np.float32, copy=False), block.astype(np.float32)  # (n, n), (n, k)
    filtered = single @ last / np.float32(beyond)  # (n, k)
    for _ in range(DEGREE - 1):
        last, filtered = filtered, single @ filtered * np.float32(2.0 / beyond) - last
    basis = np.linalg.qr(filtered.astype(np.float64))[0]  # (n, k)
    small = basis.T @ (matrix @ basis.astype(matrix.dtype, copy=False))  # (k, k)
    values, turn = np.linalg.eigh((small + small.T) / 2.0)
    order = np.argsort(-np.abs(values), kind="stable")
    return values[order], basis @ turn[:, order]


def leading(matrix: Floats, *, count: int) -> tuple[Floats, Floats]:
    """The `count` eigenvalues furthest from 0 and their vectors, from a cold start, until the values settle.

    Some columns more than asked for are computed: they speed up the last ones, which have the closest neighbours.
    """
    n = len(matrix)
    vectors = scatter(n, min(n, count + max(10, count // 4)), seed=0)  # (n, more than count)
    values = np.sort(np.linalg.norm(matrix @ vectors, axis=0))[::-1]
    for _ in range(ROUNDS):
        before = values[:count]
        values, vectors = sharpen(matrix, vectors, beyond=max(abs(float(values[-1])), 1e-12))
        if np.abs(values[:count] - before).max() <= SETTLED * max(abs(float(values[0])), 1e-300):
            break
    return values[:count], vectors[:, :count]
