"""How many clusters: K, which the paper takes as given, from the widest gap in the spectrum of the similarity graph.

`similarity_graph` is the graph that both K and the clusters are computed from.
"""

from dataclasses import dataclass

import numpy as np

from manymetrics.errors import DataError, RecipeError
from manymetrics.partition.eigenpairs import leading, one_thread
from manymetrics.partition.pairs import order_by_name
from manymetrics.values import Bools, Floats, Similarity

OUTLIER = 0.1  # a task is an outlier when its largest similarity is below this share of the largest of all
ROUNDING = 1e-6  # a similarity this small counts as 0
DAMPING = 0.1  # added to every task's degree, as a share of the mean degree
ALL_EIGENPAIRS = 1200  # above so many tasks only the first eigenpairs are computed
DEFAULT_MOST = 128  # and without a limit, no more than so many clusters are considered


@dataclass(frozen=True, eq=False)
class SimilarityGraph:
    """The tasks in the order of their names, joined by how similar they are, and the spectrum of that graph.

    Outliers are tasks that no other task is similar to. They are left out of the spectrum, where each would count as a
    cluster of its own.
    """

    weights: Floats  # (n, n): X clipped to [0, 1]
    outlier: Bools  # (n,)
    values: Floats  # (q,): eigenvalues of the normalised affinity of the p others, largest first; all p or the first
    vectors: Floats  # (p, q): their eigenvectors, in columns

    def supported(self, most: int | None = None) -> int:
        """How many clusters the graph without its outliers shows: the widest gap between eigenvalues; 0 if empty.

        At most half as many as there are tasks in it, so that clusters have two tasks on average, and fewer than
        there are eigenvalues.
        """
        if not len(self.values):
            return 0
        limit = max(1, min(len(self.vectors) // 2, len(self.values) - 1))
        limit = limit if most is None else min(limit, most)
        gaps = self.values[:limit] - self.values[1 : limit + 1]  # (limit,)
        return int(np.argmax(gaps)) + 1


def similarity_graph(similarity: Similarity, most: int | None = None) -> SimilarityGraph:
    """Turn *X* into a graph: clip it to [0, 1], set outliers aside, normalise by damped degrees.

    A task's similarity to itself is replaced by its largest similarity to another; otherwise a weakly attached task
    would look like a cluster of its own. Degrees are damped by a share of their mean, which keeps the few spurious
    similarities of a badly measured task from weighing as much as those of a whole cluster.

    Above `ALL_EIGENPAIRS` tasks only the first eigenpairs are computed: enough for `most` clusters, or without `most`
    for `DEFAULT_MOST`.
    """
    order = order_by_name(similarity.names)
    weights = similarity.low_rank[np.ix_(order, order)]  # (n, n), a copy: changed in place from here on
    np.clip(weights, 0.0, 1.0, out=weights)
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
    with one_thread():
        values, vectors = _first_eigenpairs(affinity, DEFAULT_MOST if most is None else most)
    return SimilarityGraph(weights, outlier, values, vectors)


def _first_eigenpairs(affinity: Floats, clusters: int) -> tuple[Floats, Floats]:
    """Eigenvalues, largest first, and vectors: all of them, or of a large matrix those that `clusters` clusters need.

    One eigenvalue more than clusters, to see the gap after the last. Those of a large matrix are selected by distance
    from 0, so a negative eigenvalue may take the place of a small positive one; neither stands for a cluster.
    """
    size = len(affinity)
    if size <= ALL_EIGENPAIRS or clusters >= size // 4:
        values, vectors = np.linalg.eigh(affinity)
    else:
        single = affinity.astype(np.float32)  # (p, p)
        values, vectors = leading(
            lambda block: (single if block.dtype == np.float32 else affinity) @ block, size, count=clusters + 1
        )
    order = np.argsort(values, kind="stable")[::-1]
    return values[order], vectors[:, order]


def choose_clusters(similarity: Similarity, *, most: int | None = None) -> int:
    """How many clusters the similarity shows, by the widest gap in the spectrum of its graph.

    Outliers, tasks that no other is similar to, add one to the count however many they are; if all tasks are outliers,
    nothing distinguishes them and the answer is 1. `most` limits the answer; without it, no more than 128 clusters are
    considered among more than 1,200 tasks.
    """
    if not similarity.names:
        raise DataError("Similarity names no tasks, so there are no clusters to choose. Give at least one task.")
    if most is not None and most < 1:
        raise RecipeError(f"choose_clusters was given most={most}. Use 1 or more, or None for no limit.")
    graph = similarity_graph(similarity, most)
    count = graph.supported(most) + int(graph.outlier.any())
    return count if most is None else min(count, most)
