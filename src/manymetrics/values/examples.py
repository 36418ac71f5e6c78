"""Labelled texts, what their labels are called, and few-shot problems made of them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manymetrics.errors import DataError
from manymetrics.values.matrices import Ints

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
