"""Records -> Examples: one loop checks and cleans the rows of all formats, groups them, and skips unusable ones.

A row is skipped if its text or label is blank, or if its label is as long as a text. `ReadLog` stores the file and the
position of skipped rows, so that they are reported together. `TableOptions` says which columns of a table are read.
"""

import re
import sys
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from manymetrics.collect.readers.open import require_at_most
from manymetrics.errors import TaskFormatError, TaskSkipped, list_first
from manymetrics.values import Examples

MAX_ROWS = 1_000_000
MAX_LABELS = 1_000
MAX_LABEL_LENGTH = 500  # characters
MAX_CHARACTERS = 300_000_000  # of all texts of one task of a bank, or of one import
TEXT_NAMES = ("text", "sentence", "utterance")
LABEL_NAMES = ("label", "intent", "category")
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


@dataclass(frozen=True)
class TableOptions:
    """How to read a table: columns by name or number, case does not matter; what is None is detected."""

    text: str | None = None
    label: str | None = None
    task: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    texts_only: bool = False  # the rows are texts to classify: none is skipped, and none needs a label
    class_names: bool = False  # whether class numbers become names where a file has these
    cure: str = "Name the right one with --{role}-column."  # what to do if a column is missing; {role} is what it holds

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are given."""
        return tuple(name for name in (self.text, self.label, self.task) if name is not None)

    @property
    def header(self) -> bool | None:
        """Whether a table has a header: False if all given columns are numbers, None if none is given."""
        return not all(map(str.isdecimal, self.columns)) if self.columns else None

    def choose(self, names: Sequence[str], where: str) -> tuple[str | None, ...]:
        """The columns of text, label, task and split; None for one that is not there and need not be."""
        by_name = {name.casefold(): name for name in names}

        def find(role: str, expected: Sequence[str]) -> str:
            for name in expected:
                if name.casefold() in by_name:
                    return by_name[name.casefold()]
            wanted, listed = " or ".join(map(repr, expected)), list_columns([*by_name.values()])
            cure = self.cure.format(role=role)
            raise TaskFormatError(f"{where}: found {listed}, expected {wanted} for the {role}. {cure}")

        text = find("text", [self.text] if self.text else TEXT_NAMES)
        if self.texts_only:
            return text, None, None, None
        label = find("label", [self.label] if self.label else LABEL_NAMES)
        task = find("task", [self.task]) if self.task else None
        split = by_name.get("split")
        return text, label, task, None if split in (text, label, task) else split


class Record(NamedTuple):
    """One row of a file as it was read, not yet checked."""

    path: Path
    position: str  # such as "line 17"
    text: object
    label: object  # a `RowProblem` if the reader found one
    task: Any = ""  # its name; of a table, the cell that holds it
    part: Any = UNSPLIT  # train, valid, test, UNSPLIT or COUNTER; of a table, the cell that names the split


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

    @property
    def rows(self) -> str:
        """The same in words."""
        return "1 row" if self.n_skipped == 1 else f"{self.n_skipped:,} rows"

    def message(self) -> str:
        """The first positions of skipped rows, for each file and problem."""
        skipped = self.skipped.items()
        return " ".join(f"{path}, {list_first(positions)}: {problem}" for (path, problem), positions in skipped)

    def report(self, *, strict: bool) -> None:
        """Warn the caller of the calling function of skipped rows; with `strict`, raise instead."""
        if self.skipped and strict:
            raise TaskFormatError(self.message())
        if self.skipped:
            verb = "is" if self.n_skipped == 1 else "are"
            warnings.warn(f"{self.rows} {verb} left out. {self.message()}", TaskSkipped, stacklevel=3)


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
    tasks: defaultdict[str, dict[str, Examples]] = defaultdict(dict)
    for (task, part), (path, texts, labels) in groups.items():
        cure = "Check which column holds the label, or split the task into several."
        require_at_most(MAX_LABELS, len(set(labels)), "labels", path, cure)
        tasks[task][part] = Examples(tuple(texts), tuple(labels))
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


def list_columns(names: Sequence[str]) -> str:
    """Names of columns, for a message."""
    return "the columns " + list_first([ascii(name[:40]) for name in names]) if names else "no column names"


def _check(record: Record) -> tuple[str, str]:
    """The text and the label, one string object for equal labels; or the problem that makes the record unusable."""
    label = record.label
    if isinstance(label, RowProblem):
        return "", label
    where = f"{record.path}, {record.position}"
    text = clean_text(record.text, where)
    if label is not None and (isinstance(label, bool) or not isinstance(label, str | int)):
        raise TaskFormatError(f"{where}: the label is {kind_of(label)}, expected a string. Write it as text.")
    cleaned = clean_text(None if label is None else str(label), where).strip()
    if not text.strip():
        return text, BLANK_TEXT
    if not cleaned:
        return text, BLANK_LABEL
    return text, LONG_LABEL if len(cleaned) > MAX_LABEL_LENGTH else sys.intern(cleaned)
