"""Labelled texts, what their labels are called, few-shot problems made of them; *T_i*, a task, and a bank of them."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from types import MappingProxyType
from typing import Any

import numpy as np

from manymetrics.errors import DataError, NotEnoughExamples
from manymetrics.values.matrices import Ints

MAX_IN_TABLE = 20  # tasks of a bank that a notebook shows
META_TRAIN = "meta-train"
TARGET = "target"
ROLES = (META_TRAIN, TARGET)

_BORDERS = re.compile(
    r"(?<=[a-z])(?=[A-Z0-9])"  # orderStatus, step2
    r"|(?<=[0-9])(?=[A-Za-z])"  # 2nd
    r"|(?<=[A-Z])(?=[A-Z][a-z])"  # FAQOrders
)


def as_texts(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts from a list, an array or a column of a data frame; whatever else is given is refused."""
    if isinstance(texts, str):
        raise DataError("Found one text where a list of texts was expected. Put it in a list: [text].")
    listed = as_tuple(texts, "texts")
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise DataError(
                f"Found {text!r} of type {type(text).__name__} in row {row} where a text was expected. "
                "Replace missing texts by an empty one, or leave the row out."
            )
    return listed


def as_tuple(column: Iterable[Any], what: str) -> tuple[Any, ...]:
    """The values of a list, an array or a column of a data frame."""
    if not hasattr(column, "__iter__"):
        raise DataError(f"Found {column!r} where a list of {what} was expected. Give a list.")
    if hasattr(column, "columns"):
        raise DataError(f"Found a table where a list of {what} was expected. Give one column of it.")
    return tuple(column)


def label_words(label: str) -> str:
    """The words of a label's name, in small letters; the name itself where it holds no letter or digit.

    `faq/ask_openingHours2` gives "faq ask opening hours 2".
    """
    return " ".join(re.sub(r"[\W_]+", " ", _BORDERS.sub(" ", label)).split()).lower() or label


def fold_text(text: str) -> str:
    """A text in lower case, with single spaces."""
    return " ".join(text.lower().split())


@dataclass(frozen=True, repr=False)
class Examples:
    """Texts and their labels."""

    texts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()  # what labels there are; by default those that occur, sorted
    numbers: Ints = field(init=False, compare=False)  # (texts,): the label of each text as its index in `classes`

    def __post_init__(self) -> None:
        texts, labels = as_texts(self.texts), tuple(self.labels)
        if len(texts) != len(labels):
            raise DataError(f"Found {len(texts)} texts and {len(labels)} labels. Give one label for each text.")
        classes = tuple(self.classes) or tuple(sorted(set(labels)))
        if unknown := set(labels).difference(classes):
            raise DataError(f"Found the label {min(unknown)!r}, which is not among the classes {classes}.")
        index = {label: number for number, label in enumerate(classes)}
        numbers = np.array([index[label] for label in labels], dtype=np.int64)
        for name, value in {"texts": texts, "labels": labels, "classes": classes, "numbers": numbers}.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        return f"<Examples: {len(self):,} texts of {len(set(self.labels))} labels>"

    def take(self, rows: Sequence[int] | Ints) -> "Examples":
        """The examples with these indices, in that order; the classes stay."""
        indices = np.asarray(rows, dtype=np.int64).tolist()
        texts, labels = tuple(self.texts[row] for row in indices), tuple(self.labels[row] for row in indices)
        return Examples(texts, labels, self.classes)

    def in_order(self) -> "Examples":
        """The same examples, sorted by label and text."""
        pairs = list(zip(self.labels, self.texts, strict=True))
        return self.take(sorted(range(len(pairs)), key=pairs.__getitem__))

    @classmethod
    def join(cls, parts: Sequence["Examples"]) -> "Examples":
        """Several collections as one, in order; their classes, if all have the same, or all of them sorted."""
        distinct = {part.classes for part in parts}
        classes = distinct.pop() if len(distinct) == 1 else tuple(sorted(set().union(*distinct)))
        texts = tuple(text for part in parts for text in part.texts)
        return cls(texts, tuple(label for part in parts for label in part.labels), classes)


@dataclass(frozen=True, eq=False)
class Episode:
    """A few-shot problem: examples to learn from, and others to be answered; both have the same classes."""

    task: str
    support: Examples
    query: Examples
    names: tuple[str, ...] = ()  # of the classes, in words


NO_EXAMPLES = Examples()


