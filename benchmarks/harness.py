"""Two callables -> a row of the page: ours and the peer in turn, the median ratio and its spread.

Absolute times of a shared machine say little, ratios of neighbouring runs say much: a race alternates the two sides and
takes the ratio round by round. Times are processor seconds, which other processes disturb least.
"""

import gc
import importlib
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Task = Callable[[], Any]

NOT_INSTALLED = "peer not installed"
NOT_RUN = "not run"


@dataclass(frozen=True)
class Options:
    """How much of everything to do."""

    rounds: int = 5
    quick: bool = False  # sizes that take a second or two: to see that a benchmark runs, not to learn from
    peers: bool = True
    seed: int = 0

    def size(self, whole: int, quick: int) -> int:
        """The one or the other size."""
        return quick if self.quick else whole


@dataclass(frozen=True)
class Ratio:
    """How often ours fits into the peer's time: the median over rounds, the smallest and the largest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, ours: Sequence[float], peer: Sequence[float]) -> "Ratio":
        """From the seconds of both sides, round by round."""
        ratios = [theirs / mine for mine, theirs in zip(ours, peer, strict=True)]
        return cls(statistics.median(ratios), min(ratios), max(ratios))


@dataclass(frozen=True)
class Target:
    """What the row must reach."""

    bound: float
    job: str  # what the number counts, such as "×"
    at_least: bool = True

    def met(self, value: float) -> bool:
        """Whether the value is on the right side of the bound."""
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:,g} {self.job}".strip()


@dataclass(frozen=True)
class Row:
    """One line of the page."""

    what: str
    ours: str
    peer: str = ""
    ratio: Ratio | None = None
    target: Target | None = None
    value: float | None = None  # what the target is held against; the median ratio where nothing is said
    sound: bool = True  # whether the results agree with the peer's as far as they should
    note: str = ""

    @property
    def verdict(self) -> str:
        """Met, MISSED, or why nothing can be said."""
        if self.peer == NOT_INSTALLED or self.ours == NOT_RUN:
            return "not measured"
        measured = self.value if self.value is not None else self.ratio.median if self.ratio else None
        if self.target is None:
            return "" if self.sound else "MISSED"
        if measured is None:
            return "not measured"
        return "met" if self.sound and self.target.met(measured) else "MISSED"


def timed(task: Task) -> tuple[float, Any]:
    """The seconds a task takes, the garbage collector held back, and what it gives."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        result = task()
        return time.process_time() - start, result
    finally:
        gc.enable()


def repeat(task: Task, rounds: int) -> tuple[float, ...]:
    """The seconds of each of several rounds, after one that is not counted."""
    task()
    return tuple(timed(task)[0] for _ in range(rounds))


def settle(threads: int = 1) -> None:
    """Hold every numerical library to so many threads."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)
    if torch := sys.modules.get("torch"):  # loading it for this would cost memory that is not ours
        torch.set_num_threads(threads)


def installed(module: str) -> Any | None:
    """A peer's module, or nothing where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def race(what: str, ours: Task, peer: Task | None, options: Options, *, needs: str | None = None,
         target: Target | None = None, warm_up: bool = True, write: Callable[[Sequence[float]], str] | None = None,
         judge: Callable[[Any, Any], tuple[bool, str]] = lambda ours, peer: (True, "")) -> Row:  # fmt: skip
    """Ours and a peer in turn, or ours alone where the peer, or the module that it needs, is not there.

    The first call of each side, which compiles and loads, is not counted. `judge` gets both results and says whether
    ours is as good as it should be, and the note; `write` writes times.
    """
    write = write or seconds
    if peer is None or not options.peers or (needs is not None and installed(needs) is None):
        return Row(what, write(repeat(ours, options.rounds)), NOT_INSTALLED, target=target)
    for side in (ours, peer) if warm_up else ():
        side()
    runs = [(timed(ours), timed(peer)) for _ in range(options.rounds)]
    times, peer_times = ([run[side][0] for run in runs] for side in (0, 1))
    sound, note = judge(*(result for _, result in runs[-1]))
    return Row(what, write(times), write(peer_times), Ratio.of(times, peer_times), target, sound=sound, note=note)


def seconds(times: Sequence[float] | float) -> str:
    """A time, or the median of several and their spread, in a unit that suits."""
    if isinstance(times, int | float):
        return _spell(times)
    middle = _spell(statistics.median(times))
    return middle if len(times) == 1 else f"{middle} [{_spell(min(times))}, {_spell(max(times))}]"


def _spell(time_: float) -> str:
    for job, size, up_to in (("µs", 1e-6, 1e-3), ("ms", 1e-3, 1.0), ("s", 1.0, 600.0)):
        if time_ < up_to:
            return f"{time_ / size:.3g} {job}"
    return f"{time_ / 60:.3g} min"


def rate(count: float, times: Sequence[float]) -> str:
    """So many things in these times, as things a second."""
    return f"{count / statistics.median(times):,.0f}/s"


@dataclass(frozen=True)
class Usage:
    """What a piece of work took in a process of its own."""

    seconds: float  # of the processor, all threads
    before: float  # MiB, the largest the process was before the work
    peak: float  # MiB, the largest it was at the end
    result: Any


def in_fresh_process(run_jobs: Callable[..., Any], *arguments: Any) -> Usage:
    """Do the work in a new process and say how much memory that process held at most.

    `run_jobs` gets the arguments and gives back a callable: what is made before the clock starts is not counted.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_observe, run_jobs, arguments).result()


def _observe(run_jobs: Callable[..., Any], arguments: tuple[Any, ...]) -> Usage:
    settle()
    task = run_jobs(*arguments)
    before = peak_memory()
    spent, result = timed(task)
    return Usage(spent, before, peak_memory(), result)


def peak_memory() -> float:
    """The most memory this process has held so far, in MiB.

    Linux hands `ru_maxrss` down to children, who then seem as large as their parent was; its own count does not.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        lines = status.read_text(encoding="utf-8").splitlines()
        return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
