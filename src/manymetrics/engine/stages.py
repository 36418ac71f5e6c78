"""A stage: many units -> their results by name. What is in the run is not done again, what fails is said and left out.

Finished units are written to the run, if there is one, before they are reported.
"""

import json
import logging
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Protocol

from manymetrics.engine.code import code_fingerprint
from manymetrics.engine.local import InThisProcess, InWorkers
from manymetrics.engine.units import (
    NO_LIMITS,
    Broken,
    Do,
    Limits,
    Outcome,
    describe,
    holds_usable_numbers,
    need_nothing,
)
from manymetrics.errors import EnvironmentProblem, ManyMetricsError, ModelError, UnitLeftOut, UnitsFailed
from manymetrics.store.runs import Failure, Run
from manymetrics.values import Unit

LOG = logging.getLogger("manymetrics")
LOG.addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Progress:
    """How far a stage has come."""

    stage: str
    done: int
    total: int
    seconds: float
    kept: int = 0  # units that were there already
    failures: tuple[Failure, ...] = ()  # units of this stage that have no result
    running: tuple[str, ...] = ()  # units that are worked on until the next report; on a Ray cluster nobody knows

    @property
    def left(self) -> int:
        """Units that have neither a result nor failed."""
        return self.total - self.done - len(self.failures)

    @property
    def rate(self) -> float | None:
        """Units a second, of those that were not there already; None before the first has ended."""
        tried = self.done - self.kept + len(self.failures)
        return tried / self.seconds if tried and self.seconds else None

    @property
    def seconds_left(self) -> float | None:
        """How long the stage will take if it goes on so; None before the first unit has ended."""
        return None if self.rate is None else self.left / self.rate


class Place(Protocol):
    """Where units run."""

    def __call__(self, do: Do, units: Sequence[Unit]) -> Iterator[tuple[Unit, Outcome]]:
        """Each unit with what came of it."""

    def close(self, *, at_once: bool) -> None:
        """Put away what was set up; at once, if nobody wants what is still being done."""


