"""Run jobs on a Ray cluster, as Ray tasks; Ray runs a job again if its worker or node is lost.

Results come back to this process, the only one that writes, so the nodes need no common disk. Every node must have the
library versions of this process and the same kind of processor, or its bits could differ: each job checks that first.
Anybody who can reach a Ray cluster without a token can run programs on it, so a token is required.
"""

import contextlib
import functools
import ipaddress
import logging
import os
import platform
from collections import deque
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from manymetrics.engine.run_job import Do, GetReady, JobFailed, Limits, Outcome, run_job
from manymetrics.errors import EnvironmentProblem, MissingExtra
from manymetrics.values import Job

LIBRARIES = ("manymetrics", "numpy", "scipy", "safetensors", "torch")
INSTRUCTION_SETS = ("avx512f", "avx2", "asimd")  # they decide the order of sums; the widest first
RETRIES = 2  # of a job whose worker is lost
POLL = 2.0  # seconds between two checks of the number of cores


class RayExecutor:
    """Runs jobs on the nodes of a running cluster."""

    def __init__(self, shared: Any, address: str, limits: Limits, get_ready: GetReady) -> None:
        require_safe(address)
        self._ray = _connect(address)
        self._shared, self._limits, self._get_ready = self._ray.put(shared), limits, get_ready
        self._task = self._ray.remote(run_on_node)
        self._losses = 0  # how often cores were lost

    def __call__(self, do: Do, jobs: Sequence[Job]) -> Iterator[tuple[Job, Outcome]]:
        """Each job with its outcome, in the order in which they end; two for each core are submitted at a time.

        Ray may take minutes to notice that a node is unreachable. When cores are lost, all submitted jobs are
        submitted once more, and the first of two equal results counts.
        """
        waiting, cores = deque(jobs), 0
        submitted: dict[Any, Job] = {}
        while waiting or submitted:
            cores_before, cores = cores, max(1, int(self._ray.cluster_resources().get("CPU", 1)))
            self._losses += cores < cores_before
            again = {job.name: job for job in submitted.values()} if cores < cores_before else {}
            while waiting and len(submitted) < 2 * cores:
                job = waiting.popleft()
                submitted[self._submit(do, job)] = job
            submitted |= {self._submit(do, job): job for job in again.values()}
            for ended in self._ray.wait(list(submitted), timeout=POLL)[0]:
                if ended in submitted:
                    job = submitted[ended]
                    submitted = {task: other for task, other in submitted.items() if other.name != job.name}
                    yield job, self._get(ended)

    def close(self, *, at_once: bool) -> None:
        """Disconnect from the cluster."""
        self._ray.shutdown()

    def _submit(self, do: Do, job: Job) -> Any:
        """Submit a job to Ray.

        Ray queues tasks with equal requirements behind one another, and after a loss the first of them may wait for an
        unreachable node. A requirement of one byte more makes another queue.
        """
        task = self._task.options(num_cpus=1, memory=1 + self._losses, max_retries=RETRIES)
        return task.remote(environment(), do, job, self._shared, self._limits, self._get_ready)

    def _get(self, ended: Any) -> Outcome:
        failures = self._ray.exceptions
        try:
            outcome: Outcome = self._ray.get(ended)
        except (failures.WorkerCrashedError, failures.OutOfMemoryError, failures.NodeDiedError) as problem:
            resource = "memory" if self._limits.seconds is None else "memory or time"
            return JobFailed(
                f"it lost its worker {1 + RETRIES} times, perhaps for want of {resource} ({type(problem).__name__})"
            )
        except failures.RayError as problem:
            raise EnvironmentProblem(
                f"The cluster failed: {_first_line(problem)}. With --run the same command resumes once it is repaired."
            ) from problem
        return outcome


def require_safe(address: str) -> None:
    """Refuse a cluster without a token or with a public address."""
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
def environment() -> dict[str, str]:
    """The versions and the kind of processor that the bits of a result depend on."""
    processor = [platform.machine()]
    with contextlib.suppress(OSError):
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
        processor += [name for name in INSTRUCTION_SETS if name in flags]
    versions = dict.fromkeys(LIBRARIES, "none")
    for name in LIBRARIES:
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {**versions, "python": platform.python_version().rpartition(".")[0], "processor": " ".join(processor)}


def run_on_node(expected: dict[str, str], do: Do, job: Job, shared: Any, *options: Any) -> Outcome:
    """Run a job on this node, unless its results could differ from those of the submitting process."""
    values = environment()
    for name, wanted in expected.items():
        if values[name] != wanted:
            return JobFailed(
                f"The node {platform.node()} has {name} {values[name]}, and here it is {wanted}: its results could "
                "differ. Give all nodes the same, or take this one out of the cluster.",
                everywhere=True,
            )
    return run_job(do, job, shared, *options)


def _connect(address: str) -> Any:
    try:
        import ray
    except ImportError as problem:
        raise MissingExtra(
            'A cluster needs Ray, which is not installed. Install it with: pip install "manymetrics[ray]"'
        ) from problem
    os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))  # Ray retries without end by default
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
