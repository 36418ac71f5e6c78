"""Which columns of a table hold text, label, task and split, and how the table is written.

The column of the texts is named text, sentence or utterance, that of the labels label, intent or category.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from manymetrics.errors import TaskFormatError

TEXT_NAMES = ("text", "sentence", "utterance")
LABEL_NAMES = ("label", "intent", "category")
COLUMNS_LISTED = 5  # in a message
NAME_COLUMN = "Name the right one with --{role}-column."

Row = tuple[str, tuple[Any, ...]]  # position in the file; text, label, task and split, None for no column


@dataclass(frozen=True)
class TableOptions:
    """How to read a table: columns by name or number, case does not matter; what is None is detected."""

    text: str | None = None
    label: str | None = None
    task: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    texts_only: bool = False  # the rows are texts to classify: none is skipped, and none needs a label
    cure: str = "Rename the column."  # what to do if a column is missing; {role} is what it holds

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
        text = self._find(by_name, where, "text", [self.text] if self.text else TEXT_NAMES)
        if self.texts_only:
            return text, None, None, None
        label = self._find(by_name, where, "label", [self.label] if self.label else LABEL_NAMES)
        task = self._find(by_name, where, "task", [self.task]) if self.task else None
        split = by_name.get("split")
        return text, label, task, None if split in (text, label, task) else split

    def _find(self, by_name: dict[str, str], where: str, role: str, expected: Sequence[str]) -> str:
        for name in expected:
            if name.casefold() in by_name:
                return by_name[name.casefold()]
        wanted, cure = " or ".join(map(repr, expected)), self.cure.format(role=role)
        message = f"{where}: found {list_columns([*by_name.values()])}, expected {wanted} for the {role}. {cure}"
        raise TaskFormatError(message)


def list_columns(names: Sequence[str]) -> str:
    """Names of columns, for a message."""
    if not names:
        return "no column names"
    more = f" and {len(names) - COLUMNS_LISTED} more" if len(names) > COLUMNS_LISTED else ""
    return "the columns " + ", ".join(ascii(name[:40]) for name in names[:COLUMNS_LISTED]) + more
