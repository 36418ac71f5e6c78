"""What a run survives: kills at random moments, a disk that is full, files that are damaged, tasks that fail.

With MANYMETRICS_RUNS, so many learnings are killed again and again; 30 of them take some twenty minutes.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import manymetrics as mm
from manymetrics.errors import EnvironmentProblem
from manymetrics.learn import learn_metrics
from manymetrics.store import runs
from python_process import run_python
from tiny_sentence import vocabulary_of, write_folder

RUNS = int(os.environ.get("MANYMETRICS_RUNS", "1"))
RECIPE = "projection_steps = 200\nown_steps = 20\nown_rate = 0.01\nclusters = 4\n"  # and a small sentence encoder


@pytest.fixture
def command(tmp_path):
    """The command that learns from a small bank, with a run and a model in a folder."""
    pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
    past, _ = mm.sample_bank(0, tasks=16).split_off()
    mm.write_bank(past, tmp_path / "bank")
    encoder = write_folder(tmp_path / "encoder", pooling="mean", vocabulary=vocabulary_of(past), width=16)
    (tmp_path / "recipe.toml").write_text(f"encoder = {json.dumps(str(encoder))}\n{RECIPE}", encoding="utf-8")
    learn = [sys.executable, "-m", "manymetrics", "learn", tmp_path / "bank", "--recipe", tmp_path / "recipe.toml"]
    return lambda folder: [*learn, "--out", folder / "model", "--run", folder / "run", "--workers=2", "--replace", "-q"]


def content(folder):
    """All that must not depend on what happened on the way: jobs, manifest, model."""
    kept = [*(folder / "run" / "jobs").rglob("*"), folder / "run" / "manifest.json", *(folder / "model").iterdir()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept if path.is_file()}


def written(folder):
    """When each finished job was written."""
    found = {}
    for path in (folder / "run" / "jobs").glob("*/*/*"):
        with contextlib.suppress(FileNotFoundError):  # a file that is being written has another name until it is whole
            if not path.name.startswith("."):
                found[path.name] = path.stat().st_mtime_ns
    return found


def workers_of(driver):
    """The processes that a learning has started to work on jobs."""
    with contextlib.suppress(OSError):  # it ended meanwhile
        listed = [pid for path in Path(f"/proc/{driver}/task").glob("*/children") for pid in path.read_text().split()]
        return [int(pid) for pid in listed if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return []


def disturb(learn, folder, rng, *, kills, jobs):
    """Learn, with so many kills of the process or its workers on the way; gives how many there were."""
    killed, before = 0, {}
    while True:
        driver = subprocess.Popen(learn, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while driver.poll() is None and killed < kills:
            wanted = rng.randint(min(len(written(folder)), jobs - 1), jobs - 1)
            while driver.poll() is None and len(written(folder)) < wanted:
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 0.5))
            victims = workers_of(driver.pid) if rng.random() < 0.5 else [driver.pid]
            if driver.poll() is None and victims:
                killed += 1
                with contextlib.suppress(ProcessLookupError):  # it ended by itself
                    os.kill(rng.choice(victims), signal.SIGKILL)
        _, told = driver.communicate(timeout=300)
        now = written(folder)
        assert all(now.get(key) == moment for key, moment in before.items()), "finished jobs were done again"
        before = now
        if driver.returncode == 0:
            return killed
        assert driver.returncode == -signal.SIGKILL, told.decode()


@pytest.mark.skipif(sys.platform != "linux", reason="looks for workers in /proc")
def test_a_learning_that_is_killed_again_and_again_ends_with_the_same_bytes(command, tmp_path):
    straight = tmp_path / "straight"
    subprocess.run(command(straight), check=True, capture_output=True, timeout=300)
    wanted, jobs = content(straight), len(written(straight))
    for number in range(RUNS):
        folder, rng = tmp_path / str(number), random.Random(3000 + number)
        assert disturb(command(folder), folder, rng, kills=rng.randint(2, 5), jobs=jobs) >= 1
        assert content(folder) == wanted


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


def test_a_learning_on_a_disk_that_is_full_ends_with_the_same_bytes_once_there_is_room(
    tiny_bank, tiny_recipe, vectors, small_disk, tmp_path
):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    place, resize = small_disk
    assert resize("40k")
    with pytest.raises(EnvironmentProblem, match=r"^Could not write .*: No space left on device\. Make room or choose"):
        learn_metrics(tiny_bank, tiny_recipe, vectors=vectors, run=place / "run")
    kept = {path: path.stat().st_mtime_ns for path in (place / "run" / "jobs").rglob("*") if path.is_file()}
    assert len(kept) >= 2
    assert not list(place.rglob("*.tmp"))
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
        assert run_python(code.format(kind)) == expected


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
