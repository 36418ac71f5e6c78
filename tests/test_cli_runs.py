"""`runs`, and what `learn` says of pieces of work that fail."""

import json
import sys
import time

import pytest
from click.testing import CliRunner

import manymetrics as mm
from manymetrics.cli import main
from manymetrics.measure import models
from manymetrics.measure.models import train_task_model
from manymetrics.values import Unit


def run(*words):
    return CliRunner(env={"FORCE_COLOR": None}).invoke(main, [str(word) for word in words])


def work(unit, shared):
    if unit.name == "shop":
        raise ValueError("it was\nclosed")
    return b"x" * 1500


@pytest.fixture
def kept(tmp_path):
    """A folder with a run in it that was asked for less the second time, and of which a unit failed."""
    for names in (["a", "b", "c"], ["a", "shop"]):
        with mm.Run.open(tmp_path / "first", mm.Recipe().as_toml()) as run, mm.Engine(None, run=run) as engine:
            if "shop" in names:
                with pytest.warns(mm.UnitLeftOut):
                    engine("stage", work, [Unit(name, {}) for name in names])
            else:
                engine("stage", work, [Unit(name, {}) for name in names])
            run.finish()
    return tmp_path


def test_runs_are_listed(kept):
    lines = run("runs", "list", kept).stdout.splitlines()
    assert lines[0].split() == ["run", "state", "units", "asked", "for", "failed", "size"]
    assert lines[2].split()[1:] == ["not", "finished", "1", "2", "1", "4.6", "kB"]
    (found,) = json.loads(run("runs", "list", kept, "--json").stdout)["runs"]
    assert (found["run"], found["finished"], found["bytes"]) == (str(kept / "first"), False, 3 * 1532)


def test_without_a_folder_runs_are_looked_for_here_and_in_the_folder_runs(kept, monkeypatch):
    monkeypatch.chdir(kept)
    (kept / "first").rename(kept / "here")
    with mm.Run.open(kept / "runs" / "second"):
        pass
    found = json.loads(run("runs", "list", "--json").stdout)["runs"]
    assert [one["run"] for one in found] == ["here", "runs/second"]
    assert [line.split()[0] for line in run("runs", "list").stdout.splitlines()[2:]] == ["here", "runs/second"]
    monkeypatch.chdir(kept / "here")
    assert [one["run"] for one in json.loads(run("runs", "list", "--json").stdout)["runs"]] == ["."]
    monkeypatch.chdir(kept / "here" / "units")
    assert (
        "There are no runs in this folder and its folder runs. `learn --run FOLDER` makes" in run("runs", "list").stderr
    )


def test_a_run_is_shown_with_what_failed(kept):
    result = run("runs", "show", kept / "first")
    assert ["stage", "1", "2", "2", "4.6", "kB"] in [line.split() for line in result.stdout.splitlines()]
    assert "failed 1 time: stage of 'shop': ValueError: it was\\nclosed (test_cli_runs.py, line" in result.stdout
    (failure,) = json.loads(run("runs", "show", kept / "first", "--json").stdout)["failures"]
    assert (failure["unit"], failure["attempts"]) == ("shop", 1)


def test_gc_removes_only_when_told_to(kept):
    looked = run("runs", "gc", kept / "first", "--newest")
    assert looked.stdout == "Could be removed: 2 units, 3.1 kB. Nothing was; add --yes to do it.\n"
    assert len(list(kept.glob("first/units/stage/*/*"))) == 3
    assert run("runs", "gc", kept / "first", "--newest", "--yes").stdout == "Removed 2 units, 3.1 kB.\n"
    assert len(list(kept.glob("first/units/stage/*/*"))) == 1
    again = json.loads(run("runs", "gc", kept / "first", "--json").stdout)
    assert again == {"format": 1, "removed": False, "units": 0, "bytes": 0}


def test_what_is_not_a_run_is_one_line_and_exit_code_2(tmp_path):
    result = run("runs", "show", tmp_path)
    assert result.exit_code == 2
    assert result.stderr == (
        f"manymetrics: {tmp_path} is not the folder of a run. Give what was given to learn as --run.\n"
    )


