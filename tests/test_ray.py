"""Jobs on Ray: the same results with one node or three, with a node lost, and none without a token."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from manymetrics.engine import Engine, Limits
from manymetrics.engine.ray import environment, require_safe, run_on_node
from manymetrics.engine.run_job import JobFailed
from manymetrics.errors import EnvironmentProblem, JobSkipped
from manymetrics.learn import learn_metrics
from manymetrics.values import Job

JOBS = [Job(f"u{number}", {"number": number}) for number in range(12)]


def square(job, shared):
    return str(int(shared[0]) * job.spec["number"] ** 2).encode()


def misbehave(job, shared):
    if job.name == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    if job.name == "slow":
        time.sleep(60)
    if job.name == "bad":
        raise ValueError("bad luck")
    return b"fine"


def test_no_cluster_is_used_without_a_token(monkeypatch):
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    with (
        Engine(None, ray="auto") as engine,
        pytest.raises(EnvironmentProblem, match=r"takes orders from anybody.*RAY_AUTH_MODE=token"),
    ):
        engine("stage", square, JOBS)


def test_no_cluster_is_used_over_a_public_address(monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    for address in ("8.8.8.8:6379", "[2600::1]:6379"):
        with pytest.raises(EnvironmentProblem, match="is a public address"):
            require_safe(address)
    for address in ("auto", "10.0.0.7:6379", "127.0.0.1:6379", "head:6379", "[fd00::1]:6379"):
        require_safe(address)


def test_a_node_with_other_versions_is_refused():
    other = environment() | {"numpy": "1.0"}
    outcome = run_on_node(other, square, JOBS[1], np.array([2]))
    assert isinstance(outcome, JobFailed)
    assert outcome.everywhere
    assert f"has numpy {np.__version__}, and here it is 1.0" in outcome.error
    assert run_on_node(environment(), square, JOBS[3], np.array([2])) == b"18"


@pytest.fixture(scope="module")
def make_cluster(tmp_path_factory):
    """Starts Ray clusters on this machine, with a token, and stops them."""
    patch = pytest.MonkeyPatch()
    patch.setenv("RAY_AUTH_MODE", "token")  # Ray reads these when it is imported
    patch.setenv("RAY_AUTH_TOKEN", "0123456789abcdef" * 4)
    patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # nodes import the functions of this module
    pytest.importorskip("ray", reason="Ray is not installed: no cluster")
    from ray.cluster_utils import Cluster

    started = []

    def make(nodes):
        node = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=node)
        started.append(cluster)
        for _ in range(nodes - 1):
            cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20)
        return cluster

    yield make
    for cluster in started:
        cluster.shutdown()
    patch.undo()


def test_a_job_that_dies_hangs_or_fails_on_a_cluster_is_named_and_the_others_go_on(make_cluster):
    cluster = make_cluster(1)
    jobs = [Job(name, {}) for name in ("deadly", "slow", "bad", "good")]
    reports = []
    with (
        Engine(None, ray=cluster.address, limits=Limits(seconds=2), report=reports.append) as engine,
        pytest.warns(JobSkipped),
    ):
        assert engine("stage", misbehave, jobs) == {"good": b"fine"}
    errors = {failure.job: failure.error for failure in reports[-1].failures}
    assert "it lost its worker 3 times" in errors["deadly"]
    assert "it lost its worker 3 times" in errors["slow"]
    assert "bad luck" in errors["bad"]
    cluster.shutdown()


def test_workers_and_nodes_give_one_manifest_even_when_a_node_is_lost(
    make_cluster, tiny_bank, tiny_recipe, vectors, tmp_path
):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    manifests = {}

    def learn(name, **where):
        learn_metrics(tiny_bank, tiny_recipe, vectors=vectors, run=tmp_path / name, **where)
        manifests[name] = (tmp_path / name / "manifest.json").read_bytes()

    learn("one worker", workers=1)
    learn("two workers", workers=2)
    for name, nodes, losses in (("one node", 1, 0), ("three nodes", 3, 0), ("a node lost", 3, 1)):
        cluster = make_cluster(nodes)
        doomed = list(cluster.worker_nodes)[:losses]

        def lose(progress, cluster=cluster, doomed=doomed):
            if doomed and progress.done == 1:
                cluster.remove_node(doomed.pop(), allow_graceful=False)

        learn(name, ray=cluster.address, report=lose)
        assert not doomed
        cluster.shutdown()
    assert len(set(manifests.values())) == 1, manifests.keys()


def test_a_cable_that_is_cut_between_two_hosts_costs_only_time():
    pytest.importorskip("ray", reason="Ray is not installed: no cluster")
    script = Path(__file__).with_name("two_hosts.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    if told.get("skipped"):
        pytest.skip(told["skipped"])
    assert told["right"]
    assert told["jobs"] == 24
