import json

import pytest

from manymetrics.engine import Engine
from manymetrics.engine.code import code_fingerprint
from manymetrics.errors import EnvironmentProblem, InputError
from manymetrics.store import Run, find_unused, list_runs, remove_unused, show_run
from manymetrics.values import Unit


def work(unit, shared):
    if unit.name == "bad":
        raise ValueError("no good")
    return unit.name.encode() * 100


def learn(folder, names, *, seed=0, finish=True):
    with Run.open(folder, f"seed = {seed}\n") as run, Engine(None, run=run) as engine:
        engine("stage", work, [Unit(name, {"seed": seed}) for name in names])
        if finish:
            run.finish()


def there(folder):
    return {path.name for path in folder.glob("units/stage/*/*")}


def keys(names, seed=0):
    return {Run.key("stage", Unit(name, {"seed": seed}), code_fingerprint(work)) for name in names}


@pytest.mark.filterwarnings("ignore::manymetrics.errors.UnitLeftOut")
def test_a_run_is_shown_stage_by_stage_with_its_failures(tmp_path):
    learn(tmp_path / "run", ["a", "b", "c"])
    learn(tmp_path / "run", ["a", "b", "bad"])
    found = show_run(tmp_path / "run")
    (stage,) = found.stages
    assert (stage.stage, stage.asked, stage.done, stage.others) == ("stage", 3, 2, 1)
    assert found.size == stage.size == 3 * 132
    assert [(failure.unit, failure.attempts) for failure in found.failures] == [("bad", 1)]
    assert not found.finished
    assert found.holder is None
    learn(tmp_path / "run", ["a", "b"])
    assert show_run(tmp_path / "run").finished
    assert [run.folder.name for run in list_runs(tmp_path)] == ["run"]
    assert [run.folder.name for run in list_runs(tmp_path / "run")] == ["run"]


def test_what_no_recipe_needs_any_more_can_be_removed(tmp_path):
    learn(tmp_path, ["a", "b", "c"])
    learn(tmp_path, ["a", "b"])
    learn(tmp_path, ["a"], seed=1)
    assert {path.name for _, path in find_unused(tmp_path).units} == keys("c")
    assert len(there(tmp_path)) == 4, "looking removes nothing"
    assert remove_unused(tmp_path).size == 132
    assert there(tmp_path) == keys("ab") | keys("a", seed=1)
    remove_unused(tmp_path, newest=True)
    assert there(tmp_path) == keys("a", seed=1)
    assert find_unused(tmp_path).units == ()


def test_what_an_unfinished_run_has_done_is_not_removed(tmp_path):
    learn(tmp_path, ["a"])
    learn(tmp_path, ["a", "b"], finish=False)
    assert find_unused(tmp_path, newest=True).units == ()


def test_nothing_is_removed_while_somebody_writes(tmp_path):
    learn(tmp_path, ["a"])
    with Run.open(tmp_path), pytest.raises(EnvironmentProblem, match="in use by process"):
        remove_unused(tmp_path)
    assert there(tmp_path) == keys("a")


def test_removing_leaves_foreign_files_and_follows_no_link(tmp_path):
    run, other = tmp_path / "run", tmp_path / "other"
    learn(run, ["a", "b"])
    learn(other, ["c"])
    foreign = [
        run / "notes.txt",
        run / "units" / "notes.txt",
        run / "units" / "stage" / "ab" / "notes.txt",
        run / "units" / "stage" / "ab" / ("cd" * 32),  # does not stand where its name says
        run / "manifests" / "notes.json",
    ]
    for path in foreign:
        path.parent.mkdir(exist_ok=True)
        path.write_text("do not lose")
    (theirs,) = other.glob("units/stage/*")
    (run / "units" / "linked").symlink_to(theirs.parent)
    if not (run / "units" / "stage" / theirs.name).exists():
        (run / "units" / "stage" / theirs.name).symlink_to(theirs)
    mine = run / "units" / "stage" / "ef" / ("ef" * 32)
    mine.parent.mkdir(exist_ok=True)
    mine.symlink_to(next(theirs.iterdir()))
    learn(run, ["a"])
    removed = remove_unused(run, newest=True)
    assert {path.name for _, path in removed.units} == keys("b")
    assert there(other) == keys("c")
    assert mine.is_symlink()
    assert [path.read_text() for path in foreign] == ["do not lose"] * 5


def test_units_that_are_kept_elsewhere_by_a_link_are_not_removed(tmp_path):
    learn(tmp_path / "run", ["a", "b"])
    (tmp_path / "run" / "units").rename(tmp_path / "large disk")
    (tmp_path / "run" / "units").symlink_to(tmp_path / "large disk")
    learn(tmp_path / "run", ["a"])
    assert remove_unused(tmp_path / "run", newest=True).units == ()
    assert there(tmp_path / "run") == keys("ab")


def test_nothing_is_removed_where_what_is_needed_cannot_be_read(tmp_path):
    learn(tmp_path, ["a", "b"])
    learn(tmp_path, ["a"], seed=1)
    for path in (tmp_path / "plan.json", tmp_path / "manifest.json", *(tmp_path / "manifests").iterdir()):
        whole = path.read_bytes()
        for damaged in (b"", whole[:-1], b"[]", b"[" * 100_000):
            path.write_bytes(damaged)
            with pytest.raises(InputError, match=rf"{path.name} is damaged.*Learn again, or remove it"):
                remove_unused(tmp_path)
        path.write_bytes(whole)
    assert there(tmp_path) == keys("ab") | keys("a", seed=1)
    (tmp_path / "plan.json").write_text(json.dumps({"stage": 3, "other": [["x"]]}))
    assert not show_run(tmp_path).finished


def test_what_is_not_a_run_is_refused(tmp_path):
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank" / "manifest.json").write_text('{"roles": {}}')
    for folder in (tmp_path, tmp_path / "bank"):
        for ask in (show_run, find_unused, remove_unused):
            with pytest.raises(InputError, match="is not the folder of a run"):
                ask(folder)
    assert [path.name for path in (tmp_path / "bank").iterdir()] == ["manifest.json"]
    with pytest.raises(InputError, match=r"There is no folder .*nowhere"):
        list_runs(tmp_path / "nowhere")
    assert list_runs(tmp_path) == []
    with Run.open(tmp_path / "empty"):
        pass
    with pytest.raises(InputError, match="does not say which units it needs"):
        find_unused(tmp_path / "empty")
