"""What the commands write: tables, TSV and JSON to stdout, one-line messages to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.table import Table

    import manymetrics as mm

WIDTH = 120  # of a table that is not shown on a terminal
NAMED = 12  # tasks in a cell, before the others are only counted
Command = TypeVar("Command", bound=Callable[..., Any])


def say(message: str) -> None:
    """A message for the person at the terminal, in one line on stderr."""
    click.echo(f"manymetrics: {on_one_line(message)}", err=True)


def write_json(value: Any) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))


def write_tsv(cells: Iterable[str]) -> None:
    """One line of tab-separated cells on stdout."""
    click.echo("\t".join(" ".join(cell.split()) if _breaks(cell) else cell for cell in cells))


def write_table(table: Table) -> None:
    """A table on stdout, plain and of a fixed width when stdout is not a terminal."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else WIDTH
    console = Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)
    with console.capture() as shown:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in shown.get().splitlines()))


def make_table(*texts: str, numbers: Sequence[str] = ()) -> Table:
    """A table with columns of text, then columns of numbers; cells too long for a column are folded, never cut."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in texts:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def on_one_line(text: str) -> str:
    """The text without anything that would break its line or steer the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in text)


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


def _breaks(cell: str) -> bool:
    return "\t" in cell or len(cell.splitlines()) > 1 or cell.endswith(("\n", "\r"))
