"""Other clusters than the method's own, to see what the method's own are worth.

raw_clusters       spectral clustering of S as it was measured: neither filtered nor completed
random_clusters    the same sizes, the tasks drawn at random
"""

import numpy as np

from manymetrics.partition import cluster_tasks
from manymetrics.values import Clusters, Similarity, TransferMatrix


def raw_clusters(transfer: TransferMatrix, clusters: int) -> Clusters:
    """Cluster the tasks by the mean of both directions of transfer, brought to the range from 0 to 1.

    A pair that was not measured counts as the middle of the range.
    """
    n = len(transfer.names)
    both = np.stack([transfer.scores, transfer.scores.T])  # (2, n, n)
    known = np.isfinite(both)
    mean = np.where(known, both, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)  # (n, n)
    apart = ~np.eye(n, dtype=bool) & known.any(axis=0)
    low, high = (mean[apart].min(), mean[apart].max()) if apart.any() else (0.0, 1.0)
    similar = np.where(apart, (mean - low) / max(high - low, 1e-12), 0.5)
    np.fill_diagonal(similar, 1.0)
    raw = Similarity(transfer.names, similar, np.zeros((n, n)), sparsity=0.0, steps=0, gap=0.0)
    return cluster_tasks(raw, n_clusters=clusters)


def random_clusters(clusters: Clusters, *, seed: int) -> Clusters:
    """Deal the tasks to clusters of the same sizes."""
    labels = np.random.default_rng(seed).permutation(clusters.labels)
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return Clusters(clusters.names, np.argsort(np.argsort(first))[inverse])
