"""Progress events -> a bar for each stage on a terminal, else now and then a line; always on stderr."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from manymetrics.cli.output import as_time, say

if TYPE_CHECKING:
    import manymetrics as mm

BETWEEN_LINES = 5.0  # seconds


class Stages:
    """Takes in progress events, shows them as they come, and knows at the end how long each stage took."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._started = self._last_line = time.monotonic()
        self._spent: list[tuple[str, float]] = []  # a stage may come more than once
        self._bars: Any = None
        self._bar: Any = None

    def __enter__(self) -> Stages:
        if not self._quiet:
            self._bars = _bars_if_terminal()
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *why: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, progress: mm.Progress) -> None:
        """Show one event."""
        begins = progress.seconds == 0
        if begins:
            self._spent.append((progress.stage, 0.0))
        self._spent[-1] = (progress.stage, progress.seconds)
        if self._bars is not None:
            self._show_bar(progress, begins=begins)
        elif not self._quiet:
            self._show_line(progress, begins=begins)

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds each stage took, and all of it together."""
        spent: dict[str, float] = {}
        for stage, seconds in self._spent:
            spent[stage] = round(spent.get(stage, 0.0) + seconds, 3)
        return {**spent, "total": round(time.monotonic() - self._started, 3)}

    def sum_up(self) -> None:
        """Say how long each stage took."""
        if not self._quiet:
            say(", ".join(f"{stage} {as_time(seconds)}" for stage, seconds in self.seconds.items()))

    def _show_line(self, progress: mm.Progress, *, begins: bool) -> None:
        now = time.monotonic()
        if begins:
            self._last_line = now
        if progress.done == progress.total or now - self._last_line >= BETWEEN_LINES:
            self._last_line = now
            kept = f" ({progress.kept} were there already)" if progress.kept else ""
            click.echo(f"{progress.stage} {progress.done}/{progress.total} {as_time(progress.seconds)}{kept}", err=True)

    def _show_bar(self, progress: mm.Progress, *, begins: bool) -> None:
        if begins:
            self._bar = self._bars.add_task(progress.stage, total=progress.total, speed="")
        self._bars.update(self._bar, completed=progress.done, speed=_speed(progress))


def _speed(progress: mm.Progress) -> str:
    done = progress.done - progress.kept
    if not done or not progress.seconds:
        return ""
    rate = done / progress.seconds
    pace = f"{rate:.1f} a second" if rate >= 1 else f"{1 / rate:.1f} s each"
    left = progress.total - progress.done
    return f"{pace}, {as_time(left / rate)} left" if left else f"{pace}, {as_time(progress.seconds)}"


def _bars_if_terminal() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True, markup=False, highlight=False)
    if not console.is_terminal or console.is_dumb_terminal:
        return None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[speed]}"))
    return Progress(*columns, console=console)
