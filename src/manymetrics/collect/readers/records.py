"""Records -> Examples: one loop checks and cleans the rows of all formats, groups them, and skips unusable ones.

A row is skipped if its text or label is blank, or if its label is as long as a text. `ReadLog` stores the file and the
position of skipped rows, so that they are reported together.
"""

import re
import unicodedata
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

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
    groups: dict[tuple[str, str], tuple[list[str], list[str]]] = {}  # texts and labels by task and part
    n_rows: Counter[str] = Counter()  # by task
    labels_in: defaultdict[tuple[Path, str, str], set[str]] = defaultdict(set)  # by file, task and part
    known_labels: dict[str, str] = {}
    for record in records:
        text, label = _check(record, known_labels)
        if isinstance(label, RowProblem):
            log.skipped[record.path, label].append(record.position)
            continue
        texts, labels = groups.setdefault((record.task, record.part), ([], []))
        texts.append(text)
        labels.append(label)
        labels_in[record.path, record.task, record.part].add(label)
        n_rows[record.task] += 1
        log.n_characters += len(text)
        require_at_most(MAX_ROWS, n_rows[record.task], "rows", record.path)
        require_at_most(MAX_CHARACTERS, log.n_characters, "characters of text", record.path)
    for (path, _, _), distinct in labels_in.items():
        cure = "Check which column holds the label, or split the task into several."
        require_at_most(MAX_LABELS, len(distinct), "labels", path, cure)
    tasks: dict[str, dict[str, Examples]] = {}
    for (task, part), (texts, labels) in groups.items():
        tasks.setdefault(task, {})[part] = Examples(tuple(texts), tuple(labels))
    return tasks


def read_single(records: Iterable[Record], log: ReadLog) -> Examples:
    """The examples of records that name neither task nor part."""
    return collect_examples(records, log).get("", {}).get(UNSPLIT, Examples())


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


def numbered_objects(values: Any, path: Path, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a JSON list, each with its position, such as "utterance 17"."""
    if not isinstance(values, list):
        raise TaskFormatError(f"{path}, {kind}s: this is {kind_of(values)}, expected a list. Export again.")
    for number, value in enumerate(values, start=1):
        position = f"{kind} {number}"
        if not isinstance(value, dict):
            raise TaskFormatError(f"{path}, {position}: this is {kind_of(value)}, expected an object. Export again.")
        yield position, value


def _check(record: Record, known_labels: dict[str, str]) -> tuple[str, str]:
    """The text and the label, or the problem that makes the record unusable."""
    if isinstance(record.label, RowProblem):
        return "", record.label
    where = f"{record.path}, {record.position}"
    text, label = clean_text(record.text, where), _clean_label(record.label, where, known_labels)
    return text, label if text.strip() else BLANK_TEXT


def _clean_label(label: object, where: str, known: dict[str, str]) -> str:
    """The label without white space at its ends; one string object for all rows with the same label."""
    if label is None:
        return BLANK_LABEL
    if isinstance(label, bool) or not isinstance(label, str | int):
        raise TaskFormatError(f"{where}: the label is {kind_of(label)}, expected a string. Write it as text.")
    written = str(label).strip()
    if len(written) > 2 * MAX_LABEL_LENGTH:  # not worth storing
        return LONG_LABEL
    if written not in known:
        cleaned = clean_text(written, where).strip()
        known[written] = LONG_LABEL if len(cleaned) > MAX_LABEL_LENGTH else cleaned or BLANK_LABEL
    return known[written]
