"""Progress of a stage: the event, what reports it, and its display as bars on a terminal or lines on stderr.

Jobs differ in size: a task of long texts takes many times as long as one of short texts. If sizes are known, the time
left is estimated from the share of the work that is done, not from the number of jobs. A job may take minutes; while
nothing is reported, a thread shows which jobs are running and for how long.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

from manymetrics.store.runs import Failure

BETWEEN_LINES = 5.0  # seconds
SILENCE = 10.0  # seconds without a line until the running jobs are shown
REFRESH = 1.0  # seconds
BEFORE = "getting ready"  # before the first stage
MAX_NAMED = 3  # running jobs that are named

Item = TypeVar("Item")


@dataclass(frozen=True)
class Progress:
    """The progress of a stage."""

    stage: str
    done: int
    total: int
    seconds: float  # 0: the stage begins
    kept: int = 0  # jobs whose result was stored before
    failures: tuple[Failure, ...] = ()  # jobs of this stage without a result
    running: tuple[str, ...] = ()  # jobs that run until the next report; unknown on a Ray cluster
    share: float | None = None  # of the work that is done, without stored results; None: all jobs have the same size

    @property
    def left(self) -> int:
        """Jobs that have neither a result nor failed."""
        return self.total - self.done - len(self.failures)

    @property
    def rate(self) -> float | None:
        """Jobs per second, without stored results; None before the first has ended."""
        tried = self.done - self.kept + len(self.failures)
        return tried / self.seconds if tried and self.seconds else None

    @property
    def seconds_left(self) -> float | None:
        """The estimated time until the stage ends; None before the first job has ended."""
        if self.rate is None:
            return None
        return self.seconds * (1 / self.share - 1) if self.share else self.left / self.rate

    def describe(self, waited: float = 0.0) -> str:
        """The speed and the time left, so many seconds after the report; empty before the first job has ended."""
        if self.rate is None or self.seconds_left is None:
            return ""
        pace = f"{self.rate:.1f} a second" if self.rate >= 1 else f"{1 / self.rate:.1f} s each"
        left = max(self.seconds_left - waited, 0)
        clock = f"{clock_time(left)} left" if self.left else clock_time(self.seconds)
        return f"{pace}, {clock}" + (f", {len(self.failures)} failed" if self.failures else "")


class Tracker:
    """Reports the progress of a stage. Jobs start in their order, so the first that have not ended are running."""

    def __init__(self, stage: str, jobs: Mapping[Any, tuple[str, float]], report: Callable[[Progress], None], *,
                 stored: int = 0, workers: int = 1) -> None:  # fmt: skip
        """`jobs` are the names and sizes of those that are run, by key; the results of `stored` others exist."""
        self._waiting, self._report, self._workers = dict(jobs), report, workers
        self._size, self._finished = sum(size for _, size in jobs.values()), 0.0
        self._started = time.monotonic()
        self.latest = Progress(stage, stored, stored + len(jobs), 0.0, stored)
        self._send()

    def end(self, key: Hashable, *failure: Failure) -> None:
        """Report that a job has ended, perhaps with a failure."""
        self._finished += self._waiting.pop(key)[1]
        seconds = max(time.monotonic() - self._started, 1e-9)
        failures = (*self.latest.failures, *failure)
        self._send(done=self.latest.done + (not failure), seconds=seconds, failures=failures)

    def _send(self, **changes: Any) -> None:
        running = tuple(name for name, _ in islice(self._waiting.values(), self._workers))
        share = self._finished / self._size if self._size else None
        self.latest = replace(self.latest, running=running, share=share, **changes)
        self._report(self.latest)


def each_with_progress(stage: str, items: Sequence[Item], report: Callable[[Progress], None], *,
                       name: Callable[[Item], str] = str,
                       size: Callable[[Item], float] = lambda item: 1.0) -> Iterator[Item]:  # fmt: skip
    """The items of a loop, each reported as running until the next is requested."""
    if items:
        tracker = Tracker(stage, {i: (name(item), max(size(item), 1.0)) for i, item in enumerate(items)}, report)
        for index, item in enumerate(items):
            yield item
            tracker.end(index)


class ProgressDisplay:
    """Shows progress events; pass it as `report`, inside of `with`.

    If stderr is a terminal that can draw bars, it draws them, else it writes lines; with `lines` always lines.
    """

    def __init__(self, *, lines: bool = False) -> None:
        self._bars = None if lines else _bars_if_terminal()
        self._bar: Any = None
        self._last_line = self._last_event = 0.0
        self._latest: Progress | None = None
        self._started: dict[str, float] = {}  # running jobs, and when they were first reported
        self._closed, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "ProgressDisplay":
        self._last_line = self._last_event = time.monotonic()
        if self._bars:
            self._bar = self._bars.add_task(BEFORE, total=None, status="")
            self._bars.start()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closed.set()
        self._thread.join()
        if self._bars:
            self._draw(self._latest.describe() if self._latest else "")
            self._bars.stop()

    def __call__(self, progress: Progress) -> None:
        """Show one event."""
        with self._lock:
            now, begins = time.monotonic(), progress.seconds == 0
            if begins and self._latest and self._bars:
                self._draw(self._latest.describe())
                self._bar = self._bars.add_task(progress.stage, total=None, status="")
            before = {} if begins else self._started
            self._started = {name: before.get(name, now) for name in progress.running}
            self._latest, self._last_event = progress, now
            self._last_line = now if begins else self._last_line
            if self._bars or not progress.left or now - self._last_line >= BETWEEN_LINES:
                self._draw(progress.describe())

    def show_running(self) -> None:
        """Show the running jobs if nothing was shown for a while."""
        with self._lock:
            now = time.monotonic()
            status = self._status(now)
            if self._bars or (status and now - self._last_line >= SILENCE):
                self._draw(status)

    def _status(self, now: float) -> str:
        """Speed, time left and running jobs."""
        waited = now - self._last_event
        if self._latest is None:
            return f"for {clock_time(waited)}"
        jobs = [f"{name!r} for {clock_time(now - started)}" for name, started in self._started.items()]
        if not self._latest.left:  # between two stages, or after the last
            jobs = [f"what follows for {clock_time(waited)}"]
        more = f" and {len(jobs) - MAX_NAMED} more" if len(jobs) > MAX_NAMED else ""
        running = f"working on {', '.join(jobs[:MAX_NAMED])}{more}" if jobs else ""
        return ", ".join(filter(None, (self._latest.describe(waited), running)))

    def _draw(self, status: str) -> None:
        """Show a status beside the latest counts, in the bar or as a line."""
        self._last_line, latest = time.monotonic(), self._latest
        if self._bars and latest:
            self._bars.update(self._bar, description=latest.stage, total=latest.total, completed=latest.done,
                              status=status)  # fmt: skip
        elif self._bars:
            self._bars.update(self._bar, status=status)
        else:
            stored = f"{latest.kept} were there already" if latest and latest.kept else ""
            counts = f"{latest.stage} {latest.done}/{latest.total}" if latest else BEFORE
            sys.stderr.write(", ".join(filter(None, (counts, stored, status))) + "\n")
            sys.stderr.flush()

    def _watch(self) -> None:
        while not self._closed.wait(REFRESH):
            self.show_running()


@contextlib.contextmanager
def shown(report: Callable[[Progress], None] | None) -> Iterator[Callable[[Progress], None]]:
    """The given `report`; by default a display if stderr is a terminal or this is a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    in_notebook = type(shell).__name__ == "ZMQInteractiveShell"
    if report is not None:
        yield report
    elif sys.stderr is not None and (sys.stderr.isatty() or in_notebook):
        with ProgressDisplay(lines=in_notebook) as display:
            yield display
    else:
        yield lambda progress: None


def clock_time(seconds: float) -> str:
    """Seconds in the format of a clock: 1:05, 2:00:00."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"


def _bars_if_terminal() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True, markup=False, highlight=False)
    if not console.is_terminal or console.is_dumb_terminal:
        return None
    name, status = (TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[status]}"))
    return Progress(name, BarColumn(), MofNCompleteColumn(), status, console=console)
