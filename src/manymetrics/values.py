"""The nouns that are handed from room to room, each checking itself once, when it is made.

    Examples, Task, TaskBank    T_i             a labelled task and a collection of them
    TransferMatrix              S               how well the representation of task i serves task j
    ObservedPairs               Y on Omega      the pairs of tasks whose likeness can be believed
    Similarity                  X, E            the completed likeness of all pairs, and the errors taken out
    Clusters                    C_1 .. C_K      which tasks share a metric
    Mix                         alpha           how much each metric counts for one new task
    Unit, Work                                  a piece of a long computation, and who does it

All are frozen; arrays inside them are read-only copies.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from manymetrics.errors import DataError, NotEnoughExamples

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]
Bools = NDArray[np.bool_]

META_TRAIN = "meta-train"
TARGET = "target"
ROLES = (META_TRAIN, TARGET)


@dataclass(frozen=True)
class Examples:
    """Texts and their labels, in step."""

    texts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.labels):
            raise DataError(
                f"Found {len(self.texts)} texts and {len(self.labels)} labels. Give one label for each text."
            )

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Sequence[int] | Ints) -> "Examples":
        """The examples at the given places, in that order."""
        return Examples(tuple(self.texts[row] for row in rows), tuple(self.labels[row] for row in rows))


@dataclass(frozen=True)
class Task:
    """One classification task: *T_i*, with its train, valid and test examples (the last two may be empty)."""

    name: str
    train: Examples
    valid: Examples = Examples()
    test: Examples = Examples()

    def __post_init__(self) -> None:
        if not self.name:
            raise DataError("Found a task without a name. Give every task a name of its own.")
        if len(self.labels) < 2:
            found = f"only the label {self.labels[0]!r}" if self.labels else "no examples"
            raise NotEnoughExamples(
                f"Task {self.name!r} has {found} in train. A task needs at least two labels to choose between."
            )
        for split, examples in (("valid", self.valid), ("test", self.test)):
            if unseen := sorted(set(examples.labels) - set(self.labels)):
                raise DataError(
                    f"Task {self.name!r} has the label {unseen[0]!r} in {split} but not in train. "
                    f"Move an example of it to train, or take it out of {split}."
                )

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The labels of the task, sorted."""
        return tuple(sorted(set(self.train.labels)))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the task's content; equal content, equal fingerprint."""
        digest = hashlib.sha256(self.name.encode())
        for examples in (self.train, self.valid, self.test):
            digest.update(b"\x00split")
            for text, label in zip(examples.texts, examples.labels, strict=True):
                for part in (text.encode("utf-8", "surrogatepass"), label.encode("utf-8", "surrogatepass")):
                    digest.update(len(part).to_bytes(8, "big") + part)
        return digest.hexdigest()


