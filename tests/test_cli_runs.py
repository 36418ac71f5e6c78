"""`runs`, and what `learn` says of pieces of work that fail."""

import json

import pytest
from click.testing import CliRunner

import manymetrics as mm
from manymetrics.cli import main
from manymetrics.measure import models
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
        with mm.Run.open(tmp_path / "first", mm.Recipe()) as run, mm.Engine(None, run=run) as engine:
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
        'vectors = "random"\ntask_steps = 10\nmetric_steps = 10\nwidth = 8\nclusters = 2\n'
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


@pytest.mark.parametrize("pairs", ["0", "-3", "many", "½"])
def test_a_number_of_pairs_that_is_none_is_refused(tmp_path, make_bank, pairs):
    mm.write_bank(make_bank(), tmp_path / "bank")
    result = run("learn", tmp_path / "bank", "--out", tmp_path / "model", f"--pairs={pairs}")
    assert result.exit_code == 2
    assert f"--pairs is {pairs!r}. Give a number from 1 up, or all." in result.stderr
