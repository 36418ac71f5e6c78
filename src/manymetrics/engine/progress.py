"""Progress of a stage: the event, what reports it, and its display as bars on a terminal or lines on stderr.

If the sizes of jobs are known, the time left is estimated from the share of the work that is done, not from the number
of jobs. A job may take minutes; while nothing is reported, a thread writes which jobs are running.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from manymetrics.errors import InputError
from manymetrics.store.runs import Failure

LINES, NOTHING = "lines", "nothing"
BETWEEN_LINES = 5.0  # seconds
SILENCE = 10.0  # seconds without a line until the running jobs are shown
REFRESH = 1.0  # seconds
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


class Tracker:
    """Reports the progress of a stage. Jobs start in their order, so the first that have not ended are running."""

    def __init__(self, stage: str, jobs: Sequence[tuple[str, float]], report: Callable[[Progress], None], *,
                 stored: int = 0, workers: int = 1) -> None:  # fmt: skip
        """`jobs` are the names and sizes of those that are run; the results of `stored` others exist."""
        self._stage, self._report, self._stored, self._workers = stage, report, stored, workers
        self._waiting = dict(enumerate(jobs))
        self._total, self._size, self._finished = stored + len(jobs), sum(size for _, size in jobs), 0.0
        self.done, self.failures = stored, tuple[Failure, ...]()
        self._started = time.monotonic()
        self._send(0.0)

    @property
    def seconds(self) -> float:
        """The time since the stage began."""
        return max(time.monotonic() - self._started, 1e-9)

    def end(self, index: int, failure: Failure | None = None) -> None:
        """Report that a job has ended."""
        self._finished += self._waiting.pop(index)[1]
        if failure is None:
            self.done += 1
        else:
            self.failures += (failure,)
        self._send(self.seconds)

    def _send(self, seconds: float) -> None:
        running = tuple(name for name, _ in islice(self._waiting.values(), self._workers))
        share = self._finished / self._size if self._size else None
        done = self.done, self._total, seconds, self._stored
        self._report(Progress(self._stage, *done, self.failures, running, share))


def each_with_progress(stage: str, items: Sequence[Item], report: Callable[[Progress], None], *,
                       name: Callable[[Item], str] = str,
                       size: Callable[[Item], float] = lambda item: 1.0) -> Iterator[Item]:  # fmt: skip
    """The items of a loop, each reported as running until the next is requested."""
    if items:
        tracker = Tracker(stage, [(name(item), max(size(item), 1.0)) for item in items], report)
        for index, item in enumerate(items):
            yield item
            tracker.end(index)


class ProgressDisplay:
    """Shows progress events; pass it as `report`, inside of `with`.

    how : `lines` or `nothing`; by default bars if stderr is a terminal that can draw them, else lines.
    """

    def __init__(self, how: str | None = None) -> None:
        if how not in (None, LINES, NOTHING):
            raise InputError(f"Found how={how!r}. Choose {LINES!r}, {NOTHING!r} or None.")
        self._how = how
        self._bars: Any = None  # of rich
        self._bar: Any = None
        self._latest: Progress | None = None
        self._last_line = 0.0
        self._closed, self._lock = threading.Event(), threading.Lock()

    def __enter__(self) -> "ProgressDisplay":
        if self._how is None and (bars := _bars_if_terminal()):
            self._bars = bars
            self._bars.start()
        elif self._how != NOTHING:
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closed.set()
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, progress: Progress) -> None:
        """Show one event."""
        begins, now = progress.seconds == 0, time.monotonic()
        with self._lock:
            self._latest = progress
            if self._bars is not None:
                if begins:
                    self._bar = self._bars.add_task(progress.stage, total=progress.total, status="")
                status = ", ".join(filter(None, (_speed(progress), _running(progress))))
                self._bars.update(self._bar, completed=progress.done, status=status)
            elif self._how != NOTHING:
                self._last_line = now if begins else self._last_line
                if not progress.left or now - self._last_line >= BETWEEN_LINES:
                    self._write_line(progress, _speed(progress))

    def show_running(self) -> None:
        """Write which jobs are running if no line was written for a while."""
        with self._lock:
            if self._latest and self._latest.left and time.monotonic() - self._last_line >= SILENCE:
                self._write_line(self._latest, _running(self._latest))

    def _write_line(self, progress: Progress, status: str) -> None:
        self._last_line = time.monotonic()
        stored = f"{progress.kept} were there already" if progress.kept else ""
        counts = f"{progress.stage} {progress.done}/{progress.total}"
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
        with ProgressDisplay(LINES if in_notebook else None) as display:
            yield display
    else:
        yield lambda progress: None


def clock_time(seconds: float) -> str:
    """Seconds in the format of a clock: 1:05, 2:00:00."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"


def _speed(progress: Progress) -> str:
    rate, left = progress.rate, progress.seconds_left
    if rate is None or left is None:
        return ""
    pace = f"{rate:.1f} a second" if rate >= 1 else f"{1 / rate:.1f} s each"
    failed = f", {len(progress.failures)} failed" if progress.failures else ""
    clock = f"{clock_time(left)} left" if progress.left else clock_time(progress.seconds)
    return f"{pace}, {clock}{failed}"


def _running(progress: Progress) -> str:
    more = f" and {len(progress.running) - MAX_NAMED} more" if len(progress.running) > MAX_NAMED else ""
    named = ", ".join(map(repr, progress.running[:MAX_NAMED]))
    return f"working on {named}{more}" if named else ""


def _bars_if_terminal() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, markup=False, highlight=False)
    if not console.is_terminal or console.is_dumb_terminal:
        return None
    name, status = (TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[status]}"))
    return Progress(name, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), status, console=console)
