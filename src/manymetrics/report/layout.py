"""Similarity -> positions of the tasks and of their names on a map.

Classical scaling of the distances 1 - X gives initial positions, and majorization (SMACOF) then reduces the stress.
Marks that would overlap are moved away from each other. Nothing is random: equal similarities give equal positions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from unicodedata import east_asian_width

import numpy as np
from scipy.linalg import eigh
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist, pdist, squareform
from threadpoolctl import threadpool_limits

from manymetrics.values import Floats, Ints, Similarity

SMACOF_STEPS = ((400, 300), (1500, 40))  # (tasks, steps): steps for up to so many tasks; none for more
GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
MAX_PUSHES = 400
FILLED = 0.9  # share of the box that is filled before marks are moved
ALLOWANCE = 1.02  # marks are moved slightly further than necessary

FEW_MARKS = 30  # marks up to which a label may be away from its mark
LABEL_SIZES = (12.0, 9.0)  # font sizes on a map of few marks and of many
MAX_LABEL = 22  # characters of a label
LETTER, WIDE_LETTER = 0.56, 1.0  # width of a character, in font sizes
GAP, STEP, MAX_DISTANCE = 3.0, 8.0, 240.0  # between a mark and its label, and steps of the search for free space
CLEARANCE = 6.0  # around a label that is away from its mark
SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (0.7, 0.7), (-0.7, 0.7), (0.7, -0.7), (-0.7, -0.7))  # right, left, below ...
Box = tuple[float, float, float, float]  # left, top, right, bottom


def task_positions(similarity: Similarity) -> Floats:
    """Positions of the tasks in a plane: (n, 2)."""
    dissimilarity = dissimilarities(similarity)
    n = len(dissimilarity)
    with threadpool_limits(1, user_api="blas"):
        positions = _classical_scaling(dissimilarity) + 1e-3 * _directions(np.arange(n))  # no two are equal
        for _ in range(next((steps for most, steps in SMACOF_STEPS if n <= most), 0)):
            positions = _smacof_step(positions, dissimilarity)
        return positions


def dissimilarities(similarity: Similarity) -> Floats:
    """1 - X, between 0 and 1: (n, n)."""
    values = 1 - np.clip(similarity.low_rank, 0, 1)
    np.fill_diagonal(values, 0)
    return values


def distance_correlation(positions: Floats, similarity: Similarity) -> float:
    """The correlation of distances in the plane with 1 - X over all pairs; 0 if either is constant."""
    distances, expected = pdist(positions), squareform(dissimilarities(similarity), checks=False)
    if len(distances) < 2 or distances.std() < 1e-12 or expected.std() < 1e-12:
        return 0.0
    return float(np.corrcoef(distances, expected)[0, 1])


def fit_to_square(positions: Floats, side: float, min_distance: float) -> Floats:
    """Scale positions to a square, and move them until no two are closer than `min_distance`, if there is room."""
    middle = (positions.max(axis=0) + positions.min(axis=0)) / 2
    spread = np.maximum(np.ptp(positions, axis=0), 1e-9)
    moved: Floats = (positions - middle) * (FILLED * np.min(side / spread)) + side / 2
    for _ in range(MAX_PUSHES):
        pairs = cKDTree(moved).query_pairs(min_distance, output_type="ndarray")  # (pairs, 2)
        if not len(pairs):
            break
        moved = np.clip(_push_apart(moved, pairs, min_distance), 0, side)
    return moved


def _classical_scaling(dissimilarity: Floats) -> Floats:
    """The two leading eigenvectors of the doubly centred squared distances: (n, 2)."""
    n = len(dissimilarity)
    if n < 3:
        return np.stack([np.arange(n, dtype=float), np.zeros(n)], axis=1)
    squared = dissimilarity**2
    means = squared.mean(axis=0)
    inner = -(squared - means - means[:, None] + means.mean()) / 2  # (n, n)
    values, vectors = eigh(inner, subset_by_index=(n - 2, n - 1))  # in ascending order
    largest = np.abs(np.round(vectors, 9)).argmax(axis=0)
    vectors *= np.where(vectors[largest, [0, 1]] < 0, -1, 1)  # the sign of a vector is arbitrary
    return vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0))  # type: ignore[no-any-return]


def _smacof_step(positions: Floats, dissimilarity: Floats) -> Floats:
    """The Guttman transform with equal weights."""
    distances = cdist(positions, positions)
    ratio = np.where(distances > 1e-12, dissimilarity / np.maximum(distances, 1e-12), 0)  # (n, n)
    return (ratio.sum(axis=1)[:, None] * positions - ratio @ positions) / len(positions)  # type: ignore[no-any-return]


def _directions(index: Ints) -> Floats:
    """Unit vectors in distinct directions: (count, 2)."""
    return np.stack([np.cos(GOLDEN_ANGLE * index), np.sin(GOLDEN_ANGLE * index)], axis=1)


def _push_apart(positions: Floats, pairs: Ints, min_distance: float) -> Floats:
    """Move both points of each pair by half of the missing distance."""
    first, second = pairs.T
    between = positions[first] - positions[second]  # (pairs, 2)
    length = np.sqrt((between**2).sum(axis=1, keepdims=True))
    direction = np.where(length > 1e-9, between / np.maximum(length, 1e-9), _directions(first + 1))
    move = direction * (min_distance * ALLOWANCE - length) / 2
    moved = positions.copy()
    np.add.at(moved, first, move)
    np.add.at(moved, second, -move)
    return moved


@dataclass(frozen=True)
class MapLabel:
    """The name of a task on the map."""

    text: str
    box: Box
    side: int  # of its mark: 1 right, -1 left, 0 above or below
    index: int  # of its mark
    detached: bool  # whether a line has to connect it with its mark

    @property
    def size(self) -> float:
        """The font size."""
        return self.box[3] - self.box[1]


def place_labels(names: Sequence[str], positions: Floats, radius: float, side: float) -> list[MapLabel]:
    """Place names next to their marks on a square map, so that none covers a mark, another name or the frame.

    A name without a free side is omitted; on a map of few marks it is placed further away instead. Positions are those
    of the marks, (marks, 2), each of the given radius.
    """
    few = len(names) <= FEW_MARKS
    size = LABEL_SIZES[0] if few else LABEL_SIZES[1]
    texts = [shorten(name, MAX_LABEL) for name in names]
    taken: list[Box] = [(x - radius, y - radius, x + radius, y + radius) for x, y in positions.tolist()]
    labels: dict[int, MapLabel] = {}
    for distance in np.arange(0, MAX_DISTANCE if few else STEP, STEP).tolist():
        clearance = CLEARANCE if distance else 0.0  # a detached label must not be read as that of another mark
        for index in (index for index in range(len(names)) if index not in labels):
            boxes = _boxes_around(positions[index], radius + GAP + distance, size * _width(texts[index]), size)
            free = next(((box, on) for box, on in boxes if _is_free(box, taken, clearance, side)), None)
            if free is not None:
                taken.append(free[0])
                labels[index] = MapLabel(texts[index], *free, index, detached=distance > 0)
    return list(labels.values())


def shorten(text: str, max_length: int) -> str:
    """A text of at most so many characters; an ellipsis marks what is missing."""
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def _width(text: str) -> float:
    return sum(WIDE_LETTER if east_asian_width(letter) in "WF" else LETTER for letter in text)


def _boxes_around(mark: Floats, distance: float, width: float, height: float) -> Iterator[tuple[Box, int]]:
    """A box on each side of a mark, at the given distance from its centre."""
    for right, down in SIDES:
        left = float(mark[0] + distance * right + width * (np.sign(right) - 1) / 2)
        top = float(mark[1] + distance * down + height * (np.sign(down) - 1) / 2)
        yield (left, top, left + width, top + height), int(np.sign(right))


def _is_free(box: Box, taken: Sequence[Box], clearance: float, side: float) -> bool:
    """Whether a box is inside the map and overlaps none of those taken."""
    if min(box) < 1 or max(box) > side - 1:
        return False
    boxes = np.array(taken) + np.array([-clearance, -clearance, clearance, clearance])  # (boxes, 4)
    outside = (boxes[:, 0] >= box[2]) | (boxes[:, 2] <= box[0]) | (boxes[:, 1] >= box[3]) | (boxes[:, 3] <= box[1])
    return bool(outside.all())
