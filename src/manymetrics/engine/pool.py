"""Run jobs in worker processes of this machine, one job at a time in each.

A worker that dies therefore takes one job with it. The job is tried again alone after all others, because memory may
have been short, and fails if its worker dies every time. The data that all jobs share is packed once: its arrays are
views of one memory-mapped file in all workers.
"""

import io
import mmap
import multiprocessing
import os
import signal
import tempfile
import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from multiprocessing import reduction
from multiprocessing.connection import Connection, wait
from typing import Any

from manymetrics.engine.run_job import Do, GetReady, JobFailed, Limits, Outcome, describe, run_job
from manymetrics.errors import EnvironmentProblem
from manymetrics.values import Job

TRIES = 3  # of a job whose worker dies; all but the first while no other job runs
MAX_FAILED_STARTS, MAX_KILLED_STARTS = 3, 12  # workers in a row that end, or are killed, before they are ready
ALIGNMENT = 64  # bytes


class PoolExecutor:
    """Runs jobs in worker processes, which stay alive between stages."""

    def __init__(self, shared: Any, workers: int, limits: Limits, get_ready: GetReady) -> None:
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
            workers: dict[Any, _Worker] = {worker.pipe: worker for worker in self._workers}
            for worker in [workers[pipe] for pipe in wait([*workers])] if workers else []:
                job = worker.job
                try:
                    outcome = worker.pipe.recv()  # None: it has become ready
                    worker.ready, worker.job = True, None
                except (EOFError, OSError):  # it died, perhaps in the middle of a message
                    outcome = self._remove_dead(worker, deaths)
                    suspects.extend([job] if job and outcome is None else [])
                if job and outcome is not None:
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
        self._shared.file.close()

    def _assign(self, do: Do, waiting: deque[Job], suspects: deque[Job]) -> None:
        """Give jobs to idle workers, and start workers if there are jobs for more; a suspect runs alone."""
        busy = sum(worker.job is not None for worker in self._workers)
        if suspects and not waiting and not busy:
            waiting.append(suspects.popleft())
        while len(self._workers) < min(self._max_workers, busy + len(waiting)):
            self._workers.append(_Worker(self._shared, self._limits, self._get_ready))
        for worker in [worker for worker in self._workers if worker.ready and worker.job is None]:
            if waiting:
                try:
                    worker.pipe.send((do, waiting[0]))
                    worker.job = waiting.popleft()
                except ConnectionError:  # it died meanwhile
                    self._workers.remove(worker)

    def _remove_dead(self, worker: "_Worker", deaths: Counter[str]) -> JobFailed | None:
        """Remove a dead worker; the outcome of its job, or None if the job is to be tried again."""
        self._workers.remove(worker)
        worker.process.join(5)
        exit_code = worker.process.exitcode or 0
        self._failed_starts = 0 if worker.ready else self._failed_starts + 1
        if self._failed_starts >= (MAX_KILLED_STARTS if exit_code < 0 else MAX_FAILED_STARTS):
            raise EnvironmentProblem(
                "The worker processes die before they begin. In a script, put the call under "
                '`if __name__ == "__main__":`; otherwise give fewer workers, or read what they printed.'
            )
        if worker.job is None:
            return None
        if exit_code == -signal.SIGALRM and self._limits.seconds is not None:
            return JobFailed(f"it took longer than the {self._limits.seconds:g} s that a job may take")
        deaths[worker.job.name] += 1
        if deaths[worker.job.name] < TRIES:
            return None
        return JobFailed(f"it ended its worker process {TRIES} times, perhaps for want of memory")


class _Worker:
    """A worker process, and the job that it runs."""

    def __init__(self, shared: "SharedValue", limits: Limits, get_ready: GetReady) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.pipe, other_end = spawn.Pipe()
        self.process = spawn.Process(target=_serve, args=(other_end, shared, limits, get_ready), daemon=True)
        self.process.start()
        other_end.close()
        self.ready = False
        self.job: Job | None = None


def _serve(pipe: Connection, shared: Any, limits: Limits, get_ready: GetReady) -> None:
    """Run the jobs that arrive until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles it
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    outcome: Outcome | None = None  # ready
    while True:
        try:
            pipe.send(outcome)
            do, job = pipe.recv()
        except (EOFError, ConnectionError):
            return
        except Exception as problem:  # a worker cannot import the function
            outcome = JobFailed(describe(problem), everywhere=True)
        else:
            outcome = run_job(do, job, shared, limits, get_ready)


def _exit_with_parent() -> None:
    """End this worker when its parent process has ended in any way."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class SharedValue:
    """A value in a file without a name, which disappears with the last process that maps it.

    A process that is started with it receives the value itself.
    """

    def __init__(self, value: Any) -> None:
        arrays: list[Any] = []
        stream = io.BytesIO()
        reduction.ForkingPickler(stream, 5, True, arrays.append).dump(value)
        if hasattr(os, "memfd_create"):  # on Linux
            self.file: Any = os.fdopen(os.memfd_create("manymetrics"), "wb")
        else:
            self.file = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        self._spans = []
        for part in (stream.getbuffer(), *(array.raw() for array in arrays)):
            self.file.seek(-self.file.tell() % ALIGNMENT, os.SEEK_CUR)
            self._spans.append((self.file.tell(), self.file.tell() + part.nbytes))
            self.file.write(part)
        self.file.flush()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpack, (reduction.DupFd(self.file.fileno()), self._spans)


def _unpack(duplicate: Any, spans: Sequence[tuple[int, int]]) -> Any:
    handle = duplicate.detach()
    view = memoryview(mmap.mmap(handle, 0, access=mmap.ACCESS_COPY))
    os.close(handle)
    stream, *arrays = (view[start:end] for start, end in spans)
    return reduction.ForkingPickler.loads(stream, buffers=arrays)
