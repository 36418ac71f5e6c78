"""The eigenpairs of a large symmetric matrix that lie furthest from 0, without the many others.

The matrix is only ever multiplied with a block of columns. A round of subspace iteration (`sharpen`) puts a polynomial
of the matrix between the block and its Rayleigh-Ritz approximation: a Chebyshev polynomial, small on the interval
[-beyond, beyond] and steep outside it, which amplifies both ends of the spectrum at once (Zhou, Saad, Tiago and
Chelikowsky 2006). Where a matrix changes little from step to step, the vectors of the last step are such a good start
that one round is enough.

Everything is deterministic: instead of random numbers, `scatter` gives the same columns for the same seed, and
`one_thread` keeps the number of cores from changing the order of summation.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from manymetrics.values import Floats

DEGREE = 3  # of the polynomial; 2 to 4 took about as long, as more degrees save steps
SETTLED = 1e-5  # eigenvalues that move less than this in a round, relative to the largest, have converged
ROUNDS = 60

Multiply = Callable[[Floats], Floats]  # (n, k) -> (n, k), in the precision of its argument


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra on one thread.

    The result is then the same on any number of cores, and threads that wait for one another on busy cores cost more
    than they save.
    """
    with _libraries().limit(limits=1, user_api="blas"):
        yield


# all are loaded by now, and looking for them takes as long as some steps of a solver
_libraries = cache(ThreadpoolController)


def by_precision(matrix: Floats) -> Multiply:
    """Products of a matrix with blocks of columns, in the precision of the block."""
    single = matrix.astype(np.float32, copy=False)

    def multiply(block: Floats) -> Floats:
        factor = single if block.dtype == np.float32 else matrix
        product: Floats = factor @ block.astype(factor.dtype, copy=False)
        return product

    return multiply


def scatter(n: int, count: int, *, seed: int) -> Floats:
    """Pseudo-random columns of length about 1, the same at every call (SplitMix64)."""
    start = (np.arange(n * count, dtype=np.uint64) + np.uint64(seed * 0x10001)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (start ^ (start >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    columns: Floats = ((mixed / 2.0**64 - 0.5) * np.sqrt(12.0 / n)).reshape(n, count)
    return columns


def sharpen(multiply: Multiply, block: Floats, *, beyond: float) -> tuple[Floats, Floats]:
    """One round: approximate eigenvalues, those furthest from 0 first, and their vectors in columns.

    The polynomial is computed in single precision: it only has to turn the block in the right direction. The result is
    computed in double precision. block (n, k) -> values (k,), vectors (n, k), orthonormal
    """
    last = block.astype(np.float32)  # (n, k)
    filtered = multiply(last) / np.float32(beyond)  # (n, k)
    for _ in range(DEGREE - 1):
        last, filtered = filtered, multiply(filtered) * np.float32(2.0 / beyond) - last
    basis = np.linalg.qr(filtered.astype(np.float64))[0]  # (n, k)
    small = basis.T @ multiply(basis)  # (k, k)
    values, turn = np.linalg.eigh((small + small.T) / 2.0)
    order = np.argsort(-np.abs(values), kind="stable")
    return values[order], basis @ turn[:, order]


def leading(multiply: Multiply, n: int, *, count: int) -> tuple[Floats, Floats]:
    """The `count` eigenvalues furthest from 0 and their vectors, from a cold start, until the values settle.

    Some columns more than asked for are computed: they speed up the last ones, which have the closest neighbours.
    """
    vectors = scatter(n, min(n, count + max(10, count // 4)), seed=0)  # (n, more than count)
    values = np.linalg.norm(multiply(vectors), axis=0)
    values = np.sort(values)[::-1]
    for _ in range(ROUNDS):
        before = values[:count]
        values, vectors = sharpen(multiply, vectors, beyond=max(abs(float(values[-1])), 1e-12))
        if np.abs(values[:count] - before).max() <= SETTLED * max(abs(float(values[0])), 1e-300):
            break
    return values[:count], vectors[:, :count]
