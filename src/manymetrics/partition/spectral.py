"""X -> C_1 .. C_K: part the tasks into clusters that share a metric.

Paper: section 3.1, Algorithm 2, last line: spectral clustering of X (Ng, Jordan and Weiss 2002). Names here and there:
    similarity.low_rank   X            the completed likeness
    clusters.labels       C_1 .. C_K   which tasks share a metric
    clusters              K            given, or chosen by `choose_clusters`

The leading eigenvectors are turned into clusters by a pivoted QR decomposition (Damle, Minden and Ying 2019), refined
by Lloyd's iteration from there: no random starts, hence one answer. Neither step changes when those eigenvectors change
sign or are rotated among themselves, so the answer does not hang on the basis an eigensolver returns for their space.
"""

import warnings

import numpy as np
from scipy.linalg import qr
from threadpoolctl import threadpool_limits

from manymetrics.errors import DataError, RecipeError
from manymetrics.partition.choice import LikenessGraph, choose_clusters, likeness_graph
from manymetrics.partition.pairs import order_by_name
from manymetrics.values import Clusters, Floats, Ints, Similarity

VANISHING = 1e-8  # an eigenvalue this small carries no direction, only rounding
REFINEMENTS = 100


def cluster_tasks(similarity: Similarity, *, clusters: int | None = None, most: int | None = None) -> Clusters:
    """Part the tasks into exactly `clusters` groups that are alike inside, or into as many as the similarity shows.

    Strangers, the tasks that no other task is like, must not stop or crowd the clustering. Let the others show k
    clusters. If there is room for a cluster for each stranger beside those k, each gets one; if there is room, but
    less, the strangers share one; if there is none, each joins the cluster it is least unlike, or the largest one.
    When the number is chosen it is k, plus one if there are strangers (see `choose_clusters`; `most` limits it).

    More clusters than the similarity can tell apart are made by halving the largest in the order of names, with a
    warning. Clusters are numbered by the first name in them, so the order of the tasks changes nothing.
    """
    n = len(similarity.names)
    if clusters is None:
        clusters = choose_clusters(similarity, most=most)
    if clusters < 1:
        raise RecipeError(f"cluster_tasks was given clusters={clusters}. Use 1 or more, or None to have it chosen.")
    if clusters > n:
        raise DataError(f"cluster_tasks cannot part {n} tasks into {clusters} clusters. Ask for at most {n} clusters.")
    # tasks in the order of names, here and below
    labels = (
        np.arange(n) if clusters == n else _fill_up(_part(likeness_graph(similarity, clusters), clusters), clusters)
    )  # (n,)
    back = np.argsort(order_by_name(similarity.names))
    return Clusters(similarity.names, _number_by_first(labels)[back])


def _part(graph: LikenessGraph, clusters: int) -> Ints:
    """Labels of all tasks, with `clusters` different ones or fewer: the rule for strangers, as told above."""
    strangers = np.flatnonzero(graph.stranger)
    shown = graph.supported(clusters)
    if shown >= clusters or not len(strangers):
        room = 0
    elif clusters - len(strangers) >= shown:
        room = len(strangers)
    else:
        room = 1
    labels = np.zeros(len(graph.stranger), dtype=np.int64)  # (n,)
    inner = _assign(graph, clusters - room)  # (p,)
    labels[~graph.stranger] = inner
    if room:
        labels[strangers] = inner.max(initial=-1) + 1 + np.minimum(np.arange(len(strangers)), room - 1)
    else:
        labels[strangers] = [_least_unlike(graph, int(task), labels) for task in strangers]
    return labels


def _assign(graph: LikenessGraph, clusters: int) -> Ints:
    """Cluster the tasks that are not strangers; fewer clusters than asked where the spectrum has no more to tell."""
    telling = min(clusters, int((graph.values > VANISHING).sum()))
    if telling <= 1:
        return np.zeros(len(graph.vectors), dtype=np.int64)  # (p,)
    vectors = graph.vectors[:, :telling]  # (p, K)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)  # (p, 1)
    with threadpool_limits(limits=1, user_api="blas"):  # for the reasons given in `completion.solve`
        return _refine(vectors / np.maximum(lengths, 1e-300), _assign_by_pivots(vectors))


def _assign_by_pivots(vectors: Floats) -> Ints:
    """Find K tasks that stand for the clusters, turn the axes towards them, and give each task its nearest axis."""
    clusters = vectors.shape[1]
    pivots = qr(vectors.T, mode="r", pivoting=True)[1][:clusters]  # (K,)
    left, _, right = np.linalg.svd(vectors[pivots].T)
    labels: Ints = np.abs(vectors @ (left @ right)).argmax(axis=1)  # (p,)
    return labels


def _refine(points: Floats, labels: Ints) -> Ints:
    """Lloyd's iteration from the given labels, stopped before it would empty a cluster."""
    _, labels = np.unique(labels, return_inverse=True)
    clusters = int(labels.max()) + 1
    for _ in range(REFINEMENTS):
        centres = np.stack([points[labels == cluster].mean(axis=0) for cluster in range(clusters)])  # (K, dimensions)
        distances = ((points[:, None, :] - centres) ** 2).sum(axis=2)  # (p, K)
        nearest = distances.argmin(axis=1)  # (p,)
        if (nearest == labels).all() or len(np.unique(nearest)) < clusters:
            break
        labels = nearest
    return labels


def _least_unlike(graph: LikenessGraph, task: int, labels: Ints) -> int:
    """The cluster with the highest mean likeness to a stranger; among equals the largest, where it weighs least."""

    def claim(cluster: int) -> tuple[float, int, int]:
        members = ~graph.stranger & (labels == cluster)  # (n,)
        return round(float(graph.likeness[task, members].mean()), 6), int(members.sum()), -cluster

    candidates: list[int] = np.unique(labels[~graph.stranger]).tolist()
    return max(candidates, key=claim)


def _fill_up(labels: Ints, clusters: int) -> Ints:
    """Halve the largest cluster, in the order of names, until there are as many clusters as were asked for."""
    found = len(np.unique(labels))
    if found < clusters:
        warnings.warn(
            f"cluster_tasks was asked for {clusters} clusters, but the similarity tells only {found} apart; the "
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
