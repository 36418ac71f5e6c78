"""Whatever a user hands in as texts and labels -> lists that can be relied on, in one order.

The order in which examples come must not matter, down to the last bit: sums of floating-point numbers depend on it. So
examples are put in the order of their labels and, within a label, of their texts, before anything is computed.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from manymetrics.errors import DataError, InputError, NotEnoughExamples
from manymetrics.values import Ints, LabelledTexts, Texts
from manymetrics.values.label_names import label_words

MOST_LABELS = 1000
LONGEST_LABEL = 200  # letters; longer ones are not copied for every answer


@dataclass(frozen=True, eq=False)
class SupportSet:
    """A task's own labelled examples, in order, and what their label numbers stand for."""

    texts: Texts
    numbers: Ints  # (examples,): places in `classes`
    classes: Any  # (classes,): sorted
    descriptions: Mapping[Any, str] = field(default_factory=dict)  # of some labels

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def labels(self) -> tuple[Any, ...]:
        """The label of each example."""
        classes = self.classes.tolist()
        return tuple(classes[number] for number in self.numbers.tolist())

    @property
    def class_names(self) -> tuple[str, ...]:
        """The labels as metrics know them."""
        return tuple(str(label) for label in self.classes.tolist())

    @cached_property
    def names(self) -> Texts:
        """What each label is called, in words, or how it was described."""
        return Texts(self.descriptions.get(label, label_words(str(label))) for label in self.classes.tolist())

    @property
    def empty_labels(self) -> list[Any]:
        """The labels without an example."""
        counts = np.bincount(self.numbers, minlength=len(self.classes))
        return [label for label, count in zip(self.classes.tolist(), counts, strict=True) if not count]

    @property
    def labelled(self) -> LabelledTexts:
        """The examples with the numbers of their labels."""
        return LabelledTexts(self.texts, self.numbers)

    def take(self, rows: Sequence[int] | Ints) -> "SupportSet":
        """Some of the examples, with the labels of all."""
        numbers = self.numbers[np.asarray(rows, dtype=np.int64)]
        return SupportSet(self.texts.take(rows), numbers, self.classes, self.descriptions)


def support_set(X: Iterable[str], y: Iterable[Any], descriptions: Mapping[Any, str] | None = None) -> SupportSet:
    """Check texts and labels and put them in order; a label that is described need not have an example."""
    texts, labels = as_texts(X), as_labels(y)
    described = as_descriptions(descriptions or {})
    if len(texts) != len(labels):
        raise DataError(f"Found {len(texts)} texts and {len(labels)} labels. Give one label for each text.")
    classes, numbers = _number(labels, list(described))
    order = sorted(range(len(texts)), key=lambda row: (numbers[row], texts[row]))
    return SupportSet(Texts(texts[row] for row in order), numbers[order], classes, described)


def as_descriptions(descriptions: Mapping[Any, str]) -> dict[Any, str]:
    """What labels mean, by label; a blank description leaves a label with its name."""
    if not isinstance(descriptions, Mapping):
        raise DataError(f"Found descriptions of type {type(descriptions).__name__}. Give a dict: label -> text.")
    labels, texts = as_labels(descriptions), as_texts(descriptions.values())
    return {label: text.strip() or label_words(str(label)) for label, text in zip(labels, texts, strict=True)}


def as_texts(texts: Iterable[str]) -> list[str]:
    """A list of texts from a list, an array or a column of a data frame."""
    if isinstance(texts, str):
        raise DataError("Found one text where a list of texts was expected. Put it in a list: [text].")
    listed = _listed(texts, "texts")
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise DataError(
                f"Found {text!r} of type {type(text).__name__} in row {row} where a text was expected. "
                "Replace missing texts by an empty one, or leave the row out."
            )
    return listed


def as_labels(labels: Iterable[Any]) -> list[Any]:
    """A list of labels, each a string or a number."""
    if isinstance(labels, str):
        raise DataError("Found one label where a list of labels was expected. Give one label for each text.")
    listed = [label.item() if isinstance(label, np.generic) else label for label in _listed(labels, "labels")]
    for row, label in enumerate(listed):
        if not isinstance(label, str | int | float) or label != label:  # noqa: PLR0124 - only NaN differs from itself
            raise DataError(
                f"Found the label {label!r} in row {row}. Every example needs a label, and labels are strings or "
                "numbers; leave the row out."
            )
    return listed


def _listed(column: Iterable[Any], what: str) -> list[Any]:
    if column is None or not hasattr(column, "__iter__"):
        raise DataError(f"Found {column!r} where a list of {what} was expected. Give one of the {what} in each place.")
    if hasattr(column, "columns"):
        raise DataError(f"Found a table where a list of {what} was expected. Give one column of it.")
    return list(column)


def _number(labels: list[Any], described: list[Any]) -> tuple[Any, Ints]:
    given, labels = labels, [*labels, *described]
    if len({isinstance(label, str) for label in labels}) > 1:
        raise DataError("Some labels are strings and some are not. Use only strings or only numbers.")
    if len({isinstance(label, bool) for label in labels}) > 1:
        raise DataError("Some labels are True or False and some are not, and True equals 1. Use one sort for all.")
    classes = sorted(set(labels))
    if len(classes) < 2:
        found = (
            f"{len(given)} example{'s' * (len(given) != 1)} of one label, {labels[0]!r}" if labels else "no examples"
        )
        raise NotEnoughExamples(f"Found {found}. A classifier needs examples of at least two labels.")
    if len(classes) > MOST_LABELS:
        raise InputError(
            f"Found {len(classes)} labels, and at most {MOST_LABELS} can be told apart. Are the label and the text "
            "columns swapped?"
        )
    places = {label: place for place, label in enumerate(classes)}
    return _as_array(classes), np.array([places[label] for label in given], dtype=np.int64)


def _as_array(classes: list[Any]) -> Any:
    """Labels as an array of numpy's own types where that keeps them apart and small, else of Python's."""
    with contextlib.suppress(OverflowError):
        array = np.array(classes)
        short = array.dtype.kind != "U" or array.dtype.itemsize <= LONGEST_LABEL * 4
        if short and array.dtype.kind != "O" and array.tolist() == classes and len(np.unique(array)) == len(classes):
            return array
    array = np.empty(len(classes), dtype=object)
    array[:] = classes
    return array
