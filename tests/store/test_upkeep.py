import pytest

from manymetrics.engine import Engine
from manymetrics.errors import EnvironmentProblem, InputError
from manymetrics.recipe import Recipe
from manymetrics.store import Run, find_unused, list_runs, remove_unused, show_run
from manymetrics.values import Unit


def work(unit, shared):
    if unit.name == "bad":
        raise ValueError("no good")
    return unit.name.encode() * 100


def learn(folder, names, *, seed=0, finish=True):
    with Run.open(folder, Recipe(seed=seed)) as run, Engine(None, run=run) as engine:
        engine("stage", work, [Unit(name, {"seed": seed}) for name in names])
        if finish:
            run.finish()


def there(folder):
    return {path.name for path in folder.glob("units/stage/*/*")}


def keys(names, seed=0):
    return {Run.key("stage", Unit(name, {"seed": seed})) for name in names}


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


def test_what_is_not_a_run_is_refused(tmp_path):
    for ask in (show_run, find_unused, remove_unused):
        with pytest.raises(InputError, match="is not the folder of a run"):
            ask(tmp_path)
    with pytest.raises(InputError, match=r"There is no folder .*nowhere"):
        list_runs(tmp_path / "nowhere")
    assert list_runs(tmp_path) == []
    with Run.open(tmp_path / "empty", Recipe()):
        pass
    with pytest.raises(InputError, match="does not say which units it needs"):
        find_unused(tmp_path / "empty")
