"""Similarities and observed pairs of tasks whose clusters are known."""

import numpy as np

from manymetrics.values import ObservedPairs, Similarity


def named(n):
    return tuple(f"task{task:05}" for task in range(n))


def truth_of(sizes):
    """The cluster of each task."""
    return np.repeat(np.arange(len(sizes)), sizes)


def blocks(*sizes):
    """The similarity of tasks in clusters of the given sizes: 1 inside a cluster, 0 outside."""
    truth = truth_of(sizes)
    return (truth[:, None] == truth).astype(float)


def similarity_of(low_rank, names=None):
    low_rank = np.array(low_rank, dtype=float)
    return Similarity(names or named(len(low_rank)), low_rank, np.zeros_like(low_rank), sparsity=1.0, steps=1, gap=0.0)


def planted(sizes, *, seen, wrong=(0.0, 0.0), seed=0):
    """Pairs of tasks in clusters: a share `seen` is observed, shares of the similar and the dissimilar are wrong."""
    rng = np.random.default_rng(seed)
    same = blocks(*sizes).astype(bool)
    observed = np.triu(rng.random(same.shape) < seen, 1)
    flipped = np.triu(rng.random(same.shape) < np.where(same, *wrong), 1)
    observed |= observed.T | np.eye(len(same), dtype=bool)
    return ObservedPairs(named(len(same)), similar=(same ^ flipped ^ flipped.T) & observed, observed=observed)


def reordered(pairs, order):
    """The same pairs, their tasks given in another order."""
    square = np.ix_(order, order)
    return ObservedPairs(tuple(pairs.names[task] for task in order), pairs.similar[square], pairs.observed[square])


def objective(pairs, low_rank, sparsity):
    """The objective of eqn:pro at X, with the E that the constraint leaves: P_Omega(Y - X)."""
    errors = np.abs(pairs.similar - low_rank)[pairs.observed].sum()
    return np.abs(np.linalg.eigvalsh(low_rank)).sum() + sparsity * errors