@dataclass(frozen=True)
class LeftOut:
    """A task of a folder that could not be used, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class TaskBank:
    """Tasks with names of their own, and what was left out when they were read.

    `roles` says of some tasks whether they are there to learn from (`meta-train`) or to be tried on (`target`);
    a task without a role is there to learn from.
    """

    tasks: tuple[Task, ...]
    roles: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for name in self.names:
            if name in seen:
                raise DataError(f"Two tasks are named {name!r}. Give every task a name of its own.")
            seen.add(name)
        for name, role in self.roles.items():
            if role not in ROLES:
                raise DataError(f"Task {name!r} has the role {role!r}. Use one of {', '.join(ROLES)}.")
        object.__setattr__(self, "roles", MappingProxyType(dict(self.roles)))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the tasks, in order."""
        return tuple(task.name for task in self.tasks)

    def __reduce__(self) -> tuple[Any, ...]:
        return TaskBank, (self.tasks, dict(self.roles), self.left_out)

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __getitem__(self, name: str) -> Task:
        for task in self.tasks:
            if task.name == name:
                return task
        raise DataError(f"There is no task {name!r} in this bank of {len(self)} tasks. See bank.names.")

    def role(self, name: str) -> str:
        """What the task is for: `meta-train` or `target`."""
        return self.roles.get(name, META_TRAIN)

    def only(self, names: Sequence[str]) -> "TaskBank":
        """The bank reduced to the named tasks, in the order given."""
        return TaskBank(tuple(self[name] for name in names), {n: r for n, r in self.roles.items() if n in names})

    def split_off(self, *wanted: str) -> tuple["TaskBank", "TaskBank"]:
        """Part the bank in two: the tasks to learn from and the tasks to try on.

        Each argument is a task's name or a prefix of names that ends at a dot, a dash or an underscore
        (`books` takes `books.t2` but not `bookshop`). Without arguments the roles decide.
        """
        if not wanted:
            new = [name for name in self.names if self.role(name) == TARGET]
            if not new:
                raise DataError(
                    "No task of this bank has the role 'target'. Name the tasks to split off, or add a manifest.json."
                )
        else:
            new = []
            for prefix in wanted:
                found = [name for name in self.names if name == prefix or _starts_with_part(name, prefix)]
                if not found:
                    raise DataError(f"No task is named {prefix!r} or begins with it. See bank.names.")
                new += [name for name in found if name not in new]
        past = [name for name in self.names if name not in new]
        return self.only(past), self.only(new)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of every task's content, whatever the order of the tasks."""
        return hashlib.sha256("".join(sorted(task.fingerprint for task in self.tasks)).encode()).hexdigest()


def _starts_with_part(name: str, prefix: str) -> bool:
    return name.startswith(prefix) and len(name) > len(prefix) and name[len(prefix)] in ".-_"


@dataclass(frozen=True, eq=False)
class TransferMatrix:
    """*S*: `scores[i, j]` is how well the encoder of task i serves task j; NaN where it was not measured."""

    names: tuple[str, ...]
    scores: Floats  # (n, n): from task i, to task j
    score: str = "accuracy"

    def __post_init__(self) -> None:
        _keep(self, "scores", _square(self, "scores", self.names, self.scores, np.float64))
        if np.isinf(self.scores).any():
            raise DataError("TransferMatrix.scores holds infinite values. Mark what was not measured with NaN.")


@dataclass(frozen=True, eq=False)
class ObservedPairs:
    """*Y* on *Omega*: `alike[i, j]` says that tasks i and j belong together, where `known[i, j]`."""

    names: tuple[str, ...]
    alike: Bools  # (n, n), symmetric; False where not known
    known: Bools  # (n, n), symmetric, diagonal True

    def __post_init__(self) -> None:
        alike = _square(self, "alike", self.names, self.alike, np.bool_)
        known = _square(self, "known", self.names, self.known, np.bool_)
        if (alike != alike.T).any() or (known != known.T).any():
            raise DataError("ObservedPairs must be symmetric: likeness has no direction.")
        if (alike & ~known).any():
            raise DataError("ObservedPairs.alike is True where known is False. A pair not known is not alike either.")
        if not (alike.diagonal().all() and known.diagonal().all()):
            raise DataError("ObservedPairs must know every task as like itself: set both diagonals to True.")
        _keep(self, "alike", alike)
        _keep(self, "known", known)

    @property
    def share(self) -> float:
        """The share of pairs of different tasks that are known, *rho*; 1 for a single task."""
        n = len(self.names)
        return 1.0 if n < 2 else float((self.known.sum() - n) / (n * (n - 1)))


@dataclass(frozen=True, eq=False)
class Similarity:
    """*X* and *E*: the completed likeness of every pair, and the observed errors taken out of it."""

    names: tuple[str, ...]
    low_rank: Floats  # (n, n), symmetric: X
    errors: Floats  # (n, n), symmetric, zero where not observed: E
    sparsity: float  # lambda
    steps: int
    gap: float  # relative duality gap at the last step

    def __post_init__(self) -> None:
        for side in ("low_rank", "errors"):
            matrix = _square(self, side, self.names, getattr(self, side), np.float64)
            if not math.isfinite(matrix.max(initial=0.0) - matrix.min(initial=0.0)):
                raise DataError(f"Similarity.{side} holds values that are not finite.")
            if not _symmetric(matrix):
                raise DataError(f"Similarity.{side} must be symmetric: likeness has no direction.")
            _keep(self, side, matrix)


