"""What a run survives: kills at random moments, a disk that is full, files that are damaged, tasks that fail."""

import importlib.util
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from manymetrics.engine import Engine
from manymetrics.errors import EnvironmentProblem, JobSkipped, NotEnoughExamples
from manymetrics.learn import learn_metrics
from manymetrics.measure import transfer
from manymetrics.store import Run, runs
from manymetrics.values import Job

SCRIPT = Path(__file__).with_name("survival.py")


@pytest.mark.skipif(sys.platform != "linux", reason="looks for workers in /proc")
def test_a_learning_that_is_killed_again_and_again_ends_with_the_same_bytes(tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
    spec = importlib.util.spec_from_file_location("survival", SCRIPT)
    survival = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(survival)
    (row,) = survival.survive(tmp_path, runs=1, seed=3)
    assert row["driver"] + row["worker"] >= 1


@pytest.fixture
def small_disk(tmp_path, monkeypatch):
    """A disk of a megabyte, and a way to give it another size."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    monkeypatch.setattr(runs, "SECOND_TRY", 0.01)
    place = tmp_path / "disk"
    place.mkdir()

    def mount(*options):
        done = subprocess.run(["mount", "-t", "tmpfs", *options, "none", place], capture_output=True, check=False)
        return done.returncode == 0

    if not mount("-o", "size=1m"):
        pytest.skip("this machine does not let a small disk be mounted")
    yield place, lambda size: mount("-o", f"remount,size={size}")
    subprocess.run(["umount", place], check=True)


def large(job, shared):
    shared.append(job.name)
    return job.name.encode() * 150_000


def test_a_full_disk_is_one_sentence_and_nothing_finished_is_lost(small_disk):
    place, resize = small_disk
    jobs, done = [Job(name, {}) for name in "abcdefghijkl"], []
    with (
        Run.open(place / "run") as run,
        Engine(done, run=run) as engine,
        pytest.raises(EnvironmentProblem, match=r"^Could not write .*: No space left on device\. Make room or choose"),
    ):
        engine("stage", large, jobs)
    kept = done[:-1]
    assert 3 <= len(kept) < len(jobs)
    assert not list(place.rglob("*.tmp"))
    assert resize("8m")
    with Run.open(place / "run") as run, Engine(done, run=run) as engine:
        results = engine("stage", large, jobs)
    assert results == {job.name: job.name.encode() * 150_000 for job in jobs}
    assert [name for name in done if name in kept] == kept, "what was finished is not done again"


def test_a_learning_on_a_disk_that_is_full_ends_with_the_same_bytes_once_there_is_room(
    tiny_bank, tiny_recipe, vectors, small_disk, tmp_path
):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    place, resize = small_disk
    assert resize("40k")
    with pytest.raises(EnvironmentProblem, match="No space left on device"):
        learn_metrics(tiny_bank, tiny_recipe, vectors=vectors, run=place / "run")
    kept = {path: path.stat().st_mtime_ns for path in (place / "run" / "jobs").rglob("*") if path.is_file()}
    assert len(kept) >= 2
    assert resize("8m")
    learn_metrics(tiny_bank, tiny_recipe, vectors=vectors, run=place / "run")
    learn_metrics(tiny_bank, tiny_recipe, vectors=vectors, run=tmp_path / "undisturbed")
    assert files(place / "run") == files(tmp_path / "undisturbed")
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, "what was finished is not done again"


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def damage(path, how):
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2] if how == "cut" else raw[:50] + bytes([raw[50] ^ 4]) + raw[51:])


def test_only_networks_need_torch_before_jobs_are_limited():
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    code = "import sys; from manymetrics.recipe import representation_kind; representation_kind({!r}).prepare_worker()"
    code += "; print('torch' in sys.modules)"
    for kind, expected in (("projection", "False"), ("convolution", "True")):
        done = subprocess.run([sys.executable, "-c", code.format(kind)], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected


def test_damaged_jobs_of_every_stage_are_done_again_with_the_same_bytes(tiny_bank, tiny_recipe, vectors, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    learn_metrics(tiny_bank, tiny_recipe, vectors=vectors, run=tmp_path)
    before = files(tmp_path)
    damaged = {}
    for stage in (tmp_path / "jobs").iterdir():
        jobs = sorted(stage.glob("*/*"))[:2]
        for job, how in zip(jobs, ("cut", "flipped"), strict=False):
            damage(job, how)
        damaged[stage.name] = len(jobs)
    reports = []
    learn_metrics(tiny_bank, tiny_recipe, vectors=vectors, run=tmp_path, report=reports.append)
    assert files(tmp_path) == before
    last = {(report.stage, report.total): report for report in reports if report.stage in damaged}
    again = Counter()  # a stage may be worked on twice: the shared projection, then those of the clusters
    for (stage, _), report in last.items():
        again[stage] += report.total - report.kept
    assert again == damaged
    assert damaged == {"measure-models": 2, "measure-transfer": 2, "specialize": 2}


def test_a_task_that_cannot_be_learned_is_named_and_the_others_become_a_model(
    make_bank, tiny_recipe, vectors, tmp_path, monkeypatch
):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    train = transfer.fit_single_task

    def train_most(job, bank):
        if job.name == "colour-1":
            raise NotEnoughExamples("It has nothing to say.")
        return train(job, bank)

    monkeypatch.setattr(transfer, "fit_single_task", train_most)
    bank = make_bank(3)
    with pytest.warns(JobSkipped, match="measure-models of 'colour-1' failed: It has nothing to say"):
        model = learn_metrics(bank, tiny_recipe, vectors=vectors, run=tmp_path)
    assert set(model.clusters.names) == set(bank.names) - {"colour-1"}
    monkeypatch.undo()
    whole = learn_metrics(bank, tiny_recipe, vectors=vectors, run=tmp_path)
    assert set(whole.clusters.names) == set(bank.names)
