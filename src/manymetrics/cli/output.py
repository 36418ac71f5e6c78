"""What the commands print: lines, tables, TSV and JSON on stdout, one-line messages on stderr.

Labels, texts and names come from files of others. Characters that could break a line or control a terminal are escaped:
in lines, tables and TSV as Python does, in JSON as JSON does, which loses nothing.
"""

import dataclasses
import json
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import click

FORMAT = 1  # of the JSON documents
TABLE_WIDTH = 120  # columns, if stdout is not a terminal
MAX_NAMED_TASKS = 12  # in a cell; the others are counted
_CONTROL = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"  # besides those that JSON escapes
_CONTROL_IN_JSON, _CONTROL_IN_TEXT = re.compile(f"[{_CONTROL}]"), re.compile(f"[\x00-\x1f{_CONTROL}]")


class Table:
    """Columns of text, then right-aligned columns of numbers. Cells are escaped; long ones are folded, not cut.

    A row without cells separates the rows above from those below.
    """

    def __init__(self, *texts: str, numbers: Sequence[str] = (), rows: Iterable[Sequence[object]] = ()) -> None:
        self._texts, self._numbers, self._rows = texts, numbers, list(rows)

    def add_row(self, *cells: object) -> None:
        """Add a row."""
        self._rows.append(cells)

    def write(self) -> None:
        """Print the table; with a fixed width if stdout is not a terminal."""
        from rich import box
        from rich.console import Console
        from rich.table import Table as RichTable

        table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for name in self._texts:
            table.add_column(name, overflow="fold")
        for name in self._numbers:
            table.add_column(name, justify="right")
        for cells in self._rows:
            if cells:
                table.add_row(*(on_one_line(str(cell)) for cell in cells))
            else:
                table.add_section()
        width = None if sys.stdout.isatty() else TABLE_WIDTH
        console = Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)
        with console.capture() as capture:
            console.print(table)
        click.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))


def write_result(data: Any, parts: Iterable[str | Table], *, as_json: bool) -> None:
    """Print the result of a command: its data as JSON, or its parts as text, each a line or a table.

    An object gets the number of its format as its first field, unless it has one.
    """
    if as_json:
        write_json({"format": FORMAT, **data} if isinstance(data, dict) else data)
    else:
        write_text(parts)


def write_text(parts: Iterable[str | Table]) -> None:
    """Print lines and tables."""
    for part in parts:
        if isinstance(part, Table):
            part.write()
        else:
            click.echo(on_one_line(part))


def say(message: str) -> None:
    """Print a message on stderr, in one line."""
    click.echo(f"manymetrics: {on_one_line(message)}", err=True)


def write_json(value: Any, *, indent: int | None = 1) -> None:
    """Print a JSON document; without `indent` on one line. A dataclass becomes an object of its fields."""
    document = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False, default=dataclasses.asdict)
    click.echo(_CONTROL_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", document))


def write_tsv(*cells: str) -> None:
    """Print a line of tab-separated cells, in which tabs and line breaks become spaces."""
    words = [" ".join(cell.split()) if "\t" in cell or len(f"{cell}.".splitlines()) > 1 else cell for cell in cells]
    click.echo("\t".join(map(on_one_line, words)))


def on_one_line(text: str) -> str:
    """The text with everything escaped that would break the line or control the terminal."""
    return _CONTROL_IN_TEXT.sub(lambda match: match[0].encode("unicode_escape", "replace").decode(), text)


def lines_of(value: Any) -> list[str]:
    """The lines of a printed dataclass. Line breaks in labels and names are escaped first.

    Fields called `text` are not escaped: they are printed in quotes.
    """
    return str(_without_breaks(value)).split("\n")


def name_tasks(tasks: Sequence[str]) -> str:
    """The first names of a list of tasks, and the number of the others."""
    others = len(tasks) - MAX_NAMED_TASKS
    return ", ".join(tasks[:MAX_NAMED_TASKS]) + (f" and {others:,} more" if others > 0 else "")


def as_time(seconds: float) -> str:
    """A duration in seconds, or from a minute on in hours, minutes and seconds."""
    return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=round(seconds)))


def _without_breaks(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\n", "\\n")
    if isinstance(value, tuple):
        return tuple(_without_breaks(item) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.name != "text"]
        return dataclasses.replace(value, **{name: _without_breaks(getattr(value, name)) for name in names})
    return value