class Engine:
    """Does units in this process, in worker processes that hold the shared bank, or on a Ray cluster.

    Where units have limits, a worker calls `get_ready` first: what it loads there is no unit's.
    """

    def __init__(
        self,
        shared: Any,
        *,
        workers: int = 1,
        ray: str | None = None,
        limits: Limits = NO_LIMITS,
        get_ready: Callable[[], None] = need_nothing,
        run: Run | None = None,
        report: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        self._shared, self._workers, self._ray, self._limits = shared, workers, ray, limits
        self._get_ready, self._run, self._report = get_ready, run, report
        self._place: Place | None = None
        self._kept = False  # whether a result came from the run

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *why: object) -> None:
        if self._place is not None:
            self._place.close(at_once=why[0] is not None)
        problem = why[1]
        if self._run and self._kept and isinstance(problem, Exception) and not isinstance(problem, ManyMetricsError):
            raise ModelError(
                f"What was kept in {self._run.folder} cannot be gone on with: {describe(problem)}. "
                "Give another folder for the run."
            ) from problem

    def __call__(self, stage: str, do: Do, units: Sequence[Unit]) -> dict[str, bytes]:
        """Do every unit that is not in the run yet; results by the units' names, in their order.

        A unit that fails has no result, and a warning `UnitLeftOut` says why. Where all fail, the stage does.
        """
        started = time.monotonic()
        keys = {unit.name: Run.key(stage, unit, code_fingerprint(do)) for unit in units} if self._run else {}
        results, todo = self._look_up(stage, keys, units)
        kept, done = len(units) - len(todo), len(units) - len(todo)
        self._kept = self._kept or bool(results)
        failures: tuple[Failure, ...] = ()
        under_way = _UnderWay(todo, 0 if self._ray is not None else self._workers)
        LOG.info("%s: %d units, %d of them there already", stage, len(units), kept)
        self._report(Progress(stage, done, len(units), 0.0, kept, running=under_way.names()))
        for unit, outcome in self._work(do, todo):
            if isinstance(outcome, Broken):
                failures = (*failures, self._fail(stage, keys, unit, outcome))
            else:
                if self._run:
                    self._run.put(stage, keys[unit.name], unit, outcome)
                results[unit.name] = _with_parts(results.get(unit.name), outcome) if unit.parts else outcome
                done += 1
            under_way.end(unit)
            seconds = max(time.monotonic() - started, 1e-9)
            self._report(Progress(stage, done, len(units), seconds, kept, failures, under_way.names()))
        LOG.info("%s: %d of %d units done after %.1f s", stage, done, len(units), time.monotonic() - started)
        _tell(stage, failures, of=len(units))
        return {unit.name: results[unit.name] for unit in units if unit.name in results}

    def _look_up(self, stage: str, keys: dict[str, str], units: Sequence[Unit]) -> tuple[dict[str, bytes], list[Unit]]:
        """What the run holds, and what is left to do."""
        if self._run is None:
            return {}, list(units)
        self._run.plan(stage, list(keys.values()))
        results, todo = {}, []
        for unit in units:
            found = self._run.get(stage, keys[unit.name], unit)
            if unit.parts:
                there = json.loads(found or b"{}")
                missing = {name: mark for name, mark in unit.parts.items() if name not in there}
                found = found if there else None
                if missing:
                    todo.append(replace(unit, parts=missing))
            elif found is None or not holds_usable_numbers(found):
                found = None
                todo.append(unit)
            if found is not None:
                results[unit.name] = found
        return results, todo

    def _work(self, do: Do, units: list[Unit]) -> Iterator[tuple[Unit, Outcome]]:
        if not units:
            return iter(())
        if self._place is None:
            self._place = self._set_up()
        return self._place(do, units)

    def _set_up(self) -> Place:
        if self._ray is not None:
            from manymetrics.engine.on_ray import OnRay

            return OnRay(self._shared, address=self._ray, limits=self._limits, get_ready=self._get_ready)
        if self._workers == 1 and self._limits == NO_LIMITS:
            return InThisProcess(self._shared)
        return InWorkers(self._shared, workers=self._workers, limits=self._limits, get_ready=self._get_ready)

    def _fail(self, stage: str, keys: dict[str, str], unit: Unit, outcome: Broken) -> Failure:
        if outcome.everywhere:
            raise EnvironmentProblem(outcome.error)
        if self._run:
            return self._run.fail(stage, keys[unit.name], unit.name, outcome.error)
        return Failure(stage, unit.name, outcome.error)


class _UnderWay:
    """Which units are worked on: they are handed out in their order, to so many workers."""

    def __init__(self, units: Sequence[Unit], workers: int) -> None:
        self._waiting, self._ended, self._workers = deque(unit.name for unit in units), set[str](), workers

    def end(self, unit: Unit) -> None:
        self._ended.add(unit.name)
        while self._waiting and self._waiting[0] in self._ended:
            self._waiting.popleft()

    def names(self) -> tuple[str, ...]:
        return tuple(islice((name for name in self._waiting if name not in self._ended), self._workers))


def _with_parts(before: bytes | None, payload: bytes) -> bytes:
    return payload if before is None else json.dumps(json.loads(before) | json.loads(payload), sort_keys=True).encode()


def _tell(stage: str, failures: Sequence[Failure], *, of: int) -> None:
    if failures and len(failures) == of:
        first = failures[0]
        raise UnitsFailed(f"Nothing came of {stage}: all {of} units failed. The first, {first.unit!r}: {first.error}")
    for failure in failures:
        warnings.warn(
            f"{stage} of {failure.unit!r} failed: {failure.error.rstrip('.')}. The others go on without it.",
            UnitLeftOut,
            stacklevel=3,
        )
