"""Progress of a long command on stderr; at the end the time of each stage and what failed."""

from __future__ import annotations

import time

import manymetrics as mm
from manymetrics.cli.main import command_line
from manymetrics.cli.output import as_time, say


class Stages:
    """Receives progress events, shows them, and sums up the times of the stages."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._display = mm.ProgressDisplay("nothing" if quiet else None)
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
        self.failures += progress.failures[self._reported :]
        self._reported = len(progress.failures)
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
        if not self._quiet:
            say(", ".join(f"{stage} {as_time(seconds)}" for stage, seconds in self.seconds.items()))
        if self.failures:
            jobs = ", ".join(f"{failure.stage} of {failure.job!r}" for failure in self.failures)
            count = "1 job failed and was" if len(self.failures) == 1 else f"{len(self.failures)} jobs failed and were"
            say(f"{count} skipped: {jobs}. Try again with: {command_line(*options)}")