@pytest.fixture
def bank_with_a_failure(tmp_path, make_bank, monkeypatch):
    """A bank of which one task cannot be learned."""
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    mm.write_bank(make_bank(3), tmp_path / "bank")
    (tmp_path / "tiny.toml").write_text(
        'encoder = "words"\nvectors = "random"\ntask_steps = 10\nmetric_steps = 10\nwidth = 8\nclusters = 2\n'
    )
    train = models.train_task_model

    def train_most(unit, bank):
        if unit.name == "colour-1":
            raise ValueError("nothing to say")
        return train(unit, bank)

    monkeypatch.setattr(models, "train_task_model", train_most)
    words = ["learn", tmp_path / "bank", "--out", tmp_path / "model", "--run", tmp_path / "run"]
    return [*words, "--recipe", tmp_path / "tiny.toml", "--workers", 1]


def test_learn_names_what_failed_and_how_to_try_it_again(bank_with_a_failure, tmp_path):
    result = run(*bank_with_a_failure, "--pairs", "all", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [failure["unit"] for failure in found["failures"]] == ["colour-1"]
    assert found["pairs"] == 10
    assert "colour-1" not in [name for group in found["clusters"] for name in group]
    assert "manymetrics: warning: measure-models of 'colour-1' failed: ValueError: nothing to say" in result.stderr
    assert "1 unit failed and was left out: measure-models of 'colour-1'. Try again with: manymetrics learn" in (
        result.stderr
    )


def test_strict_accepts_no_failure(bank_with_a_failure, tmp_path):
    result = run(*bank_with_a_failure, "--strict", "--progress", "json")
    assert result.exit_code == 3
    assert "1 unit failed, and --strict accepts none. No model is saved." in result.stderr
    assert not (tmp_path / "model").exists()
    lines = [line for line in result.stderr.splitlines() if line.startswith("{")]
    assert {json.loads(line)["event"] for line in lines} == {"stage", "failed"}


def misbehave(unit, bank):
    """Training, but of three tasks: found by the workers under its name, so it lies in the module."""
    if unit.name == "colour-0":
        raise ValueError("nothing to say")
    if unit.name == "colour-1":
        import torch

        return bytes(torch.zeros(2**29, dtype=torch.uint8).numpy())
    if unit.name == "animal-2":
        time.sleep(600)
    return train_task_model(unit, bank)


@pytest.fixture
def bank_with_three_failures(bank_with_a_failure, monkeypatch):
    """A bank of which one task is broken, one needs too much memory and one never ends."""
    monkeypatch.setattr(models, "train_task_model", misbehave)
    return [*bank_with_a_failure, "--workers", 2, "--unit-timeout", 6, "--unit-memory", 200]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts what a process may write to")
def test_a_broken_a_hungry_and_a_hanging_task_are_named_and_the_others_become_a_model(
    bank_with_three_failures, tmp_path
):
    result = run(*bank_with_three_failures, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert {failure["unit"]: failure["error"].partition(" (")[0] for failure in found["failures"]} == {
        "colour-0": "ValueError: nothing to say",
        "colour-1": "it needs more than the 200 MiB that a unit may take",
        "animal-2": "it took longer than the 6 s that a unit may take",
    }
    for name in ("colour-0", "colour-1", "animal-2"):
        assert f"manymetrics: warning: measure-models of {name!r} failed: " in result.stderr
    assert "3 units failed and were left out: " in result.stderr
    model = mm.load_model(tmp_path / "model")
    assert model.clusters.names == ("animal-0", "animal-1", "colour-2")
    assert {name for metric in model.metrics for name in metric.tasks} <= set(model.clusters.names)
    assert [metric.kind for metric in model.metrics].count("learned") == len(model.clusters)
    told = run("runs", "show", tmp_path / "run").stdout
    assert told.count("failed 1 time: measure-models of ") == 3


@pytest.mark.parametrize("pairs", ["0", "-3", "many", "½"])
def test_a_number_of_pairs_that_is_none_is_refused(tmp_path, make_bank, pairs):
    mm.write_bank(make_bank(), tmp_path / "bank")
    result = run("learn", tmp_path / "bank", "--out", tmp_path / "model", f"--pairs={pairs}")
    assert result.exit_code == 2
    assert f"--pairs is {pairs!r}. Give a number from 1 up, or all." in result.stderr
