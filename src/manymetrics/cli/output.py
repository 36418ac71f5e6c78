"""What the commands write: tables, TSV and JSON to stdout, one-line messages to stderr.

Labels, texts and names come from files of others. Whatever could break a line or steer a terminal is written as an
escape: in tables, lines and TSV as Python writes it, in JSON as JSON does, which loses nothing. A TSV that is not shown
on a terminal keeps what is merely invisible, such as a no-break space or the joiner of an emoji.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    import manymetrics as mm

_STEERING = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"  # beside those that JSON escapes
_IN_JSON, _IN_TSV = re.compile(f"[{_STEERING}]"), re.compile(f"[\x00-\x1f{_STEERING}]")
WIDTH = 120  # of a table that is not shown on a terminal
NAMED = 12  # tasks in a cell, before the others are only counted
Command = TypeVar("Command", bound=Callable[..., Any])


def say(message: str) -> None:
    """A message for the person at the terminal, in one line on stderr."""
    click.echo(f"manymetrics: {on_one_line(message)}", err=True)


def write_json(value: Any, *, indent: int | None = 1) -> None:
    """One JSON document on stdout; without `indent` on one line."""
    written = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    click.echo(_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", written))


def write_lines(text: str) -> None:
    """Some lines on stdout, each safe to be shown in a terminal."""
    click.echo("\n".join(on_one_line(line) for line in text.split("\n")))


def write_path(path: object) -> None:
    """A path on stdout: for another program as it is, for a terminal safe to be shown."""
    click.echo(on_one_line(str(path)) if sys.stdout.isatty() else str(path))


def write_tsv(cells: Iterable[str]) -> None:
    """One line of tab-separated cells on stdout."""
    click.echo("\t".join(_in_a_cell(cell) for cell in cells))


class TextTable:
    """Columns of text, then columns of numbers; whatever is put in a cell is safe to be shown in a terminal."""

    def __init__(self, texts: Sequence[str], numbers: Sequence[str]) -> None:
        self.texts, self.numbers = [on_one_line(name) for name in texts], [on_one_line(name) for name in numbers]
        self.rows: list[list[str] | None] = []

    def add_row(self, *cells: str) -> None:
        """One more row."""
        self.rows.append([on_one_line(cell) for cell in cells])

    def add_section(self) -> None:
        """A line between the rows so far and those to come."""
        self.rows.append(None)


def make_table(*texts: str, numbers: Sequence[str] = ()) -> TextTable:
    """A table with columns of text, then columns of numbers; cells too long for a column are folded, never cut."""
    return TextTable(texts, numbers)


def write_table(table: TextTable) -> None:
    """A table on stdout, plain and of a fixed width when stdout is not a terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in table.texts:
        drawn.add_column(name, overflow="fold")
    for name in table.numbers:
        drawn.add_column(name, justify="right")
    for row in table.rows:
        if row is None:
            drawn.add_section()
        else:
            drawn.add_row(*row)
    width = None if sys.stdout.isatty() else WIDTH
    console = Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)
    with console.capture() as shown:
        console.print(drawn)
    click.echo("\n".join(line.rstrip() for line in shown.get().splitlines()))


def on_one_line(text: str) -> str:
    """The text without anything that would break its line or steer the terminal."""
    return "".join(sign if sign.isprintable() else _escaped(sign) for sign in text)


def without_breaks(value: Any) -> Any:
    """A value of strings, tuples and data classes, in none of which a label or a name breaks a line.

    Fields called `text` stay as they are: they are shown in quotes, where nothing breaks.
    """
    if isinstance(value, str):
        return value.replace("\n", "\\n")
    if isinstance(value, tuple):
        return tuple(without_breaks(one) for one in value)
    if is_dataclass(value) and not isinstance(value, type):
        told = {one.name: getattr(value, one.name) for one in fields(value) if one.name != "text"}
        return replace(value, **{name: without_breaks(one) for name, one in told.items()})
    return value


def name_tasks(tasks: Sequence[str]) -> str:
    """The names of some tasks, and how many more there are; `--json` has them all."""
    more = f" and {len(tasks) - NAMED:,} more" if len(tasks) > NAMED else ""
    return on_one_line(", ".join(tasks[:NAMED])) + more


def with_interval(estimate: mm.Estimate) -> str:
    """A share with its interval, in per cent."""
    return f"{estimate.value:.1%} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def as_time(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def as_size(count: float) -> str:
    """Bytes as people say them."""
    if count < 1000:
        return f"{count:.0f} bytes"
    units = ("kB", "MB", "GB", "TB")
    power = min(len(units), (len(str(int(count))) - 1) // 3)
    return f"{count / 1000**power:.1f} {units[power - 1]}"


def examples_of_use(*lines: str) -> str:
    """Commands to copy, for the end of a help page."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def json_option(command: Command) -> Command:
    """The option every command that shows something has."""
    return click.option("--json", "as_json", is_flag=True, help="Write JSON instead of text.")(command)


def _in_a_cell(text: str) -> str:
    """A text without what would end its cell or steer the terminal; tabs and line breaks become spaces."""
    if "\t" in text or len((text + ".").splitlines()) > 1:
        text = " ".join(text.split())
    return on_one_line(text) if sys.stdout.isatty() else _IN_TSV.sub(lambda found: _escaped(found[0]), text)


def _escaped(sign: str) -> str:
    return sign.encode("unicode_escape", "replace").decode()
