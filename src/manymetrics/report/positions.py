"""X -> places of the tasks in a plane: near one another where they are similar.

Classical scaling of the distances 1 - X gives a start, and majorisation (SMACOF) brings the distances in the plane as
near to them as it can. Marks that would cover one another are pushed apart. No chance is involved: the same similarity
gives the same places.
"""

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.sparse.linalg import eigsh
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from manymetrics.partition.eigenpairs import one_thread
from manymetrics.values import Floats, Ints, Similarity

FEW_TASKS, STEPS = 400, 300  # steps of majorisation up to so many tasks
MANY_TASKS, FEWER_STEPS = 1500, 40  # and up to so many; above these there are none
ALL_EIGENPAIRS = 200  # tasks up to which every eigenpair is computed
GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
PUSHES = 400
FILLED = 0.9  # of the box at first: what is pushed needs room
ALLOWANCE = 1.02  # marks are pushed a little further than they must


def place_tasks(similarity: Similarity) -> Floats:
    """The places of the tasks, the widest direction first: (n, 2)."""
    far = distances(similarity)
    with one_thread():
        places = _classical_scaling(far) + 1e-3 * _spiral(len(far))
        steps = STEPS if len(far) <= FEW_TASKS else FEWER_STEPS if len(far) <= MANY_TASKS else 0
        for _ in range(steps):
            places = _majorise(places, far)
        return _turned(places)


def distances(similarity: Similarity) -> Floats:
    """1 - X, within 0 and 1: (n, n)."""
    far = 1 - np.clip((similarity.low_rank + similarity.low_rank.T) / 2, 0, 1)
    np.fill_diagonal(far, 0)
    return far


def agreement(places: Floats, similarity: Similarity) -> float:
    """The correlation of distances in the plane with 1 - X, over all pairs; 0 where either is the same for all."""
    pairs = np.triu_indices(len(places), 1)
    drawn, meant = cdist(places, places)[pairs], distances(similarity)[pairs]
    if len(drawn) < 2 or drawn.std() < 1e-12 or meant.std() < 1e-12:
        return 0.0
    return float(np.corrcoef(drawn, meant)[0, 1])


def fit_into(places: Floats, width: float, height: float, apart: float) -> Floats:
    """The places scaled to a box, and pushed until no two are nearer than `apart`, as far as there is room."""
    middle = (places.max(axis=0) + places.min(axis=0)) / 2
    spread = np.maximum(np.ptp(places, axis=0), 1e-9)
    box = np.array([width, height])
    found = (places - middle) * (FILLED * np.min(box / spread)) + box / 2
    for _ in range(PUSHES):
        pairs = cKDTree(found).query_pairs(apart, output_type="ndarray")  # (pairs, 2)
        if not len(pairs):
            break
        found = np.clip(_push(found, pairs, apart), 0, box)
    return found  # type: ignore[no-any-return]


def tree(places: Floats) -> Ints:
    """The pairs of a shortest tree that joins all places: (n - 1, 2)."""
    joined = minimum_spanning_tree(cdist(places, places) + 1e-9)
    return np.argwhere(joined.toarray() > 0)


def _classical_scaling(far: Floats) -> Floats:
    """The two leading directions of the doubly centred squared distances: (n, 2)."""
    if len(far) < 3:
        return np.stack([np.arange(len(far), dtype=float), np.zeros(len(far))], axis=1)
    squared = far**2
    means = squared.mean(axis=0)
    inner = -(squared - means - means[:, None] + means.mean()) / 2  # (n, n)
    if len(far) <= ALL_EIGENPAIRS:
        values, vectors = np.linalg.eigh(inner)
    else:
        values, vectors = eigsh(inner, k=2, which="LA", v0=1 + np.arange(len(far)) / len(far))
    leading = np.argsort(values)[::-1][:2]
    return _signed(vectors[:, leading] * np.sqrt(np.maximum(values[leading], 0)))


def _majorise(places: Floats, far: Floats) -> Floats:
    """One step towards the distances: the Guttman transform, every pair weighing the same."""
    drawn = cdist(places, places)
    ratio = np.where(drawn > 1e-12, far / np.maximum(drawn, 1e-12), 0)  # (n, n)
    return (ratio.sum(axis=1)[:, None] * places - ratio @ places) / len(places)  # type: ignore[no-any-return]


def _turned(places: Floats) -> Floats:
    centred = places - places.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    return _signed(centred @ vectors[:, ::-1])


def _signed(places: Floats) -> Floats:
    """The same, each direction turned so that what is farthest from the middle lies on its positive side."""
    farthest = np.abs(np.round(places, 9)).argmax(axis=0)
    signs = np.sign(places[farthest, np.arange(places.shape[1])])
    return places * np.where(signs == 0, 1, signs)


def _spiral(count: int) -> Floats:
    """Points that are all apart, to part what would stand on one spot: (count, 2)."""
    along = np.arange(count)
    radius = np.sqrt((along + 0.5) / max(count, 1))
    return np.stack([radius * np.cos(GOLDEN_ANGLE * along), radius * np.sin(GOLDEN_ANGLE * along)], axis=1)


def _push(places: Floats, pairs: Ints, apart: float) -> Floats:
    """Every pair that is too near moves apart, each by half of what is missing."""
    one, other = pairs.T
    between = places[one] - places[other]  # (pairs, 2)
    length = np.sqrt((between**2).sum(axis=1, keepdims=True))
    angle = GOLDEN_ANGLE * (one + 1.0)
    direction = np.where(length > 1e-9, between / np.maximum(length, 1e-9), np.stack([np.cos(angle), np.sin(angle)], 1))
    move = direction * (apart * ALLOWANCE - length) / 2
    moved = places.copy()
    np.add.at(moved, one, move)
    np.add.at(moved, other, -move)
    return moved
