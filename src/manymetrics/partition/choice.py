"""How many clusters, and how sparse: the two numbers of section 3.1 that the paper takes as given.

    choose_clusters    K        where the spectrum of the likeness graph has its widest gap
    choose_sparsity    lambda   what best foretells observed pairs that were hidden

`likeness_graph` is the graph both K and the clusters are read from.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from manymetrics.errors import DataError, RecipeError
from manymetrics.partition.completion import default_sparsity, solve
from manymetrics.partition.eigenpairs import leading
from manymetrics.partition.pairs import order_by_name
from manymetrics.values import Bools, Floats, Ints, ObservedPairs, Similarity

STRANGER = 0.1  # a task is a stranger when its strongest likeness is below this share of the strongest of all
DAMPING = 0.1  # added to every task's degree, as a share of the mean degree
NOTHING = 1e-6  # a likeness this small is rounding
FACTORS = (0.5, 0.7, 1.0, 1.4, 2.0)  # candidates for lambda, times the default
ALL_EIGENPAIRS, MANY = 1200, 128  # above so many tasks, no more than so many clusters are looked for unasked
HIDDEN = 0.15
ROUNDS = 3
SEARCH_STEPS, SEARCH_TOLERANCE = 500, 1e-3  # a hidden pair needs X to one digit only


@dataclass(frozen=True, eq=False)
class LikenessGraph:
    """The tasks in the order of their names, joined by how alike they are, and the spectrum of that graph.

    Strangers are tasks that no other task is like. They stand outside the spectrum, where each would count as a
    cluster of its own.
    """

    likeness: Floats  # (n, n): X clipped to [0, 1]
    stranger: Bools  # (n,)
    values: Floats  # (q,): eigenvalues of the normalised affinity of the p others, largest first; all p or the first
    vectors: Floats  # (p, q): their eigenvectors, in columns

    def supported(self, most: int | None = None) -> int:
        """How many clusters the graph without its strangers shows: the widest gap between eigenvalues; 0 if empty.

        At most half as many as there are tasks in it, so that clusters have two tasks on average, and fewer than
        there are eigenvalues.
        """
        if not len(self.values):
            return 0
        limit = max(1, min(len(self.vectors) // 2, len(self.values) - 1))
        limit = limit if most is None else min(limit, most)
        gaps = self.values[:limit] - self.values[1 : limit + 1]  # (limit,)
        return int(np.argmax(gaps)) + 1


def likeness_graph(similarity: Similarity, most: int | None = None) -> LikenessGraph:
    """Turn *X* into a graph: clip it to [0, 1], set strangers aside, normalise by damped degrees.

    A task's likeness to itself is replaced by its strongest likeness to another; otherwise a task weakly attached
    would look like a cluster of its own. Degrees are damped by a share of their mean, which keeps the few stray
    likenesses of an ill-measured task from weighing as much as a whole cluster's.

    Above `ALL_EIGENPAIRS` tasks only the first eigenpairs are computed: enough to part the tasks into `most` clusters,
    or without `most` into `MANY`.
    """
    order = order_by_name(similarity.names)
    likeness = similarity.low_rank[np.ix_(order, order)]  # (n, n), a copy: changed in place from here on
    np.clip(likeness, 0.0, 1.0, out=likeness)
    likeness += likeness.T
    likeness /= 2.0
    itself = likeness.diagonal().copy()  # (n,)
    np.fill_diagonal(likeness, 0.0)
    strongest = likeness.max(axis=1, initial=0.0)  # (n,)
    stranger = strongest <= max(NOTHING, STRANGER * strongest.max(initial=0.0))  # (n,)
    affinity = likeness[np.ix_(~stranger, ~stranger)]  # (p, p)
    np.fill_diagonal(likeness, itself)
    np.fill_diagonal(affinity, strongest[~stranger])
    degrees = affinity.sum(axis=1)  # (p,)
    scale = 1.0 / np.sqrt(degrees + DAMPING * degrees.mean()) if len(degrees) else degrees  # (p,)
    affinity *= scale[:, None]
    affinity *= scale
    with threadpool_limits(limits=1, user_api="blas"):  # for the reasons given in `completion.solve`
        values, vectors = _first_eigenpairs(affinity, MANY if most is None else most)
    return LikenessGraph(likeness, stranger, values, vectors)


def _first_eigenpairs(affinity: Floats, clusters: int) -> tuple[Floats, Floats]:
    """Eigenvalues, largest first, and vectors: all of them, or of a large matrix those that `clusters` clusters need.

    One eigenvalue more than clusters, to see the gap behind the last. What is cut off from a large matrix is found by
    distance from 0, so a negative eigenvalue may take the place of a small positive one; neither tells of a cluster.
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

    Strangers, tasks that no other is like, add one to the count however many they are; if all tasks are strangers,
    nothing tells them apart and the answer is 1. `most` limits the answer; without it, no more than 128 clusters are
    looked for among more than a thousand tasks.
    """
    if not similarity.names:
        raise DataError("Similarity names no tasks, so there are no clusters to choose. Give at least one task.")
    if most is not None and most < 1:
        raise RecipeError(f"choose_clusters was given most={most}. Use 1 or more, or None for no limit.")
    graph = likeness_graph(similarity, most)
    count = graph.supported(most) + int(graph.stranger.any())
    return count if most is None else min(count, most)


def choose_sparsity(
    pairs: ObservedPairs,
    *,
    rng: np.random.Generator,
    candidates: Sequence[float] | None = None,
    hidden: float = HIDDEN,
    rounds: int = ROUNDS,
) -> float:
    """The lambda whose completion best foretells observed pairs that were hidden from it.

    In each round a share `hidden` of the known pairs, of the alike and of the apart ones each, is hidden and then
    compared with whether *X* is above 0.5 there. Fewer known pairs need a larger lambda, in proportion (see
    `default_sparsity`), so a candidate is tried as *lambda/(1 - hidden)*. The score is the mean of the shares foretold
    among the alike and among the apart: most pairs are apart, and *X* = 0 would foretell all of those. Equal scores go
    to the larger lambda: too small a lambda loses whole clusters at once, too large a one only leaves some errors in,
    which spectral clustering bears. The default candidates are 0.5 to 2 times `default_sparsity(pairs)`.
    """
    choices = sorted(default_sparsity(pairs) * f for f in FACTORS) if candidates is None else sorted(candidates)
    if not choices or not all(math.isfinite(choice) and choice > 0 for choice in choices):
        raise RecipeError(f"choose_sparsity was given the candidates {choices}. Give one or more numbers above 0.")
    if not (0 < hidden < 1 and rounds >= 1):
        raise RecipeError(f"choose_sparsity was given hidden={hidden} and rounds={rounds}. Use 0.15 and 3, or near.")
    order = order_by_name(pairs.names)
    alike, known = pairs.alike[np.ix_(order, order)], pairs.known[np.ix_(order, order)]  # (n, n) each
    if not np.triu(known, 1).any():
        raise DataError(
            "ObservedPairs knows no pair of different tasks, so none can be hidden to choose sparsity by. "
            "Measure more pairs, or lower p1 and p2."
        )
    scores = np.zeros(len(choices))  # (candidates,)
    for _ in range(rounds):
        veil = _draw_hidden(alike, known, share=hidden, rng=rng)  # (n, n)
        scores += [_foretold(alike, known, veil, sparsity=choice / (1 - hidden)) for choice in choices]
    best = np.flatnonzero(scores >= scores.max() - 1e-12)
    return float(choices[best[-1]])


def _draw_hidden(alike: Bools, known: Bools, *, share: float, rng: np.random.Generator) -> Bools:
    """A symmetric choice of known pairs of different tasks, the same share of the alike and of the apart ones."""
    veil = np.zeros_like(known)  # (n, n)
    for kind in (alike, known & ~alike):
        rows, columns = np.nonzero(np.triu(kind, 1))
        if len(rows):
            drawn: Ints = rng.permutation(len(rows))[: math.ceil(share * len(rows))]
            veil[rows[drawn], columns[drawn]] = True
    return veil | veil.T


def _foretold(alike: Bools, known: Bools, veil: Bools, *, sparsity: float) -> float:
    solution = solve(
        alike & ~veil, known & ~veil, sparsity=sparsity, max_steps=SEARCH_STEPS, tolerance=SEARCH_TOLERANCE
    )
    right = (solution.low_rank > 0.5) == alike  # (n, n)
    shares = [right[veil & kind].mean() for kind in (alike, ~alike) if (veil & kind).any()]
    return float(np.mean(shares))
