"""Tables with columns of any name -> records; the options of an import.

A column may divide a table into tasks, and the column `split` into train, valid and test. Class numbers become class
names where these are known.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manymetrics.collect.readers.arrow import class_names
from manymetrics.collect.readers.columns import TableOptions
from manymetrics.collect.readers.records import BLANK_TASK, NO_CLASS, UNSPLIT, ReadLog, Record, RowProblem, kind_of
from manymetrics.collect.readers.table import TABLES, table_rows
from manymetrics.errors import TaskFormatError

PART_OF = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("valid", "validation", "val", "dev"), "valid"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation"), "test"),
}
UNLABELLED = -1  # the class number of texts without a label


@dataclass(frozen=True)
class ImportOptions:
    """How to read a source and what to call its tasks; importers write into the log."""

    format: str
    task: str  # the name of a single task
    prefix: str  # of the names of several tasks
    table: TableOptions
    log: ReadLog

    def task_name(self, name: str) -> str:
        """The name of one of several tasks."""
        return f"{self.prefix}-{name}" if self.prefix else name


def read_table(path: Path, options: ImportOptions, *, task: str | None = None, part: str = UNSPLIT) -> Iterator[Record]:
    """The records of one file; `task` and `part` apply where no column names another."""
    kind = options.format if options.format in TABLES else path.suffix.removeprefix(".")
    names = class_names(path, options.table)
    for position, (text, label, task_cell, split_cell) in table_rows(path, kind, options.table, options.log):
        where = f"{path}, {position}"
        named = _class_name(label, names, where) if names else label
        name = _task_name(task_cell, options, where) if options.table.task else task or options.task
        split = part if split_cell is None else _split_name(split_cell, where) or part
        usable = name or isinstance(named, RowProblem)
        yield Record(path, position, text, named if usable else BLANK_TASK, name, split)


def _class_name(label: Any, names: Sequence[str], where: str) -> Any:
    """The name of a class number, or the problem that it is none; other labels are returned unchanged."""
    try:
        number = int(label) if isinstance(label, int | str) and not isinstance(label, bool) else None
    except ValueError:
        number = None
    if number is None or label in names:
        return label
    if number == UNLABELLED:
        return NO_CLASS
    if not 0 <= number < len(names):
        raise TaskFormatError(f"{where}: there is no class {number}, only 0 to {len(names) - 1}. Check the labels.")
    return names[number]


def _task_name(value: object, options: ImportOptions, where: str) -> str:
    """The name of a row's task; empty if its cell is blank."""
    if value is None or not str(value).strip():
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise TaskFormatError(f"{where}: the task is {kind_of(value)}, expected its name. Write it as text.")
    return options.task_name(str(value).strip())


def _split_name(value: object, where: str) -> str:
    """The split that a cell names; empty if it is blank."""
    split = {**PART_OF, "": ""}.get(str(value).strip().casefold())
    if split is None:
        raise TaskFormatError(f"{where}: the split is {value!r}, expected train, valid or test. Rename the column.")
    return split
