"""Rows of a file -> Examples: each is checked and cleaned on its way in, and those that cannot be used are counted.

A row whose text or label is blank, or whose label is as long as a text, is left out. One such row among many stops
nothing: all of them are told at once, with their places, when the file has been read (`ReadLog`).
"""

import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

from manymetrics.errors import TaskFormatError
from manymetrics.values import Examples, Texts

MAX_ROWS = 1_000_000
MAX_LABELS = 1_000
MAX_LABEL = 500  # characters
MAX_CHARACTERS = 300_000_000  # of all texts of one task of a bank, or of one import
SHOWN = 5  # places named in a sentence

BLANK_TEXT = ("the text is blank", "Write one, or remove the row.")
BLANK_LABEL = ("the label is blank", "Give every text a label, or remove the row.")
LONG_LABEL = (f"the label has more than {MAX_LABEL} characters", "Check which column holds the label, or shorten it.")
BLANK_TASK = ("the task is blank", "Give every row the name of its task, or remove the row.")
NO_CLASS = ("the class is -1, which means that there is no label", "Label the texts, or remove the rows.")

Problem = tuple[str, str]  # what is wrong with a row, and the cure

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass
class ReadLog:
    """What readers have to say beside the examples: which rows were left out and why, and what was taken for what."""

    notes: list[str] = field(default_factory=list)
    rows_left_out: int = 0
    characters: int = 0  # read so far
    _left: dict[tuple[Path, Problem], tuple[int, list[str]]] = field(default_factory=dict)  # rows, and the first places

    def leave_out(self, path: Path, where: str, problem: Problem) -> None:
        """Count a row that cannot be used; `where` is its place in the file, such as "line 17"."""
        count, places = self._left.get((path, problem), (0, []))
        self._left[path, problem] = count + 1, places if len(places) == SHOWN else [*places, where]
        self.rows_left_out += 1

    def sentences(self) -> list[str]:
        """What is wrong with the rows left out, a sentence for each file and problem."""
        found = []
        for (path, (wrong, cure)), (count, places) in self._left.items():
            more = f" and {count - len(places):,} more" if count > len(places) else ""
            found.append(f"{path}, {', '.join(places)}{more}: {wrong}. {cure}")
        return found

    def as_warning(self) -> str:
        """The rows left out, in one line."""
        return f"{rows_in_words(self.rows_left_out)} left out. {' '.join(self.sentences())}"


class Rows:
    """Rows of one file, collected one by one; each is checked and cleaned when it is added."""

    def __init__(self, path: Path, log: ReadLog) -> None:
        self._path = path
        self._log = log
        self._texts: list[str] = []
        self._labels: list[str] = []
        self._known: dict[str, str | Problem] = {}  # label as written -> label as kept, one string for all its rows

    def add(self, text: object, label: object, *, where: str) -> None:
        """Take in one row, or leave it out; `where` is its place in the file, such as "line 17"."""
        if len(self._texts) >= MAX_ROWS:
            raise TaskFormatError(
                f"{self._path}: found more than {MAX_ROWS:,} rows. Take a sample of them, or split the task in several."
            )
        cleaned, kept = self._text(text, where), self._label(label, where)
        if not cleaned.strip():
            self._log.leave_out(self._path, where, BLANK_TEXT)
        elif isinstance(kept, tuple):
            self._log.leave_out(self._path, where, kept)
        else:
            self._count(len(cleaned))
            self._texts.append(cleaned)
            self._labels.append(kept)

    def examples(self) -> Examples:
        """All rows taken in, in their order."""
        found = len({label for label in self._known.values() if isinstance(label, str)})
        if found > MAX_LABELS:
            raise TaskFormatError(
                f"{self._path}: found {found:,} labels, a task may have at most {MAX_LABELS:,}. "
                "Check which column holds the label, or split the task in several."
            )
        return Examples(Texts(self._texts), tuple(self._labels))

    def _count(self, characters: int) -> None:
        self._log.characters += characters
        if self._log.characters > MAX_CHARACTERS:
            raise TaskFormatError(
                f"{self._path}: the texts have more than {MAX_CHARACTERS:,} characters. "
                "Take a sample of them, or split the task in several."
            )

    def _text(self, text: object, where: str) -> str:
        if text is None:
            return ""
        if not isinstance(text, str):
            raise TaskFormatError(
                f"{self._path}, {where}: the text is {kind_of(text)}, expected a string. Write it as text."
            )
        return self._clean(text, where)

    def _label(self, label: object, where: str) -> str | Problem:
        if label is None:
            return BLANK_LABEL
        if isinstance(label, bool) or not isinstance(label, str | int):
            raise TaskFormatError(
                f"{self._path}, {where}: the label is {kind_of(label)}, expected a string. Write it as text."
            )
        written = str(label).strip()
        if len(written) > 2 * MAX_LABEL:  # as it is written; shorter ones are kept to be found again
            return LONG_LABEL
        if (kept := self._known.get(written)) is None:
            cleaned = self._clean(written, where).strip()
            kept = cleaned if 0 < len(cleaned) <= MAX_LABEL else LONG_LABEL if cleaned else BLANK_LABEL
            self._known[written] = kept
        return kept

    def _clean(self, text: str, where: str) -> str:
        if "\0" in text:
            raise TaskFormatError(
                f"{self._path}, {where}: found a NUL character. Remove it, or export the file again as UTF-8 text."
            )
        if text.isascii():
            return text
        if half := _SURROGATE.search(text):
            raise TaskFormatError(
                f"{self._path}, {where}: found half of a character (the lone surrogate U+{ord(half.group()):04X}). "
                "Remove it, or export the file again as UTF-8 text."
            )
        return unicodedata.normalize("NFC", text)


def rows_in_words(count: int) -> str:
    """A number of rows, as the beginning of a sentence."""
    return "1 row is" if count == 1 else f"{count:,} rows are"


def kind_of(value: object) -> str:
    """What a value is, for a sentence."""
    names = {type(None): "missing", bool: "true or false", int: "a number", float: "a number", str: "a string"}
    names |= {list: "a list", dict: "an object", bytes: "bytes"}
    return names.get(type(value), f"of type {type(value).__name__}")
