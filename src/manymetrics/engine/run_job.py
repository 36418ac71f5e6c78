"""Run one job: on one thread, within its limits, with its error as one sentence.

A job is a pure function of its content and of the data that all jobs share. Its random numbers are made from its
content and it runs on one thread, so its bits do not depend on the number of workers or on which of them runs it.
"""

import contextlib
import json
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load
from threadpoolctl import threadpool_limits

from manymetrics.encode.encoder import MAX_VALUE
from manymetrics.errors import EnvironmentProblem, ManyMetricsError
from manymetrics.values import Job

Do = Callable[[Job, Any], bytes]
GetReady = Callable[[], None] | None


@dataclass(frozen=True)
class Limits:
    """What a job may use before it is stopped; None is no limit."""

    seconds: float | None = None  # wall-clock time
    memory: int | None = None  # bytes in addition to what its worker uses before the job starts


@dataclass(frozen=True)
class JobFailed:
    """The outcome of a job without a result."""

    error: str
    everywhere: bool = False  # the machine lacks something, so that other jobs would fail too


Outcome = bytes | JobFailed
NO_LIMITS = Limits()
NO_MEMORY = ("can't allocate memory", "bad_alloc")  # in a `RuntimeError` of torch


def run_job(do: Do, job: Job, shared: Any, limits: Limits = NO_LIMITS, get_ready: GetReady = None) -> Outcome:
    """The result of a job, or its error.

    The operating system enforces the limits: it ends this process after the time and refuses it more memory. So they
    are for worker processes only. What `get_ready` loads does not count.
    """
    try:
        if get_ready and limits != NO_LIMITS:
            get_ready()
        limited = contextlib.nullcontext() if limits == NO_LIMITS else _within(limits)
        with threadpool_limits(1), contextlib.redirect_stdout(sys.stderr), limited:
            payload = do(job, shared)
        unusable = find_unusable(job, payload)
        return payload if unusable is None else JobFailed(f"its result holds numbers that are not finite: {unusable!r}")
    except EnvironmentProblem as problem:
        return JobFailed(str(problem), everywhere=True)
    except Exception as problem:  # any error of a job leaves the others unaffected
        refused = isinstance(problem, RuntimeError) and any(message in str(problem) for message in NO_MEMORY)
        if not refused and not isinstance(problem, MemoryError):
            return JobFailed(describe(problem))
        if limits.memory is None:
            return JobFailed("it needs more memory than there is")
        return JobFailed(f"it needs more than the {limits.memory / 2**20:,.0f} MiB that a job may take")


def find_unusable(job: Job, payload: bytes) -> str | None:
    """The name of a tensor or part with numbers that are not finite or too large for the next stage, if any."""
    if job.parts:
        return next((name for name, value in json.loads(payload).items() if not is_usable(value)), None)
    try:
        tensors = load(payload)
    except Exception:  # another format; its reader checks it
        return None
    largest = {
        name: float(np.abs(tensor).max(initial=0)) for name, tensor in tensors.items() if tensor.dtype.kind == "f"
    }
    return next((name for name, value in largest.items() if not value <= MAX_VALUE), None)


def is_usable(value: Any) -> bool:
    """Whether the value of a part can be used; None is a missing value."""
    return value is None or (isinstance(value, int | float) and -MAX_VALUE <= value <= MAX_VALUE)


def describe(problem: BaseException) -> str:
    """An error in one sentence; with its type and line if it is none of this package."""
    if isinstance(problem, ManyMetricsError):
        return str(problem)
    frames = traceback.extract_tb(problem.__traceback__)
    line = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(problem).__name__}: {problem}{line}"


@contextlib.contextmanager
def _within(limits: Limits) -> Iterator[None]:
    import resource
    import signal

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        if limits.memory is not None:
            allowed = _data_bytes() + limits.memory
            resource.setrlimit(resource.RLIMIT_DATA, (allowed if hard < 0 else min(allowed, hard), hard))
        if limits.seconds is not None:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, limits.seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data_bytes() -> int:
    """The writable memory of this process, as the system counts it for its limit."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("VmData:"))
    return 0
