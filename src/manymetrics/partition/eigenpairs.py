"""The eigenpairs of a large symmetric matrix that lie furthest from 0, without the many others.

The matrix is only ever multiplied with a block of columns, so it may be a sum of factors and of a sparse matrix. A
round of subspace iteration (`sharpen`) puts a polynomial of the matrix between the block and its Rayleigh-Ritz
approximation: a Chebyshev polynomial, small on the interval [-beyond, beyond] and steep outside it, which brings out
both ends of the spectrum at once (Zhou, Saad, Tiago and Chelikowsky 2006). Where a matrix changes little from step to
step, the vectors of the last step are a start so good that one round is enough.

Everything is deterministic: where other programs draw a random start, `scatter` gives the same numbers at every call.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg.blas import dtrsm

from manymetrics.values import Floats

DEGREE = 3  # of the polynomial; 2 to 4 took about as long, as more degrees save steps
SPARE = 4  # columns that must stay free for eigenvalues not seen yet
SETTLED = 1e-5  # eigenvalues that move less than this in a round, relative to the largest, have been found
ROUNDS = 60
WELL = 0.1  # columns this far from the span of the others need no second factorisation
ILL = 1e-6  # a column this close to the span of the others is left to QR

Multiply = Callable[[Floats], Floats]  # (n, k) -> (n, k), in the precision of what it is given


def scatter(n: int, count: int, *, salt: int) -> Floats:
    """Columns without a pattern, of length about 1, the same whenever they are asked for (SplitMix64)."""
    start = (np.arange(n * count, dtype=np.uint64) + np.uint64(salt * 0x10001)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (start ^ (start >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    columns: Floats = ((mixed / 2.0**64 - 0.5) * np.sqrt(12.0 / n)).reshape(n, count)
    return columns


def sharpen(multiply: Multiply, block: Floats, *, beyond: float) -> tuple[Floats, Floats]:
    """One round: approximate eigenvalues, those furthest from 0 first, and their vectors in columns.

    The polynomial works in single precision: it only has to point the block the right way. What comes out is computed
    in double precision. block (n, k) -> values (k,), vectors (n, k), orthonormal
    """
    last = block.astype(np.float32)  # (n, k)
    filtered = multiply(last) / np.float32(beyond)  # (n, k)
    for _ in range(DEGREE - 1):
        last, filtered = filtered, multiply(filtered) * np.float32(2.0 / beyond) - last
    basis = _orthonormal(filtered.astype(np.float64))  # (n, k)
    small = basis.T @ multiply(basis)  # (k, k)
    values, turn = np.linalg.eigh((small + small.T) / 2.0)
    order = np.argsort(-np.abs(values), kind="stable")
    return values[order], basis @ turn[:, order]


def _orthonormal(block: Floats) -> Floats:
    """Columns that span the same space: by one or two Cholesky factorisations, or by QR where the first breaks down."""
    block = block / np.maximum(np.linalg.norm(block, axis=0), 1e-300)
    try:
        for _ in range(2):
            corner = np.linalg.cholesky(block.T @ block)  # (k, k), lower
            if corner.diagonal().min() < ILL:
                return np.linalg.qr(block)[0]
            block = np.ascontiguousarray(dtrsm(1.0, corner, block.T, lower=1).T)
            if corner.diagonal().min() > WELL:
                break
    except np.linalg.LinAlgError:
        return np.linalg.qr(block)[0]
    return block


def follow(multiply: Multiply, block: Floats, *, beyond: float, edge: float, most: int) -> tuple[Floats, Floats]:
    """Eigenpairs from a block that nearly spans those outside [-beyond, beyond]; grown until some lie inside.

    `edge` is where the polynomial starts to grow: below `beyond`, it brings out the eigenvalues next in line as well. A
    block that spans too little is grown here, but it may take the rounds of some more steps until nothing is missed.
    There are never more than `most` columns.
    """
    while True:
        values, vectors = sharpen(multiply, block, beyond=edge)
        outside = int((np.abs(values) > beyond).sum())
        if outside + SPARE <= len(values) or len(values) >= most:
            return values, vectors
        more = min(max(16, len(values) // 3), most - len(values))
        block = np.hstack([vectors, scatter(len(vectors), more, salt=len(values))])


def leading(multiply: Multiply, n: int, *, count: int) -> tuple[Floats, Floats]:
    """The `count` eigenvalues furthest from 0 and their vectors, from a cold start, until the values settle.

    Some columns more than asked for are carried along: they speed up the last ones, which have the closest neighbours.
    """
    vectors = scatter(n, min(n, count + max(10, count // 4)), salt=0)  # (n, more than count)
    values = np.linalg.norm(multiply(vectors), axis=0)
    values = np.sort(values)[::-1]
    for _ in range(ROUNDS):
        before = values[:count]
        values, vectors = sharpen(multiply, vectors, beyond=max(abs(float(values[-1])), 1e-12))
        if np.abs(values[:count] - before).max() <= SETTLED * max(abs(float(values[0])), 1e-300):
            break
    return values[:count], vectors[:, :count]
