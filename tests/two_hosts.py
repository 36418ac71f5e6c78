"""Two network namespaces as two hosts, a Ray node on each, and the cable between them cut in the middle of a run.

    python tests/two_hosts.py        # as root, on Linux, with Ray installed; says what happened as JSON

The head and the driver are on one host; the other has one node and a folder for temporary files of its own. Units go to
both. The link is taken down while jobs are under way on the far side: no host is told. The driver must end with every
result, by doing the lost jobs on what is left.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from manymetrics.engine import Engine
from manymetrics.values import Job

NEAR, FAR = "10.213.7.1", "10.213.7.2"
PORT = 6479
UNITS = [Job(f"u{number}", {"number": number}) for number in range(24)]
CUT_AFTER = 4  # jobs
LONGEST = 400.0  # seconds


def square(job: Job, shared: int) -> bytes:
    """A job that takes a while, and says where it was done only by taking longer."""
    time.sleep(1.0)
    return str(shared * job.spec["number"] ** 2).encode()


class Hosts:
    """Two namespaces with a cable between them."""

    def __init__(self) -> None:
        mark = uuid4().hex[:6]
        self.near, self.far = f"mm-near-{mark}", f"mm-far-{mark}"
        self.cable = f"mm{mark}"

    def __enter__(self) -> "Hosts":
        for host in (self.near, self.far):
            ip("netns", "add", host)
            ip("-n", host, "link", "set", "lo", "up")
        ip(
            "link",
            "add",
            f"{self.cable}a",
            "netns",
            self.near,
            "type",
            "veth",
            "peer",
            f"{self.cable}b",
            "netns",
            self.far,
        )
        for host, end, address in ((self.near, "a", NEAR), (self.far, "b", FAR)):
            ip("-n", host, "addr", "add", f"{address}/24", "dev", f"{self.cable}{end}")
            ip("-n", host, "link", "set", f"{self.cable}{end}", "up")
        return self

    def __exit__(self, *why: object) -> None:
        for host in (self.near, self.far):
            pids = subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True, check=False).stdout
            for pid in pids.split():
                if int(pid) != os.getpid():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
            ip("netns", "del", host)

    def cut(self) -> None:
        """Pull the cable, at the far end: the near host must keep its own address."""
        ip("-n", self.far, "link", "set", f"{self.cable}b", "down")

    def on(self, host: str, *words: str, **options: object) -> subprocess.Popen[str]:
        """Start a program on a host."""
        return subprocess.Popen(["ip", "netns", "exec", host, *words], text=True, **options)  # type: ignore[call-overload,no-any-return]


def ip(*words: str) -> None:
    """One step of the plumbing."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


def allowed() -> str | None:
    """Why namespaces cannot be used here, or None where they can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "only root on Linux may make network namespaces"
    try:
        with Hosts():
            return None
    except (OSError, subprocess.CalledProcessError) as problem:
        return f"network namespaces are not allowed here: {problem}"


def start_node(hosts: Hosts, host: str, address: str, folder: Path) -> None:
    """A Ray node; the near one is the head."""
    where = ["--head", f"--port={PORT}"] if host == hosts.near else [f"--address={NEAR}:{PORT}"]
    words = ["-m", "ray.scripts.scripts", "start", *where, f"--node-ip-address={address}", "--num-cpus=1"]
    words += ["--object-store-memory=100000000"]
    if host == hosts.near:
        words += ["--include-dashboard=false", f"--temp-dir={folder}"]
    node = hosts.on(host, sys.executable, *words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    told, _ = node.communicate(timeout=LONGEST)
    if node.returncode:
        raise RuntimeError(f"The node {address} did not start: {told}")


def drive() -> None:
    """The driver, on the near host; tells of each job that is done."""

    def tell(progress: object) -> None:
        sys.stdout.write(f"done {progress.done}\n")  # type: ignore[attr-defined]
        sys.stdout.flush()

    with Engine(3, ray=f"{NEAR}:{PORT}", report=tell) as engine:
        results = engine("stage", square, UNITS)
    sys.stdout.write("results " + json.dumps({name: result.decode() for name, result in results.items()}) + "\n")


def cut_in_the_middle() -> dict[str, object]:
    """Run the jobs on two hosts, cut the cable on the way, and say what came of it."""
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "fedcba9876543210" * 4}
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    os.environ |= {"RAY_health_check_timeout_ms": "3000", "RAY_health_check_period_ms": "1000"}
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with TemporaryDirectory(prefix="mm") as folder, Hosts() as hosts:
        start_node(hosts, hosts.near, NEAR, Path(folder) / "near")
        start_node(hosts, hosts.far, FAR, Path(folder) / "far")
        code = "import two_hosts; two_hosts.drive()"
        driver = hosts.on(hosts.near, sys.executable, "-c", code, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        cut_at, results, told = None, None, []
        for line in driver.stdout or ():
            told.append(line)
            word, _, rest = line.partition(" ")
            if word == "done" and int(rest) == CUT_AFTER:
                hosts.cut()
                cut_at = time.monotonic()
            elif word == "results":
                results = json.loads(rest)
        driver.wait(LONGEST)
        if results is None:
            raise RuntimeError("".join(told))
        return {"jobs": len(results), "seconds_after_the_cut": round(time.monotonic() - (cut_at or 0), 1),
                "right": results == {job.name: str(3 * job.spec["number"] ** 2) for job in UNITS}}  # fmt: skip


if __name__ == "__main__":
    reason = allowed()
    sys.stdout.write(json.dumps({"skipped": reason} if reason else cut_in_the_middle()) + "\n")
