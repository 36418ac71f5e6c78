"""X -> C_1 .. C_K: divide the tasks into clusters that share a metric.

Paper: section 3.1, Algorithm 2, last line: spectral clustering of X (Ng, Jordan and Weiss 2002). Symbols:
    similarity.low_rank   X            the completed similarity
    clusters.labels       C_1 .. C_K   which tasks share a metric
    clusters              K            given, or chosen by `choose_clusters`

The leading eigenvectors are turned into clusters by a pivoted QR decomposition (Damle, Minden and Ying 2019), refined
by Lloyd's iteration from there: no random starts, hence one answer. Neither step changes when those eigenvectors change
sign or are rotated among themselves, so the answer does not depend on the basis an eigensolver returns for their space.
"""

import warnings

import numpy as np
from scipy.spatial.distance import cdist

from manymetrics.errors import DataError, RecipeError
from manymetrics.partition.choice import SimilarityGraph, choose_clusters, similarity_graph
from manymetrics.partition.eigenpairs import one_thread
from manymetrics.partition.pairs import order_by_name
from manymetrics.values import Clusters, Floats, Ints, Similarity

VANISHING = 1e-8  # an eigenvalue this small carries no direction, only rounding
REFINEMENTS = 100


def cluster_tasks(similarity: Similarity, *, clusters: int | None = None, most: int | None = None) -> Clusters:
    """Divide the tasks into exactly `clusters` groups of similar tasks, or into as many as the similarity shows.

    Outliers, the tasks that no other task is similar to, are assigned after the others. Let the others show k clusters.
    If there are enough clusters beside those k for each outlier, each gets one; if there are some, but fewer, the
    outliers share one; if there are none, each joins the cluster it is most similar to, or the largest one. When the
    number is chosen it is k, plus one if there are outliers (see `choose_clusters`; `most` limits it).

    More clusters than the similarity can distinguish are made by halving the largest in the order of names, with a
    warning. Clusters are numbered by the first name in them, so the order of the tasks changes nothing.
    """
    n = len(similarity.names)
    if clusters is None:
        clusters = choose_clusters(similarity, most=most)
    if clusters < 1:
        raise RecipeError(f"cluster_tasks was given clusters={clusters}. Use 1 or more, or None to have it chosen.")
    if clusters > n:
        raise DataError(f"cluster_tasks cannot divide {n} tasks into {clusters} clusters. Ask for at most {n}.")
    if clusters == n:
        labels: Ints = np.arange(n)  # (n,): tasks in the order of names, here and below
    else:
        labels = _fill_up(_label(similarity_graph(similarity, clusters), clusters), clusters)
    back = np.argsort(order_by_name(similarity.names))
    return Clusters(similarity.names, _number_by_first(labels)[back])


def _label(graph: SimilarityGraph, clusters: int) -> Ints:
    """Labels of all tasks, with `clusters` different ones or fewer; outliers as described in `cluster_tasks`."""
    outliers = np.flatnonzero(graph.outlier)
    shown = graph.supported(clusters)
    if shown >= clusters or not len(outliers):
        extra = 0
    elif clusters - len(outliers) >= shown:
        extra = len(outliers)
    else:
        extra = 1
    labels = np.zeros(len(graph.outlier), dtype=np.int64)  # (n,)
    inner = _assign(graph, clusters - extra)  # (p,)
    labels[~graph.outlier] = inner
    if extra:
        labels[outliers] = inner.max(initial=-1) + 1 + np.minimum(np.arange(len(outliers)), extra - 1)
    else:
        labels[outliers] = [_most_similar(graph, int(task), labels) for task in outliers]
    return labels


def _assign(graph: SimilarityGraph, clusters: int) -> Ints:
    """Cluster the tasks that are not outliers; fewer clusters than asked for where the spectrum shows no more."""
    shown = min(clusters, int((graph.values > VANISHING).sum()))
    if shown <= 1:
        return np.zeros(len(graph.vectors), dtype=np.int64)  # (p,)
    from sklearn.cluster._spectral import cluster_qr  # slow to load

    vectors = graph.vectors[:, :shown]  # (p, K)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)  # (p, 1)
    with one_thread():
        return _refine(vectors / np.maximum(lengths, 1e-300), cluster_qr(vectors))


def _refine(points: Floats, labels: Ints) -> Ints:
    """Lloyd's iteration from the given labels, stopped before it would empty a cluster."""
    _, labels = np.unique(labels, return_inverse=True)
    clusters = int(labels.max()) + 1
    for _ in range(REFINEMENTS):
        centres = np.stack([points[labels == cluster].mean(axis=0) for cluster in range(clusters)])  # (K, dimensions)
        nearest = cdist(points, centres, "sqeuclidean").argmin(axis=1)  # (p,)
        if (nearest == labels).all() or len(np.unique(nearest)) < clusters:
            break
        labels = nearest
    return labels


def _most_similar(graph: SimilarityGraph, outlier: int, labels: Ints) -> int:
    """The cluster with the highest mean similarity to an outlier; among equals the largest, where it matters least."""

    def rank(cluster: int) -> tuple[float, int, int]:
        members = ~graph.outlier & (labels == cluster)  # (n,)
        return round(float(graph.weights[outlier, members].mean()), 6), int(members.sum()), -cluster

    candidates: list[int] = np.unique(labels[~graph.outlier]).tolist()
    return max(candidates, key=rank)


def _fill_up(labels: Ints, clusters: int) -> Ints:
    """Halve the largest cluster, in the order of names, until there are as many clusters as were asked for."""
    found = len(np.unique(labels))
    if found < clusters:
        warnings.warn(
            f"cluster_tasks was asked for {clusters} clusters, but the similarity distinguishes only {found}; the "
            "largest were halved by name. Ask for fewer clusters, or complete the similarity with a larger sparsity.",
            UserWarning,
            stacklevel=3,
        )
    labels = _number_by_first(labels)
    for new in range(found, clusters):
        members = np.flatnonzero(labels == np.bincount(labels).argmax())
        labels[members[(len(members) + 1) // 2 :]] = new
    return labels


def _number_by_first(labels: Ints) -> Ints:
    """The same clusters, numbered in the order in which they first appear."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]  # (n,)
