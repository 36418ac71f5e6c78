"""Run jobs on this machine: one after the other in this process, or in worker processes that run one job at a time.

A worker that dies therefore takes one job with it. The job is tried again alone after all others, because memory may
have been short, and fails if its worker dies every time.
"""

import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from manymetrics.engine.run_job import Do, JobFailed, Limits, Outcome, describe, run_job
from manymetrics.engine.shared_data import SharedValue
from manymetrics.errors import EnvironmentProblem
from manymetrics.values import Job

TRIES = 3  # of a job whose worker dies; all but the first while no other job runs
MAX_FAILED_STARTS, MAX_KILLED_STARTS = 3, 12  # workers in a row that end, or are killed, before they are ready


class SerialExecutor:
    """Runs jobs in this process, without limits."""

    def __init__(self, shared: Any) -> None:
        self._shared = shared

    def __call__(self, do: Do, jobs: Sequence[Job]) -> Iterator[tuple[Job, Outcome]]:
        """Each job with its outcome."""
        return ((job, run_job(do, job, self._shared)) for job in jobs)

    def close(self, *, at_once: bool) -> None:
        """Do nothing."""


class PoolExecutor:
    """Runs jobs in worker processes, which stay alive between stages."""

    def __init__(self, shared: Any, workers: int, limits: Limits, get_ready: Callable[[], None]) -> None:
        self._shared, self._max_workers, self._limits, self._get_ready = SharedValue(shared), workers, limits, get_ready
        self._workers: list[_Worker] = []
        self._failed_starts = 0

    def __call__(self, do: Do, jobs: Sequence[Job]) -> Iterator[tuple[Job, Outcome]]:
        """Each job with its outcome, in the order in which they end."""
        waiting, suspects = deque(jobs), deque[Job]()
        deaths: Counter[str] = Counter()
        while waiting or suspects or any(worker.job for worker in self._workers):
            self._assign(do, waiting, suspects)
            ended = []
            for worker in self._wait():
                job = worker.job
                try:
                    outcome = worker.receive()
                except EOFError:
                    outcome = self._remove_dead(worker, deaths)
                    if job is not None and outcome is None:
                        suspects.append(job)
                if job is not None and outcome is not None:
                    ended.append((job, outcome))
            self._assign(do, waiting, suspects)  # before the caller stores the outcomes, so that no worker is idle
            yield from ended

    def close(self, *, at_once: bool) -> None:
        """End the workers; with `at_once`, without waiting for their jobs."""
        for worker in self._workers:
            worker.process.kill() if at_once else worker.pipe.close()
        for worker in self._workers:
            worker.process.join(5)
            worker.process.kill()
        self._workers.clear()
        self._shared.close()

    def _assign(self, do: Do, waiting: deque[Job], suspects: deque[Job]) -> None:
        busy = sum(worker.job is not None for worker in self._workers)
        if not waiting and not busy and suspects:
            waiting.append(suspects.popleft())
        while len(self._workers) < min(self._max_workers, busy + len(waiting)):
            self._workers.append(_Worker(self._shared, self._limits, self._get_ready))
        for worker in [worker for worker in self._workers if worker.ready and worker.job is None]:
            if not waiting:
                break
            if worker.send(do, waiting[0]):
                waiting.popleft()
            else:
                self._workers.remove(worker)

    def _wait(self) -> list["_Worker"]:
        """The workers that have sent something or died; none if all idle workers have died."""
        awaited = [worker for worker in self._workers if worker.job is not None or not worker.ready]
        pipes = wait([worker.pipe for worker in awaited]) if awaited else []
        return [worker for worker in awaited if worker.pipe in pipes]

    def _remove_dead(self, worker: "_Worker", deaths: Counter[str]) -> JobFailed | None:
        """Remove a dead worker; the outcome of its job, or None if the job is to be tried again."""
        self._workers.remove(worker)
        worker.process.join(5)
        exit_code = worker.process.exitcode or 0
        if not worker.ready:
            self._failed_starts += 1
            if self._failed_starts >= (MAX_KILLED_STARTS if exit_code < 0 else MAX_FAILED_STARTS):
                raise EnvironmentProblem(
                    "The worker processes die before they begin. In a script, put the call under "
                    '`if __name__ == "__main__":`; otherwise give fewer workers, or read what they printed.'
                )
            return None
        self._failed_starts = 0
        job = worker.job
        if job is None:
            return None
        if exit_code == -signal.SIGALRM and self._limits.seconds is not None:
            return JobFailed(f"it took longer than the {self._limits.seconds:g} s that a job may take")
        deaths[job.name] += 1
        if deaths[job.name] < TRIES:
            return None
        return JobFailed(f"it ended its worker process {TRIES} times, perhaps for want of memory")


class _Worker:
    """A worker process, and the job that it runs."""

    def __init__(self, shared: SharedValue, limits: Limits, get_ready: Callable[[], None]) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.pipe, other_end = spawn.Pipe()
        self.process = spawn.Process(target=_serve, args=(other_end, shared, limits, get_ready), daemon=True)
        self.process.start()
        other_end.close()
        self.ready = False
        self.job: Job | None = None

    def send(self, do: Do, job: Job) -> bool:
        """Give it a job; False if the worker has died."""
        try:
            self.pipe.send((do, job))
        except (BrokenPipeError, ConnectionError):
            return False
        self.job = job
        return True

    def receive(self) -> Outcome | None:
        """The outcome of its job, or None if it has become ready; raises EOFError if it has died."""
        try:
            outcome: Outcome | None = self.pipe.recv()
        except OSError as problem:  # it died in the middle of a message
            raise EOFError from problem
        if self.ready:
            self.job = None
        self.ready = True
        return outcome


def _serve(pipe: Connection, shared: Any, limits: Limits, get_ready: Callable[[], None]) -> None:
    """Run the jobs that arrive until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles it
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    try:
        pipe.send(None)
    except ConnectionError:  # closed meanwhile
        return
    while True:
        try:
            do, job = pipe.recv()
        except EOFError:
            return
        except Exception as problem:  # a worker cannot import the function
            pipe.send(JobFailed(describe(problem), everywhere=True))
            continue
        pipe.send(run_job(do, job, shared, limits, get_ready))


def _exit_with_parent() -> None:
    """End this worker when its parent process has ended in any way."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
