"""X -> C_1 .. C_K: divide the tasks into clusters that share a metric, and choose how many.

Paper: section 3.1, Algorithm 2, last line: spectral clustering of X (Ng, Jordan and Weiss 2002). K is given, as in the
paper, or chosen by the last wide gap in the spectrum.

The leading eigenvectors are turned into clusters by a pivoted QR decomposition (Damle, Minden and Ying 2019), refined
by Lloyd's iteration from there: no random starts, hence one answer. Neither step changes when those eigenvectors change
sign or are rotated among themselves, so the answer does not depend on the basis an eigensolver returns for their space.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from manymetrics.errors import DataError, RecipeError
from manymetrics.partition.completion import leading
from manymetrics.values import Bools, Clusters, Floats, Ints, Similarity

OUTLIER = 0.1  # a task is an outlier when its largest similarity is below this share of the largest of all
ROUNDING = 1e-6  # a similarity this small counts as 0
DAMPING = 0.1  # added to every task's degree, as a share of the mean degree
ALL_EIGENPAIRS = 1200  # above so many tasks only the first eigenpairs are computed
DEFAULT_MAX = 128  # and without a limit, no more than so many clusters are considered
WIDE_GAP = 0.5  # of the widest gap between eigenvalues, that the last wide one has at least
VANISHING = 1e-8  # an eigenvalue this small carries no direction, only rounding
REFINEMENTS = 100


def choose_clusters(similarity: Similarity, *, max_clusters: int | None = None) -> int:
    """How many clusters the similarity shows, by the last wide gap in the spectrum of its graph.

    Outliers, tasks that no other is similar to, add one to the count however many they are; if all tasks are outliers,
    nothing distinguishes them and the answer is 1. `max_clusters` limits the answer; without it, no more than 128
    clusters are considered among more than 1,200 tasks.
    """
    if not similarity.names:
        raise DataError("Similarity names no tasks, so there are no clusters to choose. Give at least one task.")
    if max_clusters is not None and max_clusters < 1:
        raise RecipeError(
            f"choose_clusters was given max_clusters={max_clusters}. Use 1 or more, or None for no limit."
        )
    graph = similarity_graph(similarity, max_clusters)
    count = graph.supported(max_clusters) + int(graph.outlier.any())
    return count if max_clusters is None else min(count, max_clusters)


def cluster_tasks(
    similarity: Similarity, *, n_clusters: int | None = None, max_clusters: int | None = None
) -> Clusters:
    """Divide the tasks into exactly `n_clusters` groups of similar tasks, or into as many as the similarity shows.

    Outliers, the tasks that no other task is similar to, are assigned after the others. Let the others show k clusters.
    If there are enough clusters beside those k for each outlier, each gets one; if there are some, but fewer, the
    outliers share one; if there are none, each joins the cluster it is most similar to, or the largest one. When the
    number is chosen it is k, plus one if there are outliers (see `choose_clusters`; `max_clusters` limits it).

    More clusters than the similarity can distinguish are made by halving the largest in the order of the rows, with a
    warning. Clusters are numbered by their first row. Names of tasks have no effect.
    """
    n = len(similarity.names)
    if n_clusters is None:
        n_clusters = choose_clusters(similarity, max_clusters=max_clusters)
    if n_clusters < 1:
        raise RecipeError(f"cluster_tasks was given n_clusters={n_clusters}. Use 1 or more, or None to have it chosen.")
    if n_clusters > n:
        raise DataError(f"cluster_tasks cannot divide {n} tasks into {n_clusters} clusters. Ask for at most {n}.")
    if n_clusters == n:
        return Clusters(similarity.names, np.arange(n))
    labels = number_by_first(_label(similarity_graph(similarity, n_clusters), n_clusters))
    distinct = int(labels.max()) + 1
    if distinct < n_clusters:
        warnings.warn(
            f"cluster_tasks was asked for {n_clusters} clusters, but the similarity distinguishes only {distinct}; the "
            "largest were halved. Ask for fewer clusters, or complete the similarity with a larger sparsity.",
            UserWarning,
            stacklevel=2,
        )
    for new in range(distinct, n_clusters):
        members = np.flatnonzero(labels == np.bincount(labels).argmax())
        labels[members[(len(members) + 1) // 2 :]] = new
    return Clusters(similarity.names, number_by_first(labels))


@dataclass(frozen=True, eq=False)
class SimilarityGraph:
    """The tasks, joined by how similar they are, and the spectrum of that graph.

    Outliers are tasks that no other task is similar to. They are left out of the spectrum, where each would count as a
    cluster of its own.
    """

    weights: Floats  # (n, n): X clipped to [0, 1]
    outlier: Bools  # (n,)
    values: Floats  # (q,): eigenvalues of the normalised affinity of the p others, largest first; all p or the first
    vectors: Floats  # (p, q): their eigenvectors, in columns

    def supported(self, max_clusters: int | None = None) -> int:
        """How many clusters the graph without its outliers shows: the last wide gap between eigenvalues; 0 if empty.

        Where clusters are nested, several gaps are wide, and the last of them divides the tasks most finely. At most
        half as many as there are tasks in it, so that clusters have two tasks on average, and fewer than there are
        eigenvalues.
        """
        if not len(self.values):
            return 0
        limit = max(1, min(len(self.vectors) // 2, len(self.values) - 1))
        limit = limit if max_clusters is None else min(limit, max_clusters)
        gaps = self.values[:limit] - self.values[1 : limit + 1]  # (limit,)
        wide = np.flatnonzero(gaps.round(9) >= WIDE_GAP * gaps.max().round(9))
        return int(wide[-1]) + 1 if gaps.max() > 0 else 1


def similarity_graph(similarity: Similarity, max_clusters: int | None = None) -> SimilarityGraph:
    """Turn *X* into a graph: clip it to [0, 1], set outliers aside, normalise by damped degrees.

    A task's similarity to itself is replaced by its largest similarity to another; otherwise a weakly attached task
    would count as a cluster of its own. Degrees are damped by a share of their mean, which keeps the few spurious
    similarities of a badly measured task from weighing as much as those of a cluster.

    Above `ALL_EIGENPAIRS` tasks only the first eigenpairs are computed: enough for `max_clusters`, or without it for
    `DEFAULT_MAX`. They are selected by distance from 0, so a negative eigenvalue may take the place of a small positive
    one; neither indicates a cluster.
    """
    weights = np.clip(similarity.low_rank, 0.0, 1.0)  # (n, n), a copy: changed in place from here on
    weights += weights.T
    weights /= 2.0
    itself = weights.diagonal().copy()  # (n,)
    np.fill_diagonal(weights, 0.0)
    largest = weights.max(axis=1, initial=0.0)  # (n,)
    outlier = largest <= max(ROUNDING, OUTLIER * largest.max(initial=0.0))  # (n,)
    affinity = weights[np.ix_(~outlier, ~outlier)]  # (p, p)
    np.fill_diagonal(weights, itself)
    np.fill_diagonal(affinity, largest[~outlier])
    degrees = affinity.sum(axis=1)  # (p,)
    scale = 1.0 / np.sqrt(degrees + DAMPING * degrees.mean()) if len(degrees) else degrees  # (p,)
    affinity *= scale[:, None]
    affinity *= scale
    size, n_clusters = len(affinity), DEFAULT_MAX if max_clusters is None else max_clusters
    with threadpool_limits(1, user_api="blas"):
        if size <= ALL_EIGENPAIRS or n_clusters >= size // 4:
            values, vectors = np.linalg.eigh(affinity)
        else:  # one more than clusters, to see the gap after the last
            values, vectors = leading(affinity, count=n_clusters + 1)
    order = np.argsort(values, kind="stable")[::-1]
    return SimilarityGraph(weights, outlier, values[order], vectors[:, order])


def _label(graph: SimilarityGraph, n_clusters: int) -> Ints:
    """Labels of all tasks, `n_clusters` different ones or fewer; outliers as described in `cluster_tasks`."""
    outliers = np.flatnonzero(graph.outlier)
    shown = graph.supported(n_clusters)
    spare = max(0, n_clusters - shown) if len(outliers) else 0
    extra = len(outliers) if spare >= len(outliers) else min(spare, 1)  # clusters of outliers
    labels = np.zeros(len(graph.outlier), dtype=np.int64)  # (n,)
    inner = _assign(graph, n_clusters - extra)  # (p,)
    labels[~graph.outlier] = inner
    if extra:
        labels[outliers] = inner.max(initial=-1) + 1 + np.minimum(np.arange(len(outliers)), extra - 1)
    else:
        labels[outliers] = [_most_similar(graph, int(task), labels) for task in outliers]
    return labels


def _assign(graph: SimilarityGraph, n_clusters: int) -> Ints:
    """Cluster the tasks that are not outliers; fewer clusters than asked for where the spectrum shows no more.

    Lloyd's iteration is stopped before it would empty a cluster.
    """
    shown = min(n_clusters, int((graph.values > VANISHING).sum()))
    if shown <= 1:
        return np.zeros(len(graph.vectors), dtype=np.int64)  # (p,)
    from sklearn.cluster._spectral import cluster_qr  # slow to load

    vectors = graph.vectors[:, :shown]  # (p, K)
    points = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)  # (p, K)
    with threadpool_limits(1, user_api="blas"):
        names, labels = np.unique(cluster_qr(vectors), return_inverse=True)
        for _ in range(REFINEMENTS):
            centroids = np.stack([points[labels == cluster].mean(axis=0) for cluster in range(len(names))])
            nearest = cdist(points, centroids, "sqeuclidean").argmin(axis=1)  # (p,)
            if (nearest == labels).all() or len(np.unique(nearest)) < len(names):
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


def number_by_first(labels: Ints) -> Ints:
    """The same clusters, numbered in the order in which they first appear."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]  # (n,)
