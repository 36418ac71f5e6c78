"""Texts and labels as users give them -> checked examples in a fixed order.

Sums of floating-point numbers depend on their order. Examples are sorted by label and text, so that the order in which
they are given changes no bit.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from manymetrics.encode.encoder import EmbeddedTexts
from manymetrics.errors import DataError, InputError, NotEnoughExamples
from manymetrics.values import Ints, as_texts, as_tuple, label_words

MAX_LABELS = 1000
MAX_LABEL_LENGTH = 200  # characters of a label in a fixed-width array


@dataclass(frozen=True, eq=False)
class SupportSet:
    """The labelled examples of a task, sorted, with labels of any type and descriptions of some."""

    texts: tuple[str, ...]
    numbers: Ints  # (examples,): the label of each as its index in `classes`
    classes: Any  # (classes,): the labels as they were given, sorted
    class_names: tuple[str, ...]  # the same as strings
    descriptions: Mapping[Any, str]  # of some labels
    names: tuple[str, ...]  # of the labels in words, or their descriptions
    embedded: EmbeddedTexts  # the texts
    embedded_names: EmbeddedTexts

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def labels(self) -> tuple[Any, ...]:
        """The label of each example."""
        return tuple(self.classes[self.numbers].tolist())

    @property
    def pairs(self) -> tuple[tuple[str, Any], ...]:
        """The examples: (text, label)."""
        return tuple(zip(self.texts, self.labels, strict=True))

    @property
    def empty_labels(self) -> list[Any]:
        """The labels without an example."""
        return self.classes[np.bincount(self.numbers, minlength=len(self.classes)) == 0].tolist()  # type: ignore[no-any-return]

    def take(self, rows: Sequence[int] | Ints) -> "SupportSet":
        """Some of the examples, with the labels of all."""
        embedded, numbers = self.embedded.take(rows), self.numbers[np.asarray(rows, dtype=np.int64)]
        return replace(self, texts=embedded.texts, numbers=numbers, embedded=embedded)


def support_set(X: Iterable[str], y: Iterable[Any], descriptions: Mapping[Any, str] | None = None) -> SupportSet:
    """Check and sort texts and labels; a label needs no example if it has a description, which may be blank."""
    texts, labels = as_examples(X, y)
    descriptions = descriptions or {}
    if not isinstance(descriptions, Mapping):
        raise DataError(f"Found descriptions of type {type(descriptions).__name__}. Give a dict: label -> text.")
    pairs = zip(as_labels(descriptions), as_texts(descriptions.values()), strict=True)
    described = {label: text.strip() or label_words(str(label)) for label, text in pairs}
    classes = _classes_of(labels, described)
    index = {label: number for number, label in enumerate(classes)}
    order = sorted(range(len(texts)), key=lambda row: (index[labels[row]], texts[row]))
    numbers, array = np.array([index[labels[row]] for row in order], dtype=np.int64), _as_array(classes)
    names = tuple(described.get(label, label_words(str(label))) for label in array.tolist())
    embedded, class_names = EmbeddedTexts(texts[row] for row in order), tuple(map(str, classes))
    return SupportSet(embedded.texts, numbers, array, class_names, described, names, embedded, EmbeddedTexts(names))


def as_examples(X: Iterable[str], y: Iterable[Any]) -> tuple[tuple[str, ...], list[Any]]:
    """Texts and labels, as many of the one as of the other."""
    texts, labels = as_texts(X), as_labels(y)
    if len(texts) != len(labels):
        raise DataError(f"Found {len(texts)} texts and {len(labels)} labels. Give one label for each text.")
    return texts, labels


def as_labels(labels: Iterable[Any]) -> list[Any]:
    """A list of labels, each a string or a number."""
    if isinstance(labels, str):
        raise DataError("Found one label where a list of labels was expected. Give one label for each text.")
    listed = [label.item() if isinstance(label, np.generic) else label for label in as_tuple(labels, "labels")]
    for row, label in enumerate(listed):
        if not isinstance(label, str | int | float) or label != label:  # noqa: PLR0124 - only NaN differs from itself
            raise DataError(
                f"Found the label {label!r} in row {row}. Every example needs a label, and labels are strings or "
                "numbers; leave the row out."
            )
    return listed


def _classes_of(labels: list[Any], described: Iterable[Any]) -> list[Any]:
    """The distinct labels of the examples and of the descriptions, sorted."""
    together = [*labels, *described]
    if len({isinstance(label, str) for label in together}) > 1:
        raise DataError("Some labels are strings and some are not. Use only strings or only numbers.")
    if len({isinstance(label, bool) for label in together}) > 1:
        raise DataError("Some labels are True or False and some are not, and True equals 1. Use one sort for all.")
    classes = sorted(set(together))
    if len(classes) < 2:
        count = f"{len(labels)} example{'s' * (len(labels) != 1)}"
        examples = f"{count} of one label, {together[0]!r}" if together else "no examples"
        raise NotEnoughExamples(f"Found {examples}. A classifier needs examples of at least two labels.")
    if len(classes) > MAX_LABELS:
        raise InputError(
            f"Found {len(classes)} labels; a classifier has at most {MAX_LABELS}. Are the label and the text columns "
            "swapped?"
        )
    return classes


def _as_array(classes: list[Any]) -> Any:
    """Labels as an array of a numpy dtype where they stay distinct and short, else of Python objects."""
    with contextlib.suppress(OverflowError):
        array = np.array(classes)
        short = array.dtype.kind != "U" or array.dtype.itemsize <= MAX_LABEL_LENGTH * 4
        if short and array.dtype.kind != "O" and array.tolist() == classes and len(np.unique(array)) == len(classes):
            return array
    array = np.empty(len(classes), dtype=object)
    array[:] = classes
    return array
