"""Where work runs: in this process or in several, with the same functions and the same results.

A unit is a pure function of what is in it and of the bank all units share. Each runs on one thread, with randomness
made from the unit itself, so the bits do not depend on how many workers there are or which of them did what. Finished
units are written to the run, if there is one, before they are reported.
"""

import contextlib
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits

from manymetrics.errors import EnvironmentProblem
from manymetrics.store.runs import Run
from manymetrics.values import Unit

Do = Callable[[Unit, Any], bytes]


@dataclass(frozen=True)
class Progress:
    """How far a stage has come."""

    stage: str
    done: int
    total: int
    seconds: float
    kept: int = 0  # units that were there already


class Engine:
    """Does units in this process, or in worker processes that hold the shared bank."""

    def __init__(self, shared: Any, *, workers: int = 1, run: Run | None = None,
                 report: Callable[[Progress], None] = lambda progress: None) -> None:  # fmt: skip
        self._shared, self._workers, self._run, self._report = shared, workers, run, report
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *why: object) -> None:
        if self._pool is None:
            return
        if why[0] is not None:  # an error or an interruption: nobody will want what the workers are at
            for worker in multiprocessing.active_children():
                worker.terminate()
        self._pool.shutdown(cancel_futures=True)

    def __call__(self, stage: str, do: Do, units: Sequence[Unit]) -> dict[str, bytes]:
        """Do every unit that is not in the run yet; results by the units' names, in their order."""
        started = time.monotonic()
        results: dict[str, bytes] = {}
        todo: list[Unit] = []
        for unit in units:
            payload = self._run.get(Run.key(stage, unit)) if self._run else None
            if payload is None:
                todo.append(unit)
            else:
                results[unit.name] = payload
        kept = len(results)
        self._report(Progress(stage, kept, len(units), 0.0, kept))
        for unit, payload in self._work(do, todo):
            if self._run:
                self._run.put(Run.key(stage, unit), payload)
            results[unit.name] = payload
            self._report(Progress(stage, len(results), len(units), time.monotonic() - started, kept))
        return {unit.name: results[unit.name] for unit in units}

    def _work(self, do: Do, units: list[Unit]) -> Iterator[tuple[Unit, bytes]]:
        if self._workers == 1 or len(units) < 2:
            for unit in units:
                yield unit, _do_on_one_thread(do, unit, self._shared)
        else:
            yield from self._work_in_pool(do, units)

    def _work_in_pool(self, do: Do, units: list[Unit]) -> Iterator[tuple[Unit, bytes]]:
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(
                self._workers, mp_context=spawn, initializer=_receive, initargs=(self._shared,)
            )
        waiting = list(reversed(units))
        live: dict[Future[bytes], Unit] = {}
        try:
            while waiting or live:
                while waiting and len(live) < 2 * self._workers:
                    unit = waiting.pop()
                    live[self._pool.submit(_do_in_worker, do, unit)] = unit
                for future in wait(live, return_when=FIRST_COMPLETED).done:
                    yield live.pop(future), future.result()
        except BrokenProcessPool as problem:
            raise EnvironmentProblem(
                "A worker process died, perhaps for want of memory. Run the same command again with fewer workers"
                f"{' to go on from what is finished' if self._run else ''}."
            ) from problem


_received: Any = None


def _receive(shared: Any) -> None:
    global _received  # noqa: PLW0603 - a worker keeps the shared bank for as long as it lives
    _received = shared
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    """End this worker when the process that started it is gone, however it went."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _do_in_worker(do: Do, unit: Unit) -> bytes:
    return _do_on_one_thread(do, unit, _received)


def _do_on_one_thread(do: Do, unit: Unit, shared: Any) -> bytes:
    with threadpool_limits(1), contextlib.redirect_stdout(sys.stderr):
        return do(unit, shared)
