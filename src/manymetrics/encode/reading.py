"""TaskBank -> tokens: a bank read once, to be used by every later room.

Test examples stay behind: what is read here is all that training and selection ever see.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from manymetrics.encode.tokens import Tokens
from manymetrics.encode.vectors import WordVectors
from manymetrics.values import Examples, Ints, Task, TaskBank


@dataclass(frozen=True, eq=False)
class Labelled:
    """Texts cut into tokens, with the numbers of their labels."""

    tokens: Tokens
    labels: Ints  # (texts,)

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Sequence[int] | Ints) -> "Labelled":
        """The examples at the given places."""
        return Labelled(self.tokens.take(rows), self.labels[np.asarray(rows, dtype=np.int64)])


def part(examples: Labelled, share: float, rng: np.random.Generator) -> tuple[Labelled, Labelled]:
    """Hold out a share of the examples of every label; a label always keeps one that is not held out."""
    held: list[int] = []
    for label in np.unique(examples.labels):
        rows = rng.permutation(np.flatnonzero(examples.labels == label))
        held += rows[: min(round(share * len(rows)), len(rows) - 1)].tolist()
    kept = np.setdiff1d(np.arange(len(examples)), held)
    return examples.take(kept), examples.take(np.sort(np.array(held, dtype=np.int64)))


@dataclass(frozen=True, eq=False)
class ReadTask:
    """A task's train and valid examples, cut into tokens."""

    name: str
    labels: tuple[str, ...]
    train: Labelled
    valid: Labelled
    fingerprint: str


@dataclass(frozen=True, eq=False)
class ReadBank:
    """A bank's tasks cut into tokens, and the vectors whose rows the tokens are."""

    vectors: WordVectors
    tasks: tuple[ReadTask, ...]
    fingerprint: str  # of the bank it was read from

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the tasks, in order."""
        return tuple(task.name for task in self.tasks)

    def __iter__(self) -> Iterator[ReadTask]:
        return iter(self.tasks)

    def __getitem__(self, name: str) -> ReadTask:
        return self.tasks[self._places[name]]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}


def read_examples(examples: Examples, labels: Sequence[str], vectors: WordVectors) -> Labelled:
    """Examples cut into tokens, their labels as places in `labels`."""
    numbers = {label: number for number, label in enumerate(labels)}
    return Labelled(
        vectors.read(examples.texts), np.array([numbers[label] for label in examples.labels], dtype=np.int64)
    )


def read_bank(bank: TaskBank, vectors: WordVectors) -> ReadBank:
    """Cut the train and valid texts of every task into tokens."""
    return ReadBank(
        vectors,
        tuple(
            ReadTask(
                task.name,
                task.labels,
                read_examples(task.train, task.labels, vectors),
                read_examples(task.valid, task.labels, vectors),
                Task(task.name, task.train, task.valid).fingerprint,  # test examples decide nothing, not even a seed
            )
            for task in bank
        ),
        bank.fingerprint,
    )