@dataclass(frozen=True, eq=False)
class Clusters:
    """*C_1 .. C_K*: `labels[i]` is the cluster of task i; iterating gives the groups of names."""

    names: tuple[str, ...]
    labels: Ints  # (n,), 0 .. K-1, numbered by their first task

    def __post_init__(self) -> None:
        labels = np.array(self.labels, dtype=np.int64)
        if labels.shape != (len(self.names),):
            raise DataError(f"Clusters.labels has shape {labels.shape}, but {len(self.names)} tasks are named.")
        if len(labels) and set(labels.tolist()) != set(range(labels.max() + 1)):
            raise DataError("Clusters.labels must use every number from 0 to K-1. Number the clusters without gaps.")
        _keep(self, "labels", labels)

    def __len__(self) -> int:
        return int(self.labels.max()) + 1 if len(self.labels) else 0

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        for cluster in range(len(self)):
            yield tuple(name for name, label in zip(self.names, self.labels, strict=True) if label == cluster)


@dataclass(frozen=True, eq=False)
class Mix:
    """*alpha*: how much each metric counts for one task, and how the fit ended."""

    weights: Floats  # (metrics,)
    steps: int
    gap: float

    def __post_init__(self) -> None:
        weights = np.array(self.weights, dtype=np.float64)
        if weights.ndim != 1 or not len(weights) or not np.isfinite(weights).all() or math.isnan(self.gap):
            raise DataError(f"Mix.weights must be a list of finite numbers, one for each metric; found {weights!r}.")
        _keep(self, "weights", weights)


@dataclass(frozen=True)
class Unit:
    """A piece of work whose result depends on nothing but its `spec` and its `inputs`.

    The result of a unit with `parts` is a JSON object with a value for each. The value of a part depends on the unit
    and on what the part's hash stands for, never on the other parts, so parts can be kept and done again one by one.
    """

    name: str
    spec: Mapping[str, Any]  # numbers, texts and hashes that can be written as JSON
    inputs: tuple[bytes, ...] = ()  # results of earlier units
    parts: Mapping[str, str] = field(default_factory=dict)  # name -> hash

    def rng(self, seed: int) -> np.random.Generator:
        """Randomness of the unit's own: made from what the unit is, not from when or where it runs."""
        said = json.dumps([seed, self.name, self.spec], sort_keys=True, ensure_ascii=True)
        return np.random.default_rng(list(hashlib.sha256(said.encode()).digest()))


class Work(Protocol):
    """Where units are worked on: a function from units to their results, by name."""

    def __call__(self, stage: str, do: Callable[[Unit, Any], bytes], units: Sequence[Unit]) -> dict[str, bytes]:
        """Do every unit. Rooms go on without a unit that has no result."""


def _square(value: object, side: str, names: Sequence[str], matrix: NDArray[Any], dtype: Any) -> NDArray[Any]:
    matrix = np.array(matrix, dtype=dtype)
    n = len(names)
    if matrix.shape != (n, n):
        ends = f"({names[0]!r} … {names[-1]!r})" if n else "(none)"
        raise DataError(
            f"{type(value).__name__}.{side} has shape {matrix.shape}, but {n} tasks are named {ends}, "
            f"so ({n}, {n}) was expected. Build the matrix and the names from the same list of tasks."
        )
    return matrix


def _symmetric(matrix: Floats, strip: int = 512) -> bool:
    """Whether a matrix equals its transpose up to rounding; in strips, as matrices here may fill much of the memory."""
    return all(
        np.allclose(matrix[start : start + strip], matrix[:, start : start + strip].T, atol=1e-8)
        for start in range(0, len(matrix), strip)
    )


def _keep(value: object, name: str, array: NDArray[Any]) -> None:
    array.flags.writeable = False
    object.__setattr__(value, name, array)
