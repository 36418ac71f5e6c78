"""Progress of a long command on stderr, as bars, lines or JSON; at the end the time of each stage and what failed.

With JSON, each event is a line with event (stage or failed), stage, done, total, `kept` (jobs of an earlier run),
failed, seconds, left (seconds) and running (names of jobs). A failed job has event, stage, job (its name) and error.
"""

from __future__ import annotations

import json
import time

import click

import manymetrics as mm
from manymetrics.cli.main import command_line
from manymetrics.cli.output import as_time, say


class Stages:
    """Receives progress events, shows them, and sums up the times of the stages."""

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self._quiet, self._as_json = quiet, as_json
        self._display = mm.ProgressDisplay("nothing" if quiet or as_json else None)
        self.failures: list[mm.Failure] = []
        self._reported = 0  # failures of the current stage in `failures`
        self._started = time.monotonic()
        self._times: list[tuple[str, float]] = []  # a stage may run more than once

    def __enter__(self) -> Stages:
        self._display.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._display.__exit__(*error)

    def __call__(self, progress: mm.Progress) -> None:
        """Show one event."""
        if progress.seconds == 0:  # a stage begins
            self._times.append((progress.stage, 0.0))
            self._reported = 0
        self._times[-1] = (progress.stage, progress.seconds)
        failures = list(progress.failures[self._reported :])
        self.failures += failures
        self._reported = len(progress.failures)
        if self._as_json:
            _write_events(progress, failures)
        self._display(progress)

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds of each stage, and the total."""
        seconds: dict[str, float] = {}
        for stage, spent in self._times:
            seconds[stage] = round(seconds.get(stage, 0.0) + spent, 3)
        return {**seconds, "total": round(time.monotonic() - self._started, 3)}

    def sum_up(self, *options: str) -> None:
        """Print the times and what failed; the same command with these options tries again."""
        if not self._quiet and not self._as_json:
            say(", ".join(f"{stage} {as_time(seconds)}" for stage, seconds in self.seconds.items()))
        if self.failures:
            jobs = ", ".join(f"{failure.stage} of {failure.job!r}" for failure in self.failures)
            count = "1 job failed and was" if len(self.failures) == 1 else f"{len(self.failures)} jobs failed and were"
            say(f"{count} skipped: {jobs}. Try again with: {command_line(*options)}")


def _write_events(progress: mm.Progress, failures: list[mm.Failure]) -> None:
    left = progress.seconds_left
    stage = {
        "event": "stage",
        **{name: getattr(progress, name) for name in ("stage", "done", "total", "kept")},
        "failed": len(progress.failures),
        "seconds": round(progress.seconds, 3),
        "left": None if left is None else round(left, 3),
        "running": progress.running,
    }
    failed = [{"event": "failed", **{name: getattr(failure, name) for name in ("stage", "job", "error")}}
              for failure in failures]  # fmt: skip
    for event in (*failed, stage):
        click.echo(json.dumps(event), err=True)
