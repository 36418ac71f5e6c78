"""Which work is done next: tenants in turn, a bounded number waiting.

A tenant that sends too much waits for itself, so that another tenant's request waits for one round at most.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from manymetrics.service.domain.errors import TooMany, Unavailable

NOT_ADMITTED = "The service has more requests than it can answer soon. Try again."
STOP_SECONDS = 20  # in which waiting work is finished when the service stops
Item = TypeVar("Item")


def insert_in_turn(waiting: list[tuple[str, Item]], tenant: str, item: Item) -> None:
    """Insert an item so that each round has one of every tenant, and tenants keep their order; a new one is last."""
    names = [name for name, _ in waiting]
    tenant_order = {name: index for index, name in enumerate(dict.fromkeys([*names, tenant]))}
    turn, rounds = (names.count(tenant), tenant_order[tenant]), Counter[str]()
    for position, name in enumerate(names):
        if (rounds[name], tenant_order[name]) > turn:
            waiting.insert(position, (tenant, item))
            return
        rounds[name] += 1
    waiting.append((tenant, item))


@dataclass(frozen=True, eq=False)
class WorkItem:
    """Some work, and where its result goes."""

    work: Any
    size: int
    result: Future[Any] = field(default_factory=Future)


def call_each(items: Sequence[WorkItem]) -> None:
    """A worker for items that are functions: each result, or failure, goes to its own caller."""
    for item in items:
        try:
            item.result.set_result(item.work())
        except BaseException as error:
            item.result.set_exception(error)


@dataclass(eq=False)
class WorkQueue:
    """Work of all tenants in turn, done by one thread."""

    max_waiting: int
    max_waiting_each: int  # of one tenant
    worker: Callable[[Sequence[WorkItem]], None] = call_each
    batch: int = 1  # the sizes of a batch together

    def __post_init__(self) -> None:
        self._waiting: list[tuple[str, WorkItem]] = []  # by tenant, in turn
        self._stopped = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        return len(self._waiting)

    def submit(self, tenant: str, work: Any, *, size: int = 1) -> Future[Any]:
        """Add work to its tenant's queue; refused at once if that queue, or all together, are full."""
        item = WorkItem(work, size)
        with self._changed:
            if self._stopped:
                raise Unavailable("The service is stopping. Send the request again.", retry_after=1)
            own_items = sum(name == tenant for name, _ in self._waiting)
            if own_items >= self.max_waiting_each or len(self._waiting) >= self.max_waiting:
                raise TooMany("More requests are waiting than can be answered soon. Try again.", retry_after=1)
            insert_in_turn(self._waiting, tenant, item)
            self._changed.notify()
        return item.result

    def stop(self) -> None:
        """Accept nothing more, finish what waits, and end the thread."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stopped)
                if not self._waiting:
                    return
                items = self._take_batch()
            try:
                self.worker(items)
            except BaseException as error:
                for item in items:
                    if not item.result.done():
                        item.result.set_exception(error)

    def _take_batch(self) -> list[WorkItem]:
        """Items to be done together, those of all tenants in turn; none whose caller has gone away."""
        items: list[WorkItem] = []
        room = self.batch
        while self._waiting and (not items or self._waiting[0][1].size <= room):
            _, item = self._waiting.pop(0)
            if item.result.set_running_or_notify_cancel():
                items.append(item)
                room -= item.size
        return items


@dataclass(eq=False)
class Admission:
    """Which requests are worked on at a time, for one event loop; the others wait before their body is parsed.

    All requests of a process share its processor: without admission those of one tenant that sends many at once would
    be parsed before another's single one. If too many wait, the latest of the longest queue is refused.
    """

    max_running: int
    max_running_each: int  # of one tenant
    capacity: int  # of those running and waiting

    def __post_init__(self) -> None:
        self._running: Counter[str] = Counter()  # by tenant
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []  # by tenant, in turn

    def refuses(self, tenant: str) -> bool:
        """Whether a request would be refused: the capacity is used, and no queue is longer than its own would be."""
        if len(self._waiting) + self._running.total() < self.capacity:
            return False
        lengths = Counter(name for name, _ in self._waiting)
        return not self._is_free(tenant) and max(lengths.values(), default=0) <= lengths[tenant] + 1

    async def enter(self, tenant: str) -> None:
        """Wait until it is the tenant's turn; refused at once if too many wait."""
        if self._is_free(tenant) and all(name != tenant for name, _ in self._waiting):
            self._running[tenant] += 1
            return
        if self.refuses(tenant):
            raise TooMany(NOT_ADMITTED, retry_after=1)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        insert_in_turn(self._waiting, tenant, turn)
        if len(self._waiting) + self._running.total() > self.capacity:
            self._refuse_latest()
        try:
            await turn
        except asyncio.CancelledError:
            if (tenant, turn) in self._waiting:
                self._waiting.remove((tenant, turn))
            elif not turn.cancelled() and turn.exception() is None:
                self.leave(tenant)  # the request has gone away just as its turn came
            raise

    def leave(self, tenant: str) -> None:
        """Let those who wait enter in place of a request that is done."""
        self._running[tenant] -= 1
        if not self._running[tenant]:
            del self._running[tenant]
        while entry := next((entry for entry in self._waiting if self._is_free(entry[0])), None):
            self._waiting.remove(entry)
            chosen, turn = entry
            if not turn.done():
                self._running[chosen] += 1
                turn.set_result(None)

    def _is_free(self, tenant: str) -> bool:
        return self._running.total() < self.max_running and self._running[tenant] < self.max_running_each

    def _refuse_latest(self) -> None:
        ((longest, _),) = Counter(name for name, _ in self._waiting).most_common(1)
        entry = next(entry for entry in reversed(self._waiting) if entry[0] == longest)
        self._waiting.remove(entry)
        if not entry[1].done():
            entry[1].set_exception(TooMany(NOT_ADMITTED, retry_after=1))


class RateLimits:
    """A bucket of tokens for each tenant, filled at a steady rate; a request takes one token."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}  # tokens left, as of when, by tenant
        self._lock = threading.Lock()

    def take(self, tenant: str, *, rate: float, burst: float) -> None:
        """Count one request of a tenant; refused if its bucket is empty."""
        moment = self._clock()
        with self._lock:
            left, since = self._buckets.get(tenant, (burst, moment))
            left = min(burst, left + (moment - since) * rate)
            allowed = left >= 1
            self._buckets[tenant] = (left - allowed, moment)
        if not allowed:
            seconds = (1 - left) / rate if rate > 0 else 60.0
            raise TooMany("This tenant sends more requests than its limit allows. Wait.", retry_after=seconds)
