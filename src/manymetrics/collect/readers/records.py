"""Records -> Examples: one loop checks and cleans the rows of all formats, groups them, and skips unusable ones.

A row is skipped if its text or label is blank, or if its label is as long as a text. `ReadLog` stores the file and the
position of skipped rows, so that they are reported together.
"""

import re
import sys
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from manymetrics.collect.readers.open import require_at_most
from manymetrics.errors import TaskFormatError, TaskSkipped
from manymetrics.values import Examples

MAX_ROWS = 1_000_000
MAX_LABELS = 1_000
MAX_LABEL_LENGTH = 500  # characters
MAX_CHARACTERS = 300_000_000  # of all texts of one task of a bank, or of one import
POSITIONS_LISTED = 5  # in a message
UNSPLIT = "unsplit"  # the part of examples that are not assigned to a split
COUNTER = "counter"  # the part of texts that belong to no label
NO_LABEL = "no label"  # the label of these
EXPORT_AGAIN = "Remove it, or export the file again as UTF-8 text."
KINDS = {type(None): "missing", bool: "true or false", int: "a number", float: "a number", str: "a string"}
KINDS |= {list: "a list", dict: "an object", bytes: "bytes"}

_SURROGATE = re.compile("[\ud800-\udfff]")


class RowProblem(str):
    """Why a row cannot be used, and the cure."""

    __slots__ = ()


BLANK_TEXT = RowProblem("the text is blank. Write one, or remove the row.")
BLANK_LABEL = RowProblem("the label is blank. Give every text a label, or remove the row.")
LONG_LABEL = RowProblem(
    f"the label has more than {MAX_LABEL_LENGTH} characters. Check which column holds the label, or shorten it."
)
BLANK_TASK = RowProblem("the task is blank. Give every row the name of its task, or remove the row.")
NO_CLASS = RowProblem("the class is -1, which means that there is no label. Label the texts, or remove the rows.")


class Record(NamedTuple):
    """One row of a file as it was read, not yet checked."""

    path: Path
    position: str  # such as "line 17"
    text: object
    label: object  # a `RowProblem` if the reader found one
    task: str = ""
    part: str = UNSPLIT  # train, valid, test, UNSPLIT or COUNTER


@dataclass
class ReadLog:
    """What was noticed while reading: notes on how a source was interpreted, and skipped rows."""

    notes: list[str] = field(default_factory=list)
    n_characters: int = 0
    skipped: defaultdict[tuple[Path, RowProblem], list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def n_skipped(self) -> int:
        """The number of rows that could not be used."""
        return sum(map(len, self.skipped.values()))

    def message(self) -> str:
        """The first positions of skipped rows, for each file and problem."""
        messages = []
        for (path, problem), positions in self.skipped.items():
            n_more = len(positions) - POSITIONS_LISTED
            more = f" and {n_more:,} more" if n_more > 0 else ""
            messages.append(f"{path}, {', '.join(positions[:POSITIONS_LISTED])}{more}: {problem}")
        return " ".join(messages)

    def report(self, *, strict: bool) -> None:
        """Warn the caller of the calling function of skipped rows; with `strict`, raise instead."""
        if self.skipped and strict:
            raise TaskFormatError(self.message())
        if self.skipped:
            rows = "1 row is" if self.n_skipped == 1 else f"{self.n_skipped:,} rows are"
            warnings.warn(f"{rows} left out. {self.message()}", TaskSkipped, stacklevel=3)


def collect_examples(records: Iterable[Record], log: ReadLog) -> dict[str, dict[str, Examples]]:
    """Check all records and group the usable ones by task and part, in their order; the log gets the others."""
    groups: dict[tuple[str, str], tuple[Path, list[str], list[str]]] = {}  # first file, texts and labels
    for record in records:
        text, label = _check(record)
        if isinstance(label, RowProblem):
            log.skipped[record.path, label].append(record.position)
            continue
        _, texts, labels = groups.setdefault((record.task, record.part), (record.path, [], []))
        texts.append(text)
        labels.append(label)
        log.n_characters += len(text)
        require_at_most(MAX_ROWS, len(texts), "rows", record.path)
        require_at_most(MAX_CHARACTERS, log.n_characters, "characters of text", record.path)
    tasks: dict[str, dict[str, Examples]] = {}
    for (task, part), (path, texts, labels) in groups.items():
        cure = "Check which column holds the label, or split the task into several."
        require_at_most(MAX_LABELS, len(set(labels)), "labels", path, cure)
        tasks.setdefault(task, {})[part] = Examples(tuple(texts), tuple(labels))
    return tasks


def clean_text(text: object, where: str) -> str:
    """A text in Unicode's NFC, empty where there is none; `where` is the file and the position."""
    if text is None:
        return ""
    if not isinstance(text, str):
        raise TaskFormatError(f"{where}: the text is {kind_of(text)}, expected a string. Write it as text.")
    if "\0" in text:
        raise TaskFormatError(f"{where}: found a NUL character. {EXPORT_AGAIN}")
    if text.isascii():
        return text
    if surrogate := _SURROGATE.search(text):
        raise TaskFormatError(f"{where}: found the lone surrogate U+{ord(surrogate.group()):04X}. {EXPORT_AGAIN}")
    return unicodedata.normalize("NFC", text)


def kind_of(value: object) -> str:
    """The type of a value, for a message."""
    return KINDS.get(type(value), f"of type {type(value).__name__}")


def _check(record: Record) -> tuple[str, str]:
    """The text and the label, or the problem that makes the record unusable."""
    if isinstance(record.label, RowProblem):
        return "", record.label
    where = f"{record.path}, {record.position}"
    text, label = clean_text(record.text, where), _clean_label(record.label, where)
    return text, label if text.strip() else BLANK_TEXT


def _clean_label(label: object, where: str) -> str:
    """The label without white space at its ends; one string object for all rows with the same label."""
    if label is None:
        return BLANK_LABEL
    if isinstance(label, bool) or not isinstance(label, str | int):
        raise TaskFormatError(f"{where}: the label is {kind_of(label)}, expected a string. Write it as text.")
    cleaned = clean_text(str(label), where).strip()
    if len(cleaned) > MAX_LABEL_LENGTH:
        return LONG_LABEL
    return sys.intern(cleaned) if cleaned else BLANK_LABEL
