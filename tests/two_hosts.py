"""Two network namespaces as two hosts, a Ray node on each, and the cable between them cut in the middle of a run.

    python tests/two_hosts.py        # as root, on Linux, with Ray installed; says what happened as JSON

The driver and the head of the cluster are on one host. No host is told that the link is down: the driver must end with
every result, by doing the jobs of the far side on the near one.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from manymetrics.engine import Engine
from manymetrics.values import Job

NEAR, FAR = "10.213.7.1", "10.213.7.2"
PORT = 6479
JOBS = [Job(f"u{number}", {"number": number}) for number in range(24)]
CUT_AFTER = 4  # jobs
LONGEST = 400.0  # seconds


def square(job: Job, shared: int) -> bytes:
    """A job that takes a while."""
    time.sleep(1.0)
    return str(shared * job.spec["number"] ** 2).encode()


def ip(command: str) -> None:
    """One step of the plumbing."""
    subprocess.run(["ip", *command.split()], check=True, capture_output=True)


@contextlib.contextmanager
def two_hosts() -> Iterator[tuple[str, str, str]]:
    """Two namespaces and the far end of the cable between them."""
    mark = uuid4().hex[:6]
    near, far, cable = f"mm-near-{mark}", f"mm-far-{mark}", f"mm{mark}"
    try:
        for host in (near, far):
            ip(f"netns add {host}")
            ip(f"-n {host} link set lo up")
        ip(f"link add {cable}a netns {near} type veth peer {cable}b netns {far}")
        for host, end, address in ((near, "a", NEAR), (far, "b", FAR)):
            ip(f"-n {host} addr add {address}/24 dev {cable}{end}")
            ip(f"-n {host} link set {cable}{end} up")
        yield near, far, f"{cable}b"
    finally:
        for host in (near, far):
            pids = subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True, check=False).stdout
            for pid in pids.split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", host], check=False, capture_output=True)


def start_on(host: str, *arguments: str) -> subprocess.Popen[str]:
    """Start Python on a host."""
    command = ["ip", "netns", "exec", host, sys.executable, *arguments]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def start_node(host: str, address: str, *arguments: str) -> None:
    """A Ray node on a host."""
    ray = ["-m", "ray.scripts.scripts", "start", f"--node-ip-address={address}", "--num-cpus=1"]
    node = start_on(host, *ray, "--object-store-memory=100000000", *arguments)
    told, _ = node.communicate(timeout=LONGEST)
    if node.returncode:
        raise RuntimeError(f"The node {address} did not start: {told}")


def drive() -> None:
    """The driver, on the near host; tells of each job that is done."""
    with Engine(3, ray=f"{NEAR}:{PORT}", report=lambda progress: print(f"done {progress.done}", flush=True)) as engine:  # noqa: T201
        results = engine("stage", square, JOBS)
    sys.stdout.write("results " + json.dumps({name: result.decode() for name, result in results.items()}) + "\n")


def cut_in_the_middle() -> dict[str, object]:
    """Run the jobs on two hosts, cut the cable on the way, and say what came of it."""
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "fedcba9876543210" * 4, "RAY_USAGE_STATS_ENABLED": "0"}
    os.environ |= {"RAY_health_check_timeout_ms": "3000", "RAY_health_check_period_ms": "1000"}
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    with TemporaryDirectory(prefix="mm") as folder, two_hosts() as (near, far, cable):
        start_node(near, NEAR, "--head", f"--port={PORT}", "--include-dashboard=false", f"--temp-dir={folder}/near")
        start_node(far, FAR, f"--address={NEAR}:{PORT}")
        driver = start_on(near, "-c", "import two_hosts; two_hosts.drive()")
        told = []
        for line in driver.stdout or ():
            told.append(line)
            if line == f"done {CUT_AFTER}\n":  # at the far end: the near host must keep its own address
                ip(f"-n {far} link set {cable} down")
        driver.wait(LONGEST)
        said = [line.removeprefix("results ") for line in told if line.startswith("results ")]
        if not said:
            raise RuntimeError("".join(told))
        results = json.loads(said[0])
        right = {job.name: str(3 * job.spec["number"] ** 2) for job in JOBS}
        return {"jobs": len(results), "cut": f"done {CUT_AFTER}\n" in told, "right": results == right}


def allowed() -> str | None:
    """Why namespaces cannot be used here, or None where they can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "only root on Linux may make network namespaces"
    try:
        with two_hosts():
            return None
    except (OSError, subprocess.CalledProcessError) as problem:
        return f"network namespaces are not allowed here: {problem}"


if __name__ == "__main__":
    reason = allowed()
    sys.stdout.write(json.dumps({"skipped": reason} if reason else cut_in_the_middle()) + "\n")
