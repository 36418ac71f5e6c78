"""Run the jobs of a stage -> their results by name.

A job whose result is in the run is not run again. A result is written to the run before it is reported. A job that
fails is named and skipped.
"""

import json
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from manymetrics.engine.code import code_fingerprint
from manymetrics.engine.pool import PoolExecutor, SerialExecutor
from manymetrics.engine.progress import Progress, Tracker, each_with_progress
from manymetrics.engine.run_job import (
    NO_LIMITS,
    Do,
    JobFailed,
    Limits,
    Outcome,
    describe,
    find_unusable,
    is_usable,
    need_nothing,
)
from manymetrics.errors import DataError, EnvironmentProblem, JobSkipped, ManyMetricsError, ModelError, StageFailed
from manymetrics.store.runs import Failure, Run
from manymetrics.values import Job

LOG = logging.getLogger("manymetrics")
LOG.addHandler(logging.NullHandler())
Item = TypeVar("Item")


class Executor(Protocol):
    """Runs jobs: in this process, in worker processes or on a cluster."""

    def __call__(self, do: Do, jobs: Sequence[Job]) -> Iterator[tuple[Job, Outcome]]:
        """Each job with its outcome."""

    def close(self, *, at_once: bool) -> None:
        """Free its resources; with `at_once`, without waiting for running jobs."""


class Engine:
    """Runs the jobs of stages in this process, in worker processes or on a Ray cluster, and stores their results.

    If jobs have limits, a worker calls `get_ready` first: the limits do not count what it loads there.
    """

    def __init__(self, shared: Any, *, workers: int = 1, ray: str | None = None, limits: Limits = NO_LIMITS,
                 get_ready: Callable[[], None] = need_nothing, run: Run | None = None,
                 report: Callable[[Progress], None] = lambda progress: None) -> None:  # fmt: skip
        self._shared, self._workers, self._ray, self._limits = shared, workers, ray, limits
        self._get_ready, self._run, self._report = get_ready, run, report
        self._executor: Executor | None = None

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if self._executor is not None:
            self._executor.close(at_once=problem is not None)
        is_named = isinstance(problem, ManyMetricsError) and not isinstance(problem, DataError)  # what a file holds
        if isinstance(problem, Exception) and not is_named and self._run and self._run.differs_from_manifest():
            raise ModelError(
                f"The results stored in {self._run.folder} cannot be used: {describe(problem)}. "
                "Give another folder for the run."
            ) from problem

    def __call__(self, stage: str, do: Do, jobs: Sequence[Job]) -> dict[str, bytes]:
        """Run every job whose result is not in the run; results by the jobs' names, in their order.

        A job that fails has no result, and a warning `JobSkipped` names its error. If all fail, the stage fails.
        """
        keys = {job.name: Run.key(stage, job, code_fingerprint(do)) for job in jobs} if self._run else {}
        results, todo = self._look_up(stage, keys, jobs)
        stored = len(jobs) - len(todo)
        LOG.info("%s: %d jobs, %d of them there already", stage, len(jobs), stored)
        workers = 0 if self._ray is not None else self._workers
        tracker = Tracker(stage, [(job.name, job.size) for job in todo], self._report, stored=stored, workers=workers)
        index = {job.name: number for number, job in enumerate(todo)}
        for job, outcome in self._execute(do, todo):
            failure = None
            if isinstance(outcome, JobFailed):
                if outcome.everywhere:
                    raise EnvironmentProblem(outcome.error)
                failure = Failure(stage, job.name, outcome.error)
            else:
                if self._run:
                    self._run.put(stage, keys[job.name], job, outcome)
                results[job.name] = _merge_parts(results.get(job.name), outcome) if job.parts else outcome
            tracker.end(index[job.name], failure)
        LOG.info("%s: %d of %d jobs done after %.1f s", stage, tracker.done, len(jobs), tracker.seconds)
        _warn_of_failures(stage, tracker.failures, len(jobs))
        return {job.name: results[job.name] for job in jobs if job.name in results}

    def each(self, stage: str, items: Sequence[Item], *, name: Callable[[Item], str] = str,
             size: Callable[[Item], float] = lambda item: 1.0) -> Iterator[Item]:  # fmt: skip
        """The items of a loop in this process, with its progress reported as a stage."""
        return each_with_progress(stage, items, self._report, name=name, size=size)

    def _look_up(self, stage: str, keys: dict[str, str], jobs: Sequence[Job]) -> tuple[dict[str, bytes], list[Job]]:
        """The results that the run holds, and the jobs that are left."""
        if self._run is None:
            return {}, list(jobs)
        results, todo = {}, []
        for job in jobs:
            result = self._run.get(stage, keys[job.name], job)
            if job.parts:
                result, missing = _split_parts(result, job)
                todo += [replace(job, parts=missing)] if missing else []
            elif result is None or find_unusable(job, result) is not None:
                result = None
                todo.append(job)
            if result is not None:
                results[job.name] = result
        return results, todo

    def _execute(self, do: Do, jobs: list[Job]) -> Iterator[tuple[Job, Outcome]]:
        if not jobs:
            return iter(())
        if self._executor is None and self._ray is not None:
            from manymetrics.engine.ray import RayExecutor

            self._executor = RayExecutor(self._shared, self._ray, self._limits, self._get_ready)
        elif self._executor is None and self._workers == 1 and self._limits == NO_LIMITS:
            self._executor = SerialExecutor(self._shared)
        elif self._executor is None:
            self._executor = PoolExecutor(self._shared, self._workers, self._limits, self._get_ready)
        return self._executor(do, jobs)


def _split_parts(result: bytes | None, job: Job) -> tuple[bytes | None, dict[str, str]]:
    """The usable parts of a stored result, and the parts that are missing."""
    values = {name: value for name, value in json.loads(result or b"{}").items() if is_usable(value)}
    missing = {name: digest for name, digest in job.parts.items() if name not in values}
    return json.dumps(values, sort_keys=True).encode() if values else None, missing


def _merge_parts(stored: bytes | None, result: bytes) -> bytes:
    return result if stored is None else json.dumps(json.loads(stored) | json.loads(result), sort_keys=True).encode()


def _warn_of_failures(stage: str, failures: Sequence[Failure], total: int) -> None:
    if failures and len(failures) == total:
        first = failures[0]
        raise StageFailed(f"All {total} jobs of {stage} failed. The first, {first.job!r}: {first.error}")
    for failure in failures:
        message = f"{stage} of {failure.job!r} failed: {failure.error.rstrip('.')}. It is skipped."
        warnings.warn(message, JobSkipped, stacklevel=3)
