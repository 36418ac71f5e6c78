"""Tables from elsewhere -> Examples: CSV, TSV, JSONL, Parquet and Arrow files with columns of any name.

A column may divide a table into tasks, and `split` into train, valid and test. Numbers of classes become their names
where these are known.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from manymetrics.collect.formats import read_records
from manymetrics.collect.options import Columns, Options
from manymetrics.collect.rows import BLANK_TASK, NO_CLASS, Rows, kind_of
from manymetrics.errors import TaskFormatError
from manymetrics.values import Examples

WHOLE = "whole"  # the part of examples that have no split
COUNTER = "counter"  # the part of texts that belong to no label
NO_LABEL = "no label"  # stands where these have a label
PART_OF = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("valid", "validation", "val", "dev"), "valid"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation"), "test"),
}
UNLABELLED = -1  # the number of no class

Found = tuple[str, str, Examples]  # task, part, and what belongs there
ClassNames = Callable[[str], Sequence[str]]  # column of the labels -> names of its classes, none if it has no classes


def read_table(path: Path, options: Options, *, kind: str, part: str = WHOLE, task: str | None = None,
               classes: ClassNames = lambda _: ()) -> Iterator[Found]:  # fmt: skip
    """The examples of one file by task and part; `task` and `part` stand where no column says otherwise."""
    columns, log = options.columns, options.log
    piles: defaultdict[tuple[str, str], Rows] = defaultdict(lambda: Rows(path, log))
    labels = _Labels(columns, classes)
    named = columns != Columns()
    for where, values in read_records(path, labels.choose, log, kind=kind, dialect=options.dialect, named=named):
        text, label, of_task, of_part = (*values, None, None)[:4]
        place = f"{path}, {where}"
        kept = labels.name(label, where=place)
        own = _task_name(of_task, options, where=place) if columns.task else task or options.task
        of = part if of_part is None else _part_name(of_part, where=place) or part
        if (problem := kept if isinstance(kept, tuple) else None if own else BLANK_TASK) is not None:
            log.leave_out(path, where, problem)
        else:
            piles[own, of].add(text, kept, where=where)
    return ((*key, rows.examples()) for key, rows in piles.items())


class _Labels:
    """Labels of one table; numbers of classes become names."""

    def __init__(self, columns: Columns, classes: ClassNames) -> None:
        self._columns = columns
        self._classes = classes
        self._names: dict[str, Sequence[str]] = {}  # by column
        self._known: dict[str, frozenset[str]] = {}
        self._column = "label"

    def choose(self, found: Sequence[str], where: str) -> tuple[str | None, ...]:
        """The columns to read; remembers which of them holds the labels."""
        chosen = self._columns.choose(found, where)
        self._column = chosen[1] or self._column
        return chosen

    def name(self, label: Any, *, where: str) -> Any:
        """The name behind the number of a class, or the problem that it is none; other labels stay."""
        if self._column not in self._names:
            names = self._names[self._column] = self._classes(self._column)
            self._known[self._column] = frozenset(names)
        names = self._names[self._column]
        if not names or (isinstance(label, str) and label in self._known[self._column]):
            return label
        number = _whole_number(label)
        if number is None:
            return label
        if number == UNLABELLED:
            return NO_CLASS
        if not 0 <= number < len(names):
            raise TaskFormatError(f"{where}: there is no class {number}, only 0 to {len(names) - 1}. Check the labels.")
        return names[number]


def _whole_number(label: Any) -> int | None:
    try:
        return int(label) if isinstance(label, int | str) and not isinstance(label, bool) else None
    except ValueError:
        return None


def _task_name(value: object, options: Options, *, where: str) -> str:
    """What a row's task is called; empty if its cell is blank."""
    if value is None or not str(value).strip():
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise TaskFormatError(f"{where}: the task is {kind_of(value)}, expected its name. Write it as text.")
    return options.name(str(value).strip())


def _part_name(value: object, *, where: str) -> str:
    """The part that a cell names; empty if it is blank."""
    part = {**PART_OF, "": ""}.get(str(value).strip().casefold())
    if part is None:
        raise TaskFormatError(
            f"{where}: the split is {value!r}, expected train, valid or test. "
            "Rename the column if it means something else."
        )
    return part
