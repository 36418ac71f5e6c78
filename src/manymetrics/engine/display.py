"""Progress events -> bars on a terminal, else a line now and then; always on stderr, and a sign of life in between.

A unit may take minutes. While nothing is reported, a thread shows which units are worked on and for how long.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from manymetrics.engine.stages import Progress
from manymetrics.errors import InputError

LINES, NOTHING = "lines", "nothing"
BETWEEN_LINES = 5.0  # seconds
SILENCE = 30.0  # seconds without a line, after which one says what is worked on
REFRESH = 1.0  # seconds between two looks at whether something is to be shown
MOST_NAMED = 3  # units that are named as worked on


class ProgressDisplay:
    """Shows progress events as they come; give it to whoever takes a `report`, inside of `with`.

    how : `lines` or `nothing`; without it, bars where stderr is a terminal that can draw them, else lines.
    """

    def __init__(self, how: str | None = None) -> None:
        if how not in (None, LINES, NOTHING):
            raise InputError(f"Found how={how!r}. Choose {LINES!r}, {NOTHING!r} or None.")
        self._how = how
        self._bars: Any = None
        self._bar: Any = None
        self._last_line = self._last_event = 0.0
        self._latest: Progress | None = None
        self._since: dict[str, float] = {}  # units that are worked on, and when that was first heard
        self._ended, self._watch = threading.Event(), threading.Thread(target=self._keep_showing, daemon=True)
        self._alone = threading.Lock()

    def __enter__(self) -> "ProgressDisplay":
        if self._how is None:
            self._bars = _bars_if_terminal()
        if self._bars is not None:
            self._bars.start()
        self._last_line = time.monotonic()
        if self._how != NOTHING:
            self._watch.start()
        return self

    def __exit__(self, *why: object) -> None:
        self._ended.set()
        if self._watch.is_alive():
            self._watch.join()
        if self._bars is not None:
            self._end_bar()
            self._bars.stop()

    def __call__(self, progress: Progress) -> None:
        """Show one event."""
        with self._alone:
            now = time.monotonic()
            begins = progress.seconds == 0
            if begins:
                self._end_bar()
            self._last_event, before = now, {} if begins else self._since
            self._latest, self._since = progress, {name: before.get(name, now) for name in progress.running}
            if self._bars is not None:
                if begins:
                    self._bar = self._bars.add_task(progress.stage, total=progress.total, told="")
                self._bars.update(self._bar, completed=progress.done, told=_speed(progress))
            elif self._how != NOTHING:
                self._last_line = now if begins else self._last_line
                if not progress.left or now - self._last_line >= BETWEEN_LINES:
                    self._write_line(progress, _speed(progress))

    def show_running(self) -> None:
        """Show what is worked on, where nothing was shown for a while."""
        with self._alone:
            progress = self._latest
            if progress is None or not (running := self._running(progress)):
                return
            if self._bars is not None:
                told = ", ".join(part for part in (_speed(progress), running) if part)
                self._bars.update(self._bar, told=told)
            elif self._how != NOTHING and time.monotonic() - self._last_line >= SILENCE:
                self._write_line(progress, running)

    def refresh(self) -> None:
        """Draw the bars anew, if there are any."""
        if self._bars is not None:
            self._bars.refresh()

    def _end_bar(self) -> None:
        """Leave a bar with how long its stage took, not with what followed."""
        if self._bars is not None and self._latest is not None:
            self._bars.update(self._bar, told=_speed(self._latest))

    def _running(self, progress: Progress) -> str:
        now = time.monotonic()
        if not progress.left:  # between two stages, or after the last
            return f"working on what follows for {clock_time(now - self._last_event)}"
        some = [f"{name!r} for {clock_time(now - since)}" for name, since in self._since.items()]
        more = f" and {len(some) - MOST_NAMED} more" if len(some) > MOST_NAMED else ""
        return f"working on {', '.join(some[:MOST_NAMED])}{more}" if some else ""

    def _write_line(self, progress: Progress, told: str) -> None:
        self._last_line = time.monotonic()
        kept = f"{progress.kept} were there already" if progress.kept else ""
        parts = (f"{progress.stage} {progress.done}/{progress.total}", kept, told)
        sys.stderr.write(", ".join(part for part in parts if part) + "\n")
        sys.stderr.flush()

    def _keep_showing(self) -> None:
        while not self._ended.wait(REFRESH):
            self.show_running()


@contextlib.contextmanager
def shown(report: Callable[[Progress], None] | None) -> Iterator[Callable[[Progress], None]]:
    """The `report` that was given; without one, a display where somebody looks at stderr."""
    if report is not None:
        yield report
    elif sys.stderr is not None and (sys.stderr.isatty() or in_notebook()):
        with ProgressDisplay(LINES if in_notebook() else None) as display:
            yield display
    else:
        yield lambda progress: None


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def clock_time(seconds: float) -> str:
    """Seconds as a clock shows them: 1:05, 2:00:00."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"


def _speed(progress: Progress) -> str:
    rate, left = progress.rate, progress.seconds_left
    if rate is None or left is None:
        return ""
    pace = f"{rate:.1f} a second" if rate >= 1 else f"{1 / rate:.1f} s each"
    failed = f", {len(progress.failures)} failed" if progress.failures else ""
    return f"{pace}, {f'{clock_time(left)} left' if left else clock_time(progress.seconds)}{failed}"


def _bars_if_terminal() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True, markup=False, highlight=False)
    if not console.is_terminal or console.is_dumb_terminal:
        return None
    name, told = (TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[told]}"))
    return Progress(name, BarColumn(), MofNCompleteColumn(), told, console=console)
