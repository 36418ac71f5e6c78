"""Units on a Ray cluster: the same functions, sent to whatever nodes there are.

Of Ray only tasks are used: remote, put, wait and get. A unit whose worker or node is lost is done again elsewhere, by
Ray; results come back to this process, which alone writes, so the nodes need no disk in common. Every node must have
the versions that this process has, and the same kind of processor, or its bits could differ: each unit looks first.

Anybody who can reach a Ray cluster without a token can run programs on it. So none is used without one.
"""

import contextlib
import functools
import ipaddress
import logging
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from manymetrics.engine.units import Broken, Do, Limits, Outcome, do_unit
from manymetrics.errors import EnvironmentProblem, MissingExtra
from manymetrics.values import Unit

AUTO = "auto"
LIBRARIES = ("manymetrics", "numpy", "scipy", "numba", "safetensors", "torch")
INSTRUCTIONS = ("avx512f", "avx2", "asimd")  # sets of them that decide how sums are ordered, the widest first
RETRIES = 2  # of a unit whose worker is lost
LOOK = 2.0  # seconds between two looks at how many cores there are


class OnRay:
    """Does units on the nodes of a cluster that runs already."""

    def __init__(self, shared: Any, *, address: str, limits: Limits, get_ready: Callable[[], None]) -> None:
        require_safe(address)
        self._ray = _connect(address)
        self._shared, self._limits, self._get_ready = self._ray.put(shared), limits, get_ready
        self._task = self._ray.remote(do_on_node)
        self._losses = 0  # how often cores were lost

    def __call__(self, do: Do, units: Sequence[Unit]) -> Iterator[tuple[Unit, Outcome]]:
        """Each unit with what came of it, in the order in which they end; two for each core are under way.

        Ray may take minutes to give up a node whose cable was pulled. When cores are gone, all that is under way is
        sent once more, and of two equal results the first counts.
        """
        waiting = list(reversed(units))
        live: dict[Any, Unit] = {}
        cores = self._cores()
        while waiting or live:
            left = self._cores()
            again = {unit.name: unit for unit in live.values()} if left < cores else {}
            self._losses += left < cores
            cores = left
            while waiting and len(live) < 2 * cores:
                unit = waiting.pop()
                live[self._send(do, unit)] = unit
            for unit in again.values():
                live[self._send(do, unit)] = unit
            for ended in self._ray.wait(list(live), timeout=LOOK)[0]:
                if ended in live:
                    unit = live[ended]
                    live = {sent: other for sent, other in live.items() if other.name != unit.name}
                    yield unit, self._get(ended)

    def _cores(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def _send(self, do: Do, unit: Unit) -> Any:
        """Hand a unit to Ray.

        Ray queues tasks of equal needs behind one another, and after a loss the first of them may wait for a node that
        does not answer. A need of one byte more makes another queue.
        """
        task = self._task.options(num_cpus=1, memory=1 + self._losses, max_retries=RETRIES)
        return task.remote(do, unit, self._shared, (self._limits, self._get_ready), surroundings())

    def close(self, *, at_once: bool) -> None:
        """Leave the cluster, which goes on without us."""
        self._ray.shutdown()

    def _get(self, ended: Any) -> Outcome:
        failures = self._ray.exceptions
        try:
            outcome: Outcome = self._ray.get(ended)
        except (failures.WorkerCrashedError, failures.OutOfMemoryError, failures.NodeDiedError) as problem:
            why = "memory" if self._limits.seconds is None else "memory or time"
            return Broken(
                f"it lost its worker {1 + RETRIES} times, perhaps for want of {why} ({type(problem).__name__})"
            )
        except failures.RayError as problem:
            raise EnvironmentProblem(
                f"The cluster failed: {_first_line(problem)}. With --run the same command goes on once it is mended."
            ) from problem
        return outcome


def require_safe(address: str) -> None:
    """Refuse a cluster that asks for no token, or that lies open to the internet."""
    if os.environ.get("RAY_AUTH_MODE") != "token":
        raise EnvironmentProblem(
            "A Ray cluster without a token takes orders from anybody who can reach it. Set RAY_AUTH_MODE=token here "
            "and where the nodes are started, and give all of them the same token: ray get-auth-token --generate"
        )
    host = address.removeprefix("ray://").rpartition(":")[0].strip("[]")
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_global:
            raise EnvironmentProblem(
                f"{host} is a public address. Keep a Ray cluster in a private network, and give its address there."
            )


@functools.cache
def surroundings() -> dict[str, str]:
    """What the bits of a result depend on beside the unit: versions, and the kind of processor."""
    found = {"python": ".".join(platform.python_version_tuple()[:2]), "processor": platform.machine()}
    with contextlib.suppress(OSError):
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
        found["processor"] += "".join(f" {name}" for name in INSTRUCTIONS if name in flags)
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def do_on_node(
    do: Do, unit: Unit, shared: Any, terms: tuple[Limits, Callable[[], None]], expected: dict[str, str]
) -> Outcome:
    """A unit on whatever node it was sent to, unless that one would compute other bits than here."""
    found = surroundings()
    for name, wanted in expected.items():
        if found[name] != wanted:
            return Broken(
                f"The node {platform.node()} has {name} {found[name]}, and here it is {wanted}: its results could "
                "differ. Give all nodes the same, or take this one out of the cluster.",
                everywhere=True,
            )
    return do_unit(do, unit, shared, *terms)


def _connect(address: str) -> Any:
    try:
        import ray
    except ImportError as problem:
        raise MissingExtra(
            'A cluster needs Ray, which is not installed. Install it with: pip install "manymetrics[ray]"'
        ) from problem
    os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))  # Ray's own default is to try for ever
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as problem:
        raise EnvironmentProblem(
            f"No cluster answers at {address!r}: {_first_line(problem)}. Start one with `ray start --head "
            "--include-dashboard=false`, or give the address of one."
        ) from problem
    return ray


def _first_line(problem: BaseException) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0].rstrip(".")