@dataclass(frozen=True, repr=False)
class Task:
    """One classification task: *T_i*, with its train, valid and test examples (the last two may be empty).

    The labels of the train examples are the classes of all three.

    Tasks of one `source` (a product, a client, a corpus) are not independent of one another: when some tasks are held
    out, all tasks of their source are. Without a source a task is a source of its own.
    """

    name: str
    train: Examples
    valid: Examples = NO_EXAMPLES
    test: Examples = NO_EXAMPLES
    source: str = ""
    labels: tuple[str, ...] = field(init=False, compare=False)  # sorted: the classes of its examples
    label_names: tuple[str, ...] = field(init=False, compare=False)  # the name of each label in words

    def __post_init__(self) -> None:
        if not self.name:
            raise DataError("Found a task without a name. Give every task a name of its own.")
        object.__setattr__(self, "source", self.source or self.name)
        labels = tuple(sorted(set(self.train.labels)))
        if len(labels) < 2:
            given = f"only the label {labels[0]!r}" if labels else "no examples"
            raise NotEnoughExamples(
                f"Task {self.name!r} has {given} in train. A task needs at least two labels to choose between."
            )
        for split, examples in zip(("train", "valid", "test"), self.splits, strict=True):
            if unseen := sorted(set(examples.labels).difference(labels)):
                raise DataError(
                    f"Task {self.name!r} has the label {unseen[0]!r} in {split} but not in train. "
                    f"Move an example of it to train, or take it out of {split}."
                )
            checked = examples if examples.classes == labels else replace(examples, classes=labels)
            object.__setattr__(self, split, checked)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "label_names", tuple(map(label_words, labels)))

    def __repr__(self) -> str:
        sizes = f"{len(self.train):,} train, {len(self.valid):,} valid, {len(self.test):,} test"
        return f"<Task {self.name!r}: {len(self.labels)} labels, {sizes}>"

    @property
    def splits(self) -> tuple[Examples, Examples, Examples]:
        """The train, valid and test examples."""
        return self.train, self.valid, self.test

    @cached_property
    def content(self) -> str:
        """A hash of the train and valid examples, whatever their order and the name of the task."""
        ordered = (examples.in_order() for examples in (self.train, self.valid))
        return _digest("", [zip(examples.labels, examples.texts, strict=True) for examples in ordered])

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the name and of all examples in order; equal content, equal fingerprint."""
        return _digest(self.name, [zip(examples.texts, examples.labels, strict=True) for examples in self.splits])


def _digest(name: str, splits: Iterable[Iterable[tuple[str, str]]]) -> str:
    digest = hashlib.sha256(name.encode())
    for pairs in splits:
        digest.update(b"\x00split")
        for part in (value.encode("utf-8", "surrogatepass") for pair in pairs for value in pair):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


@dataclass(frozen=True)
class SkippedTask:
    """A task of a folder that could not be used, and why."""

    name: str
    reason: str


@dataclass(frozen=True, repr=False)
class TaskBank:
    """Tasks with names of their own, and what was left out when they were read.

    `roles` says of some tasks whether they are there to learn from (`meta-train`) or to be tried on (`target`);
    a task without a role is there to learn from.
    """

    tasks: tuple[Task, ...]
    roles: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[SkippedTask, ...] = ()
    names: tuple[str, ...] = field(init=False, compare=False)  # of the tasks, in order
    _by_name: dict[str, Task] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(task.name for task in self.tasks))
        object.__setattr__(self, "_by_name", {task.name: task for task in self.tasks})
        if repeated := [name for name, count in Counter(self.names).items() if count > 1]:
            raise DataError(f"Two tasks are named {repeated[0]!r}. Give every task a name of its own.")
        for name, role in self.roles.items():
            if role not in ROLES:
                raise DataError(f"Task {name!r} has the role {role!r}. Use one of {', '.join(ROLES)}.")
        object.__setattr__(self, "roles", MappingProxyType(dict(self.roles)))

    def __repr__(self) -> str:
        targets = sum(self.role(name) == TARGET for name in self.names)
        texts = sum(map(len, (examples for task in self.tasks for examples in task.splits)))
        return f"<TaskBank of {len(self)} tasks, {targets} of them targets, {texts:,} texts>"

    def _repr_html_(self) -> str:
        head = ["task", "role", "labels", "train", "valid", "test"]
        rows = [
            [task.name, self.role(task.name), len(task.labels), *map(len, task.splits)]
            for task in self.tasks[:MAX_IN_TABLE]
        ]
        return html_table(repr(self), head, rows, more=len(self) - MAX_IN_TABLE)

    def __reduce__(self) -> tuple[Any, ...]:
        return TaskBank, (self.tasks, dict(self.roles), self.left_out)

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __getitem__(self, name: str) -> Task:
        if name not in self._by_name:
            raise DataError(f"There is no task {name!r} in this bank of {len(self)} tasks. See bank.names.")
        return self._by_name[name]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of every task's content, whatever the order of the tasks."""
        return hashlib.sha256("".join(sorted(task.fingerprint for task in self.tasks)).encode()).hexdigest()

    @property
    def shared_labels(self) -> tuple[str, ...] | None:
        """The labels that all tasks have, if they all have the same."""
        label_sets = {task.labels for task in self.tasks}
        return label_sets.pop() if len(label_sets) == 1 else None

    def without_tests(self) -> "TaskBank":
        """The bank as learning may see it: test examples decide nothing, not even a seed."""
        return replace(self, tasks=tuple(replace(task, test=NO_EXAMPLES) for task in self.tasks))

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
        new = dict.fromkeys(name for name in self.names if not wanted and self.role(name) == TARGET)
        if not new and not wanted:
            raise DataError(
                "No task of this bank has the role 'target'. Name the tasks to split off, or add a manifest.json."
            )
        for prefix in wanted:
            starts = tuple(f"{prefix}{mark}" for mark in ".-_")
            matching = [name for name in self.names if name == prefix or name.startswith(starts)]
            if not matching:
                raise DataError(f"No task is named {prefix!r} or begins with it. See bank.names.")
            new |= dict.fromkeys(matching)
        return self.only([name for name in self.names if name not in new]), self.only(list(new))


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]], *, more: int = 0) -> str:
    """A title and a table for a notebook, every text escaped; with `more`, how many rows are not shown."""
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    rest = f"<p>and {more:,} more</p>" if more > 0 else ""
    return f"<p>{escape(title)}</p><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>{rest}"
