"""A fair queue: every tenant in turn, a bounded number waiting, and what arrives together is done together.

One tenant's flood fills that tenant's own line. The worker takes one piece of work from each line in turn, so another
tenant's request waits for one round at most. When a line or the whole queue is full, a request is refused at once.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from manymetrics.service.problems import TooMany, Unavailable

FULL = "More requests are waiting than can be answered soon. Send this one again later."
STOPPED = "The service is stopping. Send the request again."


@dataclass(frozen=True, eq=False)
class Piece:
    """Some work of one tenant, and where its result goes."""

    tenant: str
    work: Any
    size: int
    result: Future[Any] = field(default_factory=Future)


Worker = Callable[[Sequence[Piece]], None]


class FairQueue:
    """Lines of work, one for each tenant, and threads that do it."""

    def __init__(self, worker: Worker, *, waiting: int, waiting_each: int, batch: int = 1, linger: float = 0.0,
                 threads: int = 1, name: str = "work") -> None:  # fmt: skip
        self._worker, self._waiting, self._waiting_each = worker, waiting, waiting_each
        self._batch, self._linger = batch, linger  # sizes together, seconds
        self._lines: OrderedDict[str, deque[Piece]] = OrderedDict()
        self._count, self._stopped = 0, False
        self._changed = threading.Condition()
        self._spent = 0.01  # seconds a piece takes, as of late
        self._threads = [threading.Thread(target=self._run, name=f"{name}-{n}", daemon=True) for n in range(threads)]
        for thread in self._threads:
            thread.start()

    def submit(self, tenant: str, work: Any, *, size: int = 1) -> Future[Any]:
        """Put work in its tenant's line; refused at once where that, or the queue, is full."""
        piece = Piece(tenant, work, size)
        with self._changed:
            if self._stopped:
                raise Unavailable(STOPPED, retry_after=1)
            line = self._lines.get(tenant)
            if self._count >= self._waiting or (line is not None and len(line) >= self._waiting_each):
                raise TooMany(FULL, retry_after=max(1.0, self._count * self._spent))
            self._lines.setdefault(tenant, deque()).append(piece)
            self._count += 1
            self._changed.notify()
        return piece.result

    def __len__(self) -> int:
        return self._count

    def stop(self, *, seconds: float = 20.0) -> None:
        """Take nothing more, finish what waits, and end the threads."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(seconds)

    def _run(self) -> None:
        while (pieces := self._next()) is not None:
            if not pieces:
                continue  # whoever asked has gone away
            started = time.monotonic()
            try:
                self._worker(pieces)
            except BaseException as problem:
                _fail(pieces, problem)
            self._spent += 0.1 * ((time.monotonic() - started) / len(pieces) - self._spent)

    def _next(self) -> list[Piece] | None:
        """Some pieces to be done together, those of all tenants in turn; None when the queue has ended."""
        with self._changed:
            while not self._count:
                if self._stopped:
                    return None
                self._changed.wait()
            if self._linger and self._batch > 1 and self._count < 2:
                self._changed.wait(self._linger)  # others that arrive meanwhile join
            return self._take()

    def _take(self) -> list[Piece]:
        taken: list[Piece] = []
        room = self._batch
        while self._lines and (not taken or room > 0):
            tenant, line = next(iter(self._lines.items()))
            if taken and line[0].size > room:
                break
            piece = line.popleft()
            self._count -= 1
            if line:
                self._lines.move_to_end(tenant)
            else:
                del self._lines[tenant]
            if piece.result.set_running_or_notify_cancel():
                taken.append(piece)
                room -= piece.size
        return taken


def _fail(pieces: Sequence[Piece], problem: BaseException) -> None:
    for piece in pieces:
        if not piece.result.done():
            piece.result.set_exception(problem)


def call_each(pieces: Sequence[Piece]) -> None:
    """A worker for pieces that are functions: each result, or failure, goes to its own caller."""
    for piece in pieces:
        try:
            piece.result.set_result(piece.work())
        except BaseException as problem:
            piece.result.set_exception(problem)
