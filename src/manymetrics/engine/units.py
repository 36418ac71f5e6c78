"""One unit, wherever it runs: on one thread, within its limits, its error turned into a sentence.

A unit is a pure function of what is in it and of the bank all units share. With randomness made from the unit itself
and one thread, its bits do not depend on how many workers there are or which of them did what.
"""

import contextlib
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.numpy import load
from threadpoolctl import threadpool_limits

from manymetrics.encode.encoder import LARGEST
from manymetrics.errors import EnvironmentProblem, ManyMetricsError
from manymetrics.values import Unit

Do = Callable[[Unit, Any], bytes]


@dataclass(frozen=True)
class Limits:
    """What a unit may take before it is stopped; None is no limit."""

    seconds: float | None = None  # by the clock on the wall
    memory: int | None = None  # bytes beyond what its worker holds before it begins


@dataclass(frozen=True)
class Broken:
    """A unit without a result."""

    error: str
    everywhere: bool = False  # other units would fail alike: something is missing on the machine


Outcome = bytes | Broken
NO_LIMITS = Limits()


def need_nothing() -> None:
    """Get ready for units that need nothing but themselves."""


def do_unit(
    do: Do, unit: Unit, shared: Any, limits: Limits = NO_LIMITS, get_ready: Callable[[], None] = need_nothing
) -> Outcome:
    """The result of a unit, or why there is none.

    Limits are kept by the system: it ends this process when the time is over, and refuses it more memory. So they are
    for worker processes only. What it takes to `get_ready` does not count against them.
    """
    try:
        if limits != NO_LIMITS:
            get_ready()
        with threadpool_limits(1), contextlib.redirect_stdout(sys.stderr), _within(limits):
            return do(unit, shared)
    except EnvironmentProblem as problem:
        return Broken(str(problem), everywhere=True)
    except Exception as problem:  # whatever a unit does, the others go on
        return Broken(_over_memory(limits.memory) if _lacks_memory(problem) else describe(problem))


def holds_usable_numbers(payload: bytes) -> bool:
    """Whether a kept result can be gone on with, if it is tensors: not where some number is not finite, or huge."""
    try:
        tensors = load(payload)
    except Exception:  # it is something else; whoever reads it will tell
        return True
    floats = [one for one in tensors.values() if one.dtype.kind == "f"]
    return all(float(one.min(initial=0)) >= -LARGEST and float(one.max(initial=0)) <= LARGEST for one in floats)


def describe(problem: BaseException) -> str:
    """An error in one sentence; of one that nobody foresaw, also its kind and its place."""
    if isinstance(problem, ManyMetricsError):
        return str(problem)
    frames = traceback.extract_tb(problem.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(problem).__name__}: {problem}{place}"


def _lacks_memory(problem: Exception) -> bool:
    """Whether memory was refused; torch and the libraries below it have no error of their own for that."""
    refused = ("can't allocate memory", "bad_alloc")
    return isinstance(problem, MemoryError) or (
        isinstance(problem, RuntimeError) and any(words in str(problem) for words in refused)
    )


def _over_memory(memory: int | None) -> str:
    if memory is None:
        return "it needs more memory than there is"
    return f"it needs more than the {memory / 2**20:,.0f} MiB that a unit may take"


@contextlib.contextmanager
def _within(limits: Limits) -> Iterator[None]:
    if limits == NO_LIMITS:
        yield
        return
    import resource
    import signal

    before = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        if limits.memory is not None:
            most = _held() + limits.memory
            hard = before[1]
            resource.setrlimit(
                resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
            )
        if limits.seconds is not None:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, limits.seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _held() -> int:
    """The bytes of memory this process may write to, as the system counts them for its limit."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("VmData:"))
    return 0
