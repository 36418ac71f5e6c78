"""Progress events -> bars, lines or JSON on stderr; at the end, how long each stage took and what failed.

As JSON, every event is one line: event (stage or failed), stage, done, total, kept, failed, seconds, the seconds left,
and the units worked on; of a failure its unit and error.
"""

from __future__ import annotations

import json
import time

import click

import manymetrics as mm
from manymetrics.cli.group import asked
from manymetrics.cli.output import as_time, say


class Stages:
    """Takes in progress events, shows them as they come, and knows at the end how long each stage took."""

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self._quiet, self._as_json = quiet, as_json
        self._display = mm.ProgressDisplay("nothing" if quiet or as_json else None)
        self.failures: list[mm.Failure] = []
        self._told = 0  # failures of the present stage that were told
        self._started = time.monotonic()
        self._spent: list[tuple[str, float]] = []  # a stage may come more than once

    def __enter__(self) -> Stages:
        self._display.__enter__()
        return self

    def __exit__(self, *why: object) -> None:
        self._display.__exit__(*why)

    def __call__(self, progress: mm.Progress) -> None:
        """Show one event."""
        if progress.seconds == 0:
            self._spent.append((progress.stage, 0.0))
            self._told = 0
        self._spent[-1] = (progress.stage, progress.seconds)
        fresh = list(progress.failures[self._told :])
        self.failures += fresh
        self._told = len(progress.failures)
        if self._as_json:
            _write_events(progress, fresh)
        self._display(progress)

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


def _write_events(progress: mm.Progress, fresh: list[mm.Failure]) -> None:
    for failure in fresh:
        told = {"event": "failed", "stage": failure.stage, "unit": failure.unit, "error": failure.error}
        click.echo(json.dumps(told), err=True)
    event = {
        "event": "stage",
        "stage": progress.stage,
        "done": progress.done,
        "total": progress.total,
        "kept": progress.kept,
        "failed": len(progress.failures),
        "seconds": round(progress.seconds, 3),
        "left": None if progress.seconds_left is None else round(progress.seconds_left, 3),
        "running": list(progress.running),
    }
    click.echo(json.dumps(event), err=True)
