"""Types of arrays; pairs of tasks and their clusters: *S*, *Y* on *Omega*, *X* and *E*, *C*."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manymetrics.errors import DataError

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]
Bools = NDArray[np.bool_]

STRIP = 512  # rows that are compared at once: matrices may fill much of the memory


@dataclass(frozen=True, eq=False)
class TransferMatrix:
    """*S*: `scores[i, j]` is how well the encoder of task i serves task j; NaN where it was not measured."""

    names: tuple[str, ...]
    scores: Floats  # (n, n): from task i, to task j
    score: str = "accuracy"

    def __post_init__(self) -> None:
        if np.isinf(_keep_square(self, "scores", np.float64)).any():
            raise DataError("TransferMatrix.scores holds infinite values. Mark what was not measured with NaN.")


@dataclass(frozen=True, eq=False)
class ObservedPairs:
    """*Y* on *Omega*: `similar[i, j]` says whether tasks i and j are similar, where `observed[i, j]`."""

    names: tuple[str, ...]
    similar: Bools  # (n, n), symmetric; False where not observed
    observed: Bools  # (n, n), symmetric, diagonal True

    def __post_init__(self) -> None:
        similar, observed = (_keep_square(self, side, np.bool_) for side in ("similar", "observed"))
        if any((side != side.T).any() or not side.diagonal().all() for side in (similar, observed)):
            raise DataError("ObservedPairs must be symmetric, and must have each task similar to itself.")
        if (similar & ~observed).any():
            raise DataError("ObservedPairs.similar is True where observed is False. Only an observed pair can be so.")

    @property
    def share(self) -> float:
        """The share of pairs of different tasks that are observed, *rho*; 1 for a single task."""
        n = len(self.names)
        return 1.0 if n < 2 else float((self.observed.sum() - n) / (n * (n - 1)))


@dataclass(frozen=True, eq=False)
class Similarity:
    """*X* and *E*: the completed similarity of every pair, and the errors among the observed pairs."""

    names: tuple[str, ...]
    low_rank: Floats  # (n, n), symmetric: X
    errors: Floats  # (n, n), symmetric, zero where not observed: E
    sparsity: float  # lambda
    steps: int
    gap: float  # relative duality gap at the last step

    def __post_init__(self) -> None:
        for side in ("low_rank", "errors"):
            matrix = _keep_square(self, side, np.float64)
            if not math.isfinite(matrix.max(initial=0.0) - matrix.min(initial=0.0)):
                raise DataError(f"Similarity.{side} holds values that are not finite.")
            strips = [slice(start, start + STRIP) for start in range(0, len(matrix), STRIP)]
            if not all(np.allclose(matrix[strip], matrix[:, strip].T, atol=1e-8) for strip in strips):
                raise DataError(f"Similarity.{side} must be symmetric: similarity has no direction.")


@dataclass(frozen=True, eq=False)
class Clusters:
    """*C_1 .. C_K*: `labels[i]` is the cluster of task i; iterating gives the groups of names."""

    names: tuple[str, ...]
    labels: Ints  # (n,), 0 .. K-1, numbered by their first task

    def __post_init__(self) -> None:
        labels = _keep(self, "labels", np.int64)
        if labels.shape != (len(self.names),):
            raise DataError(f"Clusters.labels has shape {labels.shape}, but {len(self.names)} tasks are named.")
        if not np.array_equal(np.unique(labels), np.arange(len(np.unique(labels)))):
            raise DataError("Clusters.labels must use every number from 0 to K-1. Number the clusters without gaps.")

    def __len__(self) -> int:
        return int(self.labels.max()) + 1 if len(self.labels) else 0

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        for cluster in range(len(self)):
            yield tuple(name for name, label in zip(self.names, self.labels, strict=True) if label == cluster)


def _keep(value: object, side: str, dtype: Any) -> NDArray[Any]:
    """A read-only copy of an array, which takes the place of the array."""
    array = np.array(getattr(value, side), dtype=dtype)
    array.flags.writeable = False
    object.__setattr__(value, side, array)
    return array


def _keep_square(value: Any, side: str, dtype: Any) -> NDArray[Any]:
    """The same for a matrix of pairs of tasks."""
    given, n = np.asarray(getattr(value, side)), len(value.names)
    if dtype is np.bool_ and given.dtype.kind == "f" and not np.isfinite(given).all():
        raise DataError(f"{type(value).__name__}.{side} holds values that are not finite. Use True and False.")
    if given.shape != (n, n):
        ends = f"({value.names[0]!r} … {value.names[-1]!r})" if n else "(none)"
        raise DataError(
            f"{type(value).__name__}.{side} has shape {given.shape}, but {n} tasks are named {ends}, "
            f"so ({n}, {n}) was expected. Build the matrix and the names from the same list of tasks."
        )
    return _keep(value, side, dtype)
