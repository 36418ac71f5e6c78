"""Run the jobs of a stage -> their results by name.

A job whose result is in the run is not run again. A result is written to the run before it is reported. A job that
fails is named and skipped.
"""

import json
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from manymetrics.engine.code import code_fingerprint
from manymetrics.engine.pool import PoolExecutor
from manymetrics.engine.progress import Progress, Tracker, each_with_progress, shown
from manymetrics.engine.run_job import (
    NO_LIMITS,
    Do,
    GetReady,
    JobFailed,
    Limits,
    Outcome,
    describe,
    find_unusable,
    is_usable,
    run_job,
)
from manymetrics.errors import DataError, EnvironmentProblem, JobSkipped, ManyMetricsError, ModelError, StageFailed
from manymetrics.store.runs import Failure, Run
from manymetrics.values import Job

LOG = logging.getLogger("manymetrics")
LOG.addHandler(logging.NullHandler())
Item = TypeVar("Item")
OpenEngine = Callable[..., "Engine"]  # opens an engine whose jobs use some data


@dataclass(eq=False)
class Engine(AbstractContextManager["Engine"]):
    """Runs the jobs of stages in this process, in worker processes or on a Ray cluster, and stores their results.

    The results do not depend on where jobs run. If they have limits, a worker calls `get_ready` first: the limits do
    not count what it loads there.
    """

    shared: Any  # what all jobs use
    _: KW_ONLY
    workers: int = 1
    ray: str | None = None
    limits: Limits = NO_LIMITS
    run: Run | None = None
    report: Callable[[Progress], None] = lambda progress: None
    get_ready: GetReady = None
    _executor: Any = field(default=None, init=False)  # a `PoolExecutor` or `RayExecutor`, once there are jobs for it

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if self._executor is not None:
            self._executor.close(at_once=problem is not None)
        is_named = isinstance(problem, ManyMetricsError) and not isinstance(problem, DataError)  # what a file holds
        if isinstance(problem, Exception) and not is_named and self.run and self.run.differs_from_manifest():
            raise ModelError(
                f"The results stored in {self.run.folder} cannot be used: {describe(problem)}. "
                "Give another folder for the run."
            ) from problem

    def __call__(self, stage: str, do: Do, jobs: Sequence[Job]) -> dict[str, bytes]:
        """Run every job whose result is not in the run; results by the jobs' names, in their order.

        A job that fails has no result, and a warning `JobSkipped` names its error. If all fail, the stage fails.
        """
        keys = {job.name: Run.key(stage, job, code_fingerprint(do)) for job in jobs} if self.run else {}
        results, todo = self._look_up(stage, keys, jobs)
        stored = len(jobs) - len(todo)
        LOG.info("%s: %d jobs, %d of them there already", stage, len(jobs), stored)
        workers = 0 if self.ray is not None else self.workers
        sizes = {job.name: (job.name, job.size) for job in todo}
        tracker = Tracker(stage, sizes, self.report, stored=stored, workers=workers)
        for job, outcome in self._execute(do, todo):
            if isinstance(outcome, JobFailed):
                if outcome.everywhere:
                    raise EnvironmentProblem(outcome.error)
                tracker.end(job.name, Failure(stage, job.name, outcome.error))
                continue
            if self.run:
                self.run.put(stage, keys[job.name], job, outcome)
            stored_parts = results.get(job.name)
            results[job.name] = _as_json(json.loads(stored_parts) | json.loads(outcome)) if stored_parts else outcome
            tracker.end(job.name)
        ended = tracker.latest
        LOG.info("%s: %d of %d jobs done after %.1f s", stage, ended.done, len(jobs), ended.seconds)
        for failure in ended.failures:
            if len(ended.failures) == len(jobs):
                raise StageFailed(
                    f"All {len(jobs)} jobs of {stage} failed. The first, {failure.job!r}: {failure.error}"
                )
            message = f"{stage} of {failure.job!r} failed: {failure.error.rstrip('.')}. It is skipped."
            warnings.warn(message, JobSkipped, stacklevel=2)
        return {job.name: results[job.name] for job in jobs if job.name in results}

    def each(self, stage: str, items: Sequence[Item], *, name: Callable[[Item], str] = str,
             size: Callable[[Item], float] = lambda item: 1.0) -> Iterator[Item]:  # fmt: skip
        """The items of a loop in this process, with its progress reported as a stage."""
        return each_with_progress(stage, items, self.report, name=name, size=size)

    def _look_up(self, stage: str, keys: dict[str, str], jobs: Sequence[Job]) -> tuple[dict[str, bytes], list[Job]]:
        """The results that the run holds, and the jobs that are left, with their missing parts alone."""
        results, todo = {}, []
        for job in jobs:
            result = self.run.get(stage, keys[job.name], job) if self.run else None
            if job.parts:
                parts = {name: value for name, value in json.loads(result or b"{}").items() if is_usable(value)}
                missing = {name: digest for name, digest in job.parts.items() if name not in parts}
                result = _as_json(parts) if parts else None
                todo += [replace(job, parts=missing)] if missing else []
            elif result is None or find_unusable(job, result) is not None:
                result = None
                todo.append(job)
            if result is not None:
                results[job.name] = result
        return results, todo

    def _execute(self, do: Do, jobs: list[Job]) -> Iterator[tuple[Job, Outcome]]:
        """Each job with its outcome."""
        if self.ray is None and self.workers == 1 and self.limits == NO_LIMITS:
            return ((job, run_job(do, job, self.shared)) for job in jobs)
        if jobs and self._executor is None and self.ray is not None:
            from manymetrics.engine.ray import RayExecutor

            self._executor = RayExecutor(self.shared, self.ray, self.limits, self.get_ready)
        elif jobs and self._executor is None:
            self._executor = PoolExecutor(self.shared, self.workers, self.limits, self.get_ready)
        return iter(self._executor(do, jobs) if jobs else ())


@contextmanager
def engines(*, run: Run | None = None, report: Callable[[Progress], None] | None = None,
            **where: Any) -> Iterator[OpenEngine]:  # fmt: skip
    """Opens engines that show their progress, on one thread; the run is marked as finished and closed at the end."""
    with threadpool_limits(1), shown(report) as on_progress, run or nullcontext():
        yield partial(Engine, run=run, report=on_progress, **where)
        if run is not None:
            run.finish()


def _as_json(parts: dict[str, Any]) -> bytes:
    return json.dumps(parts, sort_keys=True).encode()
