"""Similarities and observed pairs of tasks whose clusters are known."""

import numpy as np

from manymetrics.values import ObservedPairs, Similarity


def named(n):
    return tuple(f"task{place:05}" for place in range(n))


def truth_of(sizes):
    """The cluster of each task."""
    return np.repeat(np.arange(len(sizes)), sizes)


def blocks(*sizes):
    """The similarity of tasks in clusters of the given sizes: 1 inside a cluster, 0 outside."""
    truth = truth_of(sizes)
    return (truth[:, None] == truth).astype(float)


def similar(low_rank, names=None):
    low_rank = np.array(low_rank, dtype=float)
    return Similarity(names or named(len(low_rank)), low_rank, np.zeros_like(low_rank), sparsity=1.0, steps=1, gap=0.0)


def planted(sizes, *, seen, wrong=(0.0, 0.0), seed=0):
    """Pairs of tasks in clusters: a share `seen` is known, and of the alike and the apart ones a share is wrong."""
    rng = np.random.default_rng(seed)
    same = blocks(*sizes).astype(bool)
    known = np.triu(rng.random(same.shape) < seen, 1)
    flipped = np.triu(rng.random(same.shape) < np.where(same, *wrong), 1)
    known |= known.T | np.eye(len(same), dtype=bool)
    return ObservedPairs(named(len(same)), alike=(same ^ flipped ^ flipped.T) & known, known=known)


def reordered(pairs, order):
    """The same pairs, their tasks given in another order."""
    square = np.ix_(order, order)
    return ObservedPairs(tuple(pairs.names[place] for place in order), pairs.alike[square], pairs.known[square])


def objective(pairs, low_rank, sparsity):
    """The objective of eqn:pro at X, with the E that the constraint leaves: P_Omega(Y - X)."""
    errors = np.abs(pairs.alike - low_rank)[pairs.known].sum()
    return np.abs(np.linalg.eigvalsh(low_rank)).sum() + sparsity * errors
