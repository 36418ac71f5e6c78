"""Each source of a bank held out in turn: what is learned from, what is asked, and that nothing of the source leaks."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from manymetrics import learn
from manymetrics.cli import main
from manymetrics.collect import write_bank
from manymetrics.errors import DataError, InputError, NotEnoughExamples, RecipeError, TaskLeftOut
from manymetrics.evaluation import evaluate_leave_one_out
from manymetrics.evaluation.leave_one_out import MOST_TEXTS, draw_few_shots, draw_sources
from manymetrics.learn import learn_metrics
from manymetrics.store import show_run
from manymetrics.values import Examples, Task, TaskBank

FEW = Examples(("red sky", "red sea", "green sky", "green sea"), ("red", "red", "green", "green"))


def of_sources(bank, sources):
    return TaskBank(tuple(replace(task, source=source) for task, source in zip(bank, sources, strict=True)))


def test_few_shots_are_so_many_of_each_label_and_the_test_texts_are_asked(tiny_bank):
    task = tiny_bank["colour-0"]
    drawn = draw_few_shots(task, 2, seed=0)
    assert sorted(drawn.train.labels) == ["blue", "blue", "green", "green", "red", "red"]
    assert set(drawn.train.texts) <= set(task.train.texts)
    known = {text.lower() for text in drawn.train.texts}
    assert sorted(drawn.test.texts) == sorted(text for text in task.test.texts if text.lower() not in known)
    assert (drawn.source, drawn.name, len(drawn.valid)) == (task.source, "colour-0", 0)
    assert draw_few_shots(task, 2, seed=0) == drawn
    assert draw_few_shots(task, 2, seed=1) != drawn


def test_without_test_texts_the_other_texts_are_asked_but_no_copy_of_a_shot():
    train = Examples((*FEW.texts, "RED  sky", "a red flag", "a green flag"), (*FEW.labels, "red", "red", "green"))
    task = Task("t", train, valid=Examples(("all red",), ("red",)))
    drawn = draw_few_shots(task, 2, seed=3)
    shots = {" ".join(text.lower().split()) for text in drawn.train.texts}
    assert len(drawn.train) == 4
    assert not {" ".join(text.lower().split()) for text in drawn.test.texts} & shots
    assert "all red" in drawn.test.texts


def test_of_very_many_texts_some_are_asked():
    many = Examples(tuple(f"text {row}" for row in range(900)), ("a", "b") * 450)
    assert len(draw_few_shots(Task("t", FEW, test=Examples(("x",) * 5, ("red",) * 5)), 1, seed=0).test) == 5
    assert len(draw_few_shots(Task("t", many, test=many), 5, seed=0).test) == MOST_TEXTS


def test_sources_are_drawn_by_their_names_and_the_seed(make_bank):
    bank = of_sources(make_bank(4), "aabbccdd")
    assert draw_sources(bank, None, seed=0) == ["a", "b", "c", "d"]
    drawn = {tuple(draw_sources(bank, 2, seed=seed)) for seed in range(20)}
    assert all(len(names) == 2 for names in drawn)
    assert len(drawn) > 2
    fewer = bank.only([task.name for task in bank if task.source != "d"])
    assert set(draw_sources(bank, 2, seed=0)) - {"d"} <= set(draw_sources(fewer, 2, seed=0))
    with pytest.raises(NotEnoughExamples, match=r"All 8 tasks are of one source, 's', so there is none to learn from"):
        draw_sources(of_sources(make_bank(4), "ssssssss"), None, seed=0)


def test_every_source_is_scored_by_a_model_that_saw_nothing_of_it(make_bank, tiny_recipe, vectors, monkeypatch):
    pytest.importorskip("torch")
    bank, seen = of_sources(make_bank(3), "aabbcc"), []

    real = learn.find_clusters

    def find_clusters(learning, work, recipe):
        seen.append(learning)
        return real(learning, work, recipe)

    monkeypatch.setattr("manymetrics.learn.find_clusters", find_clusters)
    reports = []
    found = evaluate_leave_one_out(bank, tiny_recipe, shots=3, vectors=vectors, report=reports.append)
    assert [one.source for one in found.targets] == ["a", "a", "b", "b", "c", "c"]
    assert {(one.answered.task, one.source) for one in found.targets} == {(task.name, task.source) for task in bank}
    for learning, source in zip(seen, "abc", strict=True):
        assert source not in {task.source for task in learning.material.bank}
        assert all(not len(task.test) for task in learning.material.bank)
    assert {one.shots for one in found.targets} == {9}
    told = found.as_dict()
    assert told["intervals_over"] == "sources and texts"
    assert {target["source"] for target in told["targets"]} == {"a", "b", "c"}
    assert found.mean()["accuracy"].value == pytest.approx(np.mean([one.answered.accuracy for one in found.targets]))
    assert {report.stage for report in reports} == {"leave-one-out"}
    assert [reports[0].seconds, reports[0].total, reports[-1].done] == [0.0, 3, 3]
    assert ("without b: measure-models 4/4",) in {report.running for report in reports}


def test_the_same_call_goes_on_from_its_run_and_shares_what_sources_share(make_bank, tiny_recipe, vectors, tmp_path):
    pytest.importorskip("torch")
    bank = of_sources(make_bank(3), "aabbcc")
    options = {"shots": 3, "vectors": vectors, "run": tmp_path / "run"}
    first = evaluate_leave_one_out(bank, tiny_recipe, **options)
    summary = show_run(tmp_path / "run")
    assert summary.finished
    assert {stage.stage: stage.done for stage in summary.stages}["measure-models"] == 6, "not once for each source"
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "units").rglob("*") if path.is_file()}
    again = evaluate_leave_one_out(bank, tiny_recipe, **options)
    assert {path: path.stat().st_mtime_ns for path in files} == files
    assert again.mean() == first.mean()
    learn_metrics(bank, tiny_recipe, vectors=vectors, run=tmp_path / "run")
    assert len(list((tmp_path / "run" / "manifests").iterdir())) == 2, "a manifest of its own beside that of learning"


def test_what_cannot_be_held_out_is_refused_before_anything_is_learned(make_bank, tiny_recipe, vectors, tmp_path):
    bank = of_sources(make_bank(), "aabb")
    with pytest.raises(InputError, match=r"Found shots=0 and sources=None\. Give numbers from 1 up\."):
        evaluate_leave_one_out(bank, tiny_recipe, shots=0, vectors=vectors)
    with pytest.raises(NotEnoughExamples, match="Found 1 task to learn from"):
        evaluate_leave_one_out(of_sources(make_bank(), "aaab"), tiny_recipe, vectors=vectors)
    with pytest.raises(RecipeError, match="asks for 3 clusters of 2 tasks"):
        evaluate_leave_one_out(bank, replace(tiny_recipe, clusters=3), vectors=vectors)
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(InputError, match="is there already and is not a run"):
        evaluate_leave_one_out(bank, tiny_recipe, vectors=vectors, run=tmp_path)
    short = TaskBank((*bank, Task("few", FEW, source="few")))
    with (
        pytest.warns(TaskLeftOut, match=r"'few' is left out\. Beside 5 examples of each label it has no texts"),
        pytest.raises(NotEnoughExamples, match="No task of the source 'few' has texts beside 5 examples"),
    ):
        evaluate_leave_one_out(short, tiny_recipe, vectors=vectors)


def test_the_command_learns_without_each_source_and_shows_the_scores(make_bank, tmp_path):
    pytest.importorskip("torch")
    write_bank(make_bank(2), tmp_path / "bank")
    knobs = 'vectors = "random"\ntask_steps = 10\nmetric_steps = 10\nwidth = 8\nclusters = 2\n'
    (tmp_path / "tiny.toml").write_text(knobs)
    words = ["evaluate", "--leave-one-out", "--bank", tmp_path / "bank", "--recipe", tmp_path / "tiny.toml"]
    words += ["--run", tmp_path / "run", "--shots", 2, "--sources", 3, "--workers", 1]

    def run(*more):
        result = CliRunner(env={"FORCE_COLOR": None}).invoke(main, [str(word) for word in (*words, *more)])
        assert result.exit_code == 0, result.output
        return result

    found = json.loads(run("--json", "--quiet").stdout)
    assert [target["shots"] for target in found["targets"]] == [6, 6, 6]
    result = run()
    assert "leave-one-out 3/3" in result.stderr
    lines = result.stdout.splitlines()
    mean = found["mean"]["accuracy"]
    assert f"{mean['value']:.1%} [{100 * mean['low']:.1f}, {100 * mean['high']:.1f}]" in lines[-3]


def test_learning_takes_a_folder_and_leaves_its_targets_out(make_bank, tiny_recipe, vectors, tmp_path):
    pytest.importorskip("torch")
    whole = make_bank(3)
    write_bank(TaskBank(tuple(whole), {"animal-2": "target"}), tmp_path / "bank")
    model = learn_metrics(str(tmp_path / "bank"), tiny_recipe, vectors=vectors)
    assert "animal-2" not in model.clusters.names
    assert len(model.clusters.names) == 5
    past = whole.only([name for name in whole.names if name != "animal-2"])
    assert model.fingerprint == learn_metrics(past, tiny_recipe, vectors=vectors).fingerprint


def test_what_is_no_task_is_refused_by_name():
    with pytest.raises(DataError, match=r"Found 'a\.tsv' of type str where a task was expected\. Give a folder"):
        learn_metrics(["a.tsv"])
