import json

import pytest

from manymetrics.engine import Engine
from manymetrics.engine.code import code_fingerprint
from manymetrics.errors import EnvironmentProblem, InputError
from manymetrics.store import Run, find_unused, list_runs, remove_unused, show_run
from manymetrics.values import Job


def run_jobs(job, shared):
    if job.name == "bad":
        raise ValueError("no good")
    return job.name.encode() * 100


def learn(folder, names, *, seed=0, finish=True):
    with Run.open(folder, f"seed = {seed}\n") as run, Engine(None, run=run) as engine:
        engine("stage", run_jobs, [Job(name, {"seed": seed}) for name in names])
        if finish:
            run.finish()


def stored(folder):
    return {path.name for path in folder.glob("jobs/stage/*/*")}


def keys(names, seed=0):
    return {Run.key("stage", Job(name, {"seed": seed}), code_fingerprint(run_jobs)) for name in names}


@pytest.mark.filterwarnings("ignore::manymetrics.errors.JobSkipped")
def test_a_run_is_shown_by_stage_with_its_failures(tmp_path):
    learn(tmp_path / "run", ["a", "b", "c"])
    learn(tmp_path / "run", ["a", "b", "bad"])
    summary = show_run(tmp_path / "run")
    (stage,) = summary.stages
    assert (stage.stage, stage.asked, stage.done, stage.others) == ("stage", 3, 2, 1)
    assert summary.size == stage.size == 3 * 132
    assert [(failure.job, failure.attempts) for failure in summary.failures] == [("bad", 1)]
    assert not summary.finished
    assert summary.holder is None
    learn(tmp_path / "run", ["a", "b"])
    assert show_run(tmp_path / "run").finished
    assert [run.folder.name for run in list_runs(tmp_path)] == ["run"]
    assert [run.folder.name for run in list_runs(tmp_path / "run")] == ["run"]


def test_results_that_no_recipe_needs_can_be_removed(tmp_path):
    learn(tmp_path, ["a", "b", "c"])
    learn(tmp_path, ["a", "b"])
    learn(tmp_path, ["a"], seed=1)
    assert {path.name for _, path in find_unused(tmp_path).jobs} == keys("c")
    assert len(stored(tmp_path)) == 4, "find_unused removes nothing"
    assert remove_unused(tmp_path).size == 132
    assert stored(tmp_path) == keys("ab") | keys("a", seed=1)
    remove_unused(tmp_path, newest=True)
    assert stored(tmp_path) == keys("a", seed=1)
    assert find_unused(tmp_path).jobs == ()


def test_results_of_an_unfinished_run_are_not_removed(tmp_path):
    learn(tmp_path, ["a"])
    learn(tmp_path, ["a", "b"], finish=False)
    assert find_unused(tmp_path, newest=True).jobs == ()


def test_nothing_is_removed_while_a_process_writes(tmp_path):
    learn(tmp_path, ["a"])
    with Run.open(tmp_path), pytest.raises(EnvironmentProblem, match="in use by process"):
        remove_unused(tmp_path)
    assert stored(tmp_path) == keys("a")


def test_files_of_the_user_are_not_removed_and_links_not_followed(tmp_path):
    run, other = tmp_path / "run", tmp_path / "other"
    learn(run, ["a", "b"])
    learn(other, ["c"])
    foreign = [
        run / "notes.txt",
        run / "jobs" / "notes.txt",
        run / "jobs" / "stage" / "ab" / "notes.txt",
        run / "jobs" / "stage" / "ab" / ("cd" * 32),  # not in the folder of its first two letters
        run / "manifests" / "notes.json",
    ]
    for path in foreign:
        path.parent.mkdir(exist_ok=True)
        path.write_text("do not lose")
    (theirs,) = other.glob("jobs/stage/*")
    (run / "jobs" / "linked").symlink_to(theirs.parent)
    if not (run / "jobs" / "stage" / theirs.name).exists():
        (run / "jobs" / "stage" / theirs.name).symlink_to(theirs)
    prefix = "ef" if theirs.name != "ef" else "fe"  # a folder of this run
    mine = run / "jobs" / "stage" / prefix / (prefix * 32)
    mine.parent.mkdir(exist_ok=True)
    mine.symlink_to(next(theirs.iterdir()))
    learn(run, ["a"])
    removed = remove_unused(run, newest=True)
    assert {path.name for _, path in removed.jobs} == keys("b")
    assert stored(other) == keys("c")
    assert mine.is_symlink()
    assert [path.read_text() for path in foreign] == ["do not lose"] * 5


def test_results_behind_a_link_are_not_removed(tmp_path):
    learn(tmp_path / "run", ["a", "b"])
    (tmp_path / "run" / "jobs").rename(tmp_path / "large disk")
    (tmp_path / "run" / "jobs").symlink_to(tmp_path / "large disk")
    learn(tmp_path / "run", ["a"])
    assert remove_unused(tmp_path / "run", newest=True).jobs == ()
    assert stored(tmp_path / "run") == keys("ab")


def test_nothing_is_removed_if_a_plan_or_manifest_is_damaged(tmp_path):
    learn(tmp_path, ["a", "b"])
    learn(tmp_path, ["a"], seed=1)
    for path in (tmp_path / "plan.json", tmp_path / "manifest.json", *(tmp_path / "manifests").iterdir()):
        raw = path.read_bytes()
        for damaged in (b"", raw[:-1], b"[]", b"[" * 100_000):
            path.write_bytes(damaged)
            with pytest.raises(InputError, match=rf"{path.name} is damaged.*Learn again, or remove it"):
                remove_unused(tmp_path)
        path.write_bytes(raw)
    assert stored(tmp_path) == keys("ab") | keys("a", seed=1)
    (tmp_path / "plan.json").write_text(json.dumps({"stage": 3, "other": [["x"]]}))
    assert not show_run(tmp_path).finished


def test_a_folder_that_is_not_a_run_is_refused(tmp_path):
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
    with pytest.raises(InputError, match="does not say which jobs it needs"):
        find_unused(tmp_path / "empty")
