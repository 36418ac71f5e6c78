"""Progress events -> a bar for each stage on a terminal, else now and then a line; always on stderr.

As JSON, every event is one line: event (stage or failed), stage, done, total, kept, failed, seconds, and the seconds
left; of a failure its unit and error.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import click

from manymetrics.cli.group import asked
from manymetrics.cli.output import as_time, say

if TYPE_CHECKING:
    import manymetrics as mm

BETWEEN_LINES = 5.0  # seconds


class Stages:
    """Takes in progress events, shows them as they come, and knows at the end how long each stage took."""

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self._quiet, self._as_json = quiet, as_json
        self.failures: list[mm.Failure] = []
        self._started = self._last_line = time.monotonic()
        self._spent: list[tuple[str, float]] = []  # a stage may come more than once
        self._bars: Any = None
        self._bar: Any = None

    def __enter__(self) -> Stages:
        if not self._quiet and not self._as_json:
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
        fresh = [failure for failure in progress.failures if failure not in self.failures]
        self.failures += fresh
        if self._as_json:
            _write_events(progress, fresh)
        elif self._bars is not None:
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
        """Say how long each stage took, and what failed."""
        if not self._quiet and not self._as_json:
            say(", ".join(f"{stage} {as_time(seconds)}" for stage, seconds in self.seconds.items()))
        if self.failures:
            units = ", ".join(f"{failure.stage} of {failure.unit!r}" for failure in self.failures)
            count = (
                "1 unit failed and was" if len(self.failures) == 1 else f"{len(self.failures)} units failed and were"
            )
            say(f"{count} left out: {units}. Try again with: {asked()}")

    def _show_line(self, progress: mm.Progress, *, begins: bool) -> None:
        now = time.monotonic()
        if begins:
            self._last_line = now
        if not _left(progress) or now - self._last_line >= BETWEEN_LINES:
            self._last_line = now
            kept = f"{progress.kept} were there already" if progress.kept else ""
            parts = (f"{progress.stage} {progress.done}/{progress.total}", kept, _speed(progress))
            click.echo(", ".join(part for part in parts if part), err=True)

    def _show_bar(self, progress: mm.Progress, *, begins: bool) -> None:
        if begins:
            self._bar = self._bars.add_task(progress.stage, total=progress.total, speed="")
        self._bars.update(self._bar, completed=progress.done, speed=_speed(progress))


def _left(progress: mm.Progress) -> int:
    return progress.total - progress.done - len(progress.failures)


def _rate(progress: mm.Progress) -> float | None:
    """Units a second, of those that were not there already."""
    tried = progress.done - progress.kept + len(progress.failures)
    return tried / progress.seconds if tried and progress.seconds else None


def _speed(progress: mm.Progress) -> str:
    rate, left = _rate(progress), _left(progress)
    if rate is None:
        return ""
    pace = f"{rate:.1f} a second" if rate >= 1 else f"{1 / rate:.1f} s each"
    failed = f", {len(progress.failures)} failed" if progress.failures else ""
    return f"{pace}, {f'{as_time(left / rate)} left' if left else as_time(progress.seconds)}{failed}"


def _write_events(progress: mm.Progress, fresh: list[mm.Failure]) -> None:
    for failure in fresh:
        told = {"event": "failed", "stage": failure.stage, "unit": failure.unit, "error": failure.error}
        click.echo(json.dumps(told), err=True)
    rate = _rate(progress)
    event = {
        "event": "stage",
        "stage": progress.stage,
        "done": progress.done,
        "total": progress.total,
        "kept": progress.kept,
        "failed": len(progress.failures),
        "seconds": round(progress.seconds, 3),
        "left": None if rate is None else round(_left(progress) / rate, 3),
    }
    click.echo(json.dumps(event), err=True)


def _bars_if_terminal() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True, markup=False, highlight=False)
    if not console.is_terminal or console.is_dumb_terminal:
        return None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[speed]}"))
    return Progress(*columns, console=console)
