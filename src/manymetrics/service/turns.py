"""Turns of requests: few are worked on at a time, those of all tenants in turn, and a bounded number waits.

All requests of a process share its processor, so a tenant that sends many at once would be read, parsed and looked up
before another's single one. Here a request waits, at no cost, until it is its tenant's turn. Where too many wait, the
latest of the longest line is refused, which is the flood's own.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque

from manymetrics.service.problems import TooMany

FULL = "The service has more requests than it can answer soon. Try again."


class Turns:
    """Who is worked on and who waits; for one event loop."""

    def __init__(self, *, at_once: int, each: int, most: int) -> None:
        self._at_once, self._each, self._most = at_once, each, most
        self._working: Counter[str] = Counter()  # by line
        self._waiting = 0
        self._lines: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    def __len__(self) -> int:
        return self._waiting

    def refuses(self, line: str) -> bool:
        """Whether a request would be refused: all places are taken, and no line is longer than its own would be."""
        if not self._is_full():
            return False
        return not self._is_free(line) and self._longest() <= len(self._lines.get(line, ())) + 1

    async def take(self, line: str) -> None:
        """Wait for a turn; refused at once where too many wait."""
        if line not in self._lines and self._is_free(line):
            self._working[line] += 1
            return
        if self.refuses(line):
            raise TooMany(FULL, retry_after=1)
        if self._is_full():
            self._refuse_one()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(line, deque()).append(turn)
        self._waiting += 1
        try:
            await turn
        except asyncio.CancelledError:
            self._forget(line, turn)
            raise

    def leave(self, line: str) -> None:
        """Give the turn to who is next."""
        self._working[line] -= 1
        if not self._working[line]:
            del self._working[line]
        while (chosen := next(filter(self._is_free, self._lines), None)) is not None:
            turn = self._lines[chosen].popleft()
            self._lines.move_to_end(chosen)
            self._close_up(chosen)
            if not turn.done():
                self._working[chosen] += 1
                turn.set_result(None)

    def _is_free(self, line: str) -> bool:
        return self._working.total() < self._at_once and self._working[line] < self._each

    def _is_full(self) -> bool:
        return self._waiting + self._working.total() >= self._most

    def _longest(self) -> int:
        return max((len(turns) for turns in self._lines.values()), default=0)

    def _refuse_one(self) -> None:
        line = max(self._lines, key=lambda one: len(self._lines[one]))
        turn = self._lines[line].pop()
        self._close_up(line)
        if not turn.done():
            turn.set_exception(TooMany(FULL, retry_after=1))

    def _forget(self, line: str, turn: asyncio.Future[None]) -> None:
        """A request that has gone away while it waited, or just as its turn came."""
        if turn.done() and not turn.cancelled() and turn.exception() is None:
            self.leave(line)
        elif turn in self._lines.get(line, ()):
            self._lines[line].remove(turn)
            self._close_up(line)

    def _close_up(self, line: str) -> None:
        """One less waits in a line."""
        self._waiting -= 1
        if not self._lines[line]:
            del self._lines[line]


class Turn:
    """The turn of one request, taken when it is wanted and left once."""

    def __init__(self, turns: Turns, line: str) -> None:
        self._turns, self._line, self._taken = turns, line, False

    @property
    def is_refused(self) -> bool:
        """Whether it would be refused now."""
        return self._turns.refuses(self._line)

    async def take(self) -> None:
        """Wait for it, unless it was taken before."""
        if not self._taken:
            await self._turns.take(self._line)
            self._taken = True

    def leave(self) -> None:
        """Let others on, if it was taken."""
        if self._taken:
            self._taken = False
            self._turns.leave(self._line)
