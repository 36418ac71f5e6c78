"""Progress of a long command on stderr; at the end the time of each stage and what failed."""

from __future__ import annotations

import time

import click

import manymetrics as mm
from manymetrics.cli.main import COMMAND_LINE
from manymetrics.cli.output import as_time, say


class Stages:
    """Receives progress events, shows them, and sums up the times of the stages."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._display = None if quiet else mm.engine.ProgressDisplay()
        self._started = time.monotonic()
        self._events: list[mm.Progress] = []  # the latest of each stage, which may run more than once

    def __enter__(self) -> Stages:
        if self._display is not None:
            self._display.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._display is not None:
            self._display.__exit__(*error)

    def __call__(self, progress: mm.Progress) -> None:
        """Show one event."""
        if progress.seconds > 0:  # 0: a stage begins
            self._events.pop()
        self._events.append(progress)
        if self._display is not None:
            self._display(progress)

    @property
    def failures(self) -> list[mm.store.Failure]:
        """The jobs that failed."""
        return [failure for event in self._events for failure in event.failures]

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds of each stage, and the total."""
        seconds: dict[str, float] = {}
        for event in self._events:
            seconds[event.stage] = round(seconds.get(event.stage, 0.0) + event.seconds, 3)
        return {**seconds, "total": round(time.monotonic() - self._started, 3)}

    def sum_up(self, *options: str) -> None:
        """Print the times and what failed; the same command with these options tries again."""
        if self._display is not None:
            say(", ".join(f"{stage} {as_time(seconds)}" for stage, seconds in self.seconds.items()))
        if failures := self.failures:
            jobs = ", ".join(f"{failure.stage} of {failure.job!r}" for failure in failures)
            count = "1 job failed and was" if len(failures) == 1 else f"{len(failures)} jobs failed and were"
            given = str(click.get_current_context().meta[COMMAND_LINE])
            again = " ".join([given, *(option for option in options if option not in given.split())])
            say(f"{count} skipped: {jobs}. Try again with: {again}")
