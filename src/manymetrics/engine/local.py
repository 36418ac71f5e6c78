"""Units on this machine: one after the other in this process, or in worker processes of which each does one at a time.

Because a worker has one unit, its death is that unit's and nobody else's. The unit is tried again by itself when all
others are done, in case the memory was short, and given up when that kills a worker, too.
"""

import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from manymetrics.engine.sharing import Shared
from manymetrics.engine.units import Broken, Do, Limits, Outcome, describe, do_unit
from manymetrics.errors import EnvironmentProblem
from manymetrics.values import Unit

TRIES = 3  # of a unit whose worker dies, the later ones with no other unit beside it
STARTS, KILLED_STARTS = 3, 12  # of workers that end, or are killed, before they are ready, one after the other


class InThisProcess:
    """Does units here and now. They can neither be limited nor outlived."""

    def __init__(self, shared: Any) -> None:
        self._shared = shared

    def __call__(self, do: Do, units: Sequence[Unit]) -> Iterator[tuple[Unit, Outcome]]:
        """Each unit with what came of it."""
        for unit in units:
            yield unit, do_unit(do, unit, self._shared)

    def close(self, *, at_once: bool) -> None:
        """Nothing to put away."""


class InWorkers:
    """Does units in processes that hold the shared bank."""

    def __init__(self, shared: Any, *, workers: int, limits: Limits, get_ready: Callable[[], None]) -> None:
        self._shared, self._most, self._limits, self._get_ready = Shared(shared), workers, limits, get_ready
        self._workers: list[_Worker] = []
        self._lost_starts = 0

    def __call__(self, do: Do, units: Sequence[Unit]) -> Iterator[tuple[Unit, Outcome]]:
        """Each unit with what came of it, in the order in which they end."""
        waiting, suspects = deque(units), deque[Unit]()
        deaths: Counter[str] = Counter()
        while waiting or suspects or any(worker.unit for worker in self._workers):
            self._hand_out(do, waiting, suspects)
            ended = []
            for worker in self._heard():
                unit = worker.unit
                try:
                    outcome = worker.hear()
                except EOFError:
                    outcome = self._bury(worker, deaths)
                    if unit is not None and outcome is None:
                        suspects.append(unit)
                if unit is not None and outcome is not None:
                    ended.append((unit, outcome))
            self._hand_out(do, waiting, suspects)  # before others look at what ended, so that no worker waits for them
            yield from ended

    def close(self, *, at_once: bool) -> None:
        """Send the workers home."""
        for worker in self._workers:
            worker.dismiss(at_once=at_once)
        for worker in self._workers:
            worker.process.join(5)
            worker.process.kill()
        self._workers.clear()
        self._shared.close()

    def _hand_out(self, do: Do, waiting: deque[Unit], suspects: deque[Unit]) -> None:
        busy = sum(worker.unit is not None for worker in self._workers)
        if not waiting and not busy and suspects:
            waiting.append(suspects.popleft())
        while len(self._workers) < min(self._most, busy + len(waiting)):
            self._workers.append(_Worker(self._shared, self._limits, self._get_ready))
        for worker in [worker for worker in self._workers if worker.ready and worker.unit is None]:
            if not waiting:
                break
            if worker.take(do, waiting[0]):
                waiting.popleft()
            else:
                self._workers.remove(worker)

    def _heard(self) -> list["_Worker"]:
        awaited = [worker for worker in self._workers if worker.unit is not None or not worker.ready]
        heard = wait([worker.pipe for worker in awaited]) if awaited else []  # none: all that were idle have died
        return [worker for worker in awaited if worker.pipe in heard]

    def _bury(self, worker: "_Worker", deaths: Counter[str]) -> Broken | None:
        """What is said of the unit of a worker that died, or None if the unit deserves another try."""
        self._workers.remove(worker)
        worker.process.join(5)
        if not worker.ready:
            self._lost_starts += 1
            killed = (worker.process.exitcode or 0) < 0
            if self._lost_starts >= (KILLED_STARTS if killed else STARTS):
                raise EnvironmentProblem(
                    "The worker processes die before they begin. In a script, put the call under "
                    '`if __name__ == "__main__":`; else give fewer workers, or look at what they printed.'
                )
            return None
        self._lost_starts = 0
        unit = worker.unit
        if unit is None:
            return None
        if worker.process.exitcode == -signal.SIGALRM and self._limits.seconds is not None:
            return Broken(f"it took longer than the {self._limits.seconds:g} s that a unit may take")
        deaths[unit.name] += 1
        if deaths[unit.name] < TRIES:
            return None
        return Broken(f"it ended its worker process {TRIES} times, perhaps for want of memory")


class _Worker:
    def __init__(self, shared: Shared, limits: Limits, get_ready: Callable[[], None]) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.pipe, theirs = spawn.Pipe()
        self.process = spawn.Process(target=_serve, args=(theirs, shared, limits, get_ready), daemon=True)
        self.process.start()
        theirs.close()
        self.ready = False
        self.unit: Unit | None = None

    def take(self, do: Do, unit: Unit) -> bool:
        """Hand it a unit; False where it is gone."""
        try:
            self.pipe.send((do, unit))
        except (BrokenPipeError, ConnectionError):
            return False
        self.unit = unit
        return True

    def hear(self) -> Outcome | None:
        """What came of its unit; None where it says that it is ready. An EOFError says that it is dead."""
        try:
            said: Outcome | None = self.pipe.recv()
        except OSError as problem:  # it died in the middle of a message
            raise EOFError from problem
        if self.ready:
            self.unit = None
        self.ready = True
        return said

    def dismiss(self, *, at_once: bool) -> None:
        if at_once:
            self.process.kill()
        else:
            self.pipe.close()


def _serve(pipe: Connection, shared: Any, limits: Limits, get_ready: Callable[[], None]) -> None:
    """The life of a worker: units in, what came of them out, until nobody hands it any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who started it will tell it
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    try:
        pipe.send(None)
    except ConnectionError:  # it is not needed any more
        return
    while True:
        try:
            do, unit = pipe.recv()
        except EOFError:
            return
        except Exception as problem:  # the function is not where a worker can import it from
            pipe.send(Broken(describe(problem), everywhere=True))
            continue
        pipe.send(do_unit(do, unit, shared, limits, get_ready))


def _leave_with_parent() -> None:
    """End this worker when the process that started it is gone, however it went."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
