"""Each source of a bank held out in turn: nothing of the source is learned from."""

import json
from dataclasses import replace

import numpy as np
import pytest

from command_line import done
from manymetrics import learn
from manymetrics.collect import write_bank
from manymetrics.episodes import MAX_ASKED, draw_few_shots
from manymetrics.errors import DataError, InputError, NotEnoughExamples, RecipeError, TaskSkipped
from manymetrics.evaluation import evaluate_leave_one_out
from manymetrics.evaluation.leave_one_out import draw_sources
from manymetrics.learn import learn_metrics
from manymetrics.values import Examples, Task, TaskBank

FEW = Examples(("red sky", "red sea", "green sky", "green sea"), ("red", "red", "green", "green"))


def of_sources(bank, sources):
    return TaskBank(tuple(replace(task, source=source) for task, source in zip(bank, sources, strict=True)))


def test_few_shot_tasks_have_the_given_number_of_examples_of_each_label_and_the_test_texts(tiny_bank):
    task = tiny_bank["colour-0"]
    drawn = draw_few_shots(task, 2, seed=0)
    assert sorted(drawn.train.labels) == ["blue", "blue", "green", "green", "red", "red"]
    assert set(drawn.train.texts) <= set(task.train.texts)
    known = {text.lower() for text in drawn.train.texts}
    assert sorted(drawn.test.texts) == sorted(text for text in task.test.texts if text.lower() not in known)
    assert (drawn.source, drawn.name, len(drawn.valid)) == (task.source, "colour-0", 0)
    assert draw_few_shots(task, 2, seed=0) == drawn
    assert draw_few_shots(task, 2, seed=1) != drawn
    many = Examples(tuple(f"text {row}" for row in range(900)), ("a", "b") * 450)
    assert len(draw_few_shots(Task("t", many, test=many), 5, seed=0).test) == MAX_ASKED


def test_without_test_texts_the_other_texts_are_tested_on_except_copies_of_train_examples():
    train = Examples((*FEW.texts, "RED  sky", "a red flag", "a green flag"), (*FEW.labels, "red", "red", "green"))
    task = Task("t", train, valid=Examples(("all red",), ("red",)))
    drawn = draw_few_shots(task, 2, seed=3)
    shots = {" ".join(text.lower().split()) for text in drawn.train.texts}
    assert len(drawn.train) == 4
    assert not {" ".join(text.lower().split()) for text in drawn.test.texts} & shots
    assert "all red" in drawn.test.texts


def test_the_sample_of_sources_depends_on_their_names_and_the_seed(make_bank):
    bank = of_sources(make_bank(4), "aabbccdd")
    assert draw_sources(bank, None, seed=0) == ["a", "b", "c", "d"]
    drawn = {tuple(draw_sources(bank, 2, seed=seed)) for seed in range(20)}
    assert all(len(names) == 2 for names in drawn)
    assert len(drawn) > 2
    fewer = bank.only([task.name for task in bank if task.source != "d"])
    assert set(draw_sources(bank, 2, seed=0)) - {"d"} <= set(draw_sources(fewer, 2, seed=0))
    with pytest.raises(NotEnoughExamples, match=r"All 8 tasks are of one source, 's', so there is none to learn from"):
        draw_sources(of_sources(make_bank(4), "ssssssss"), None, seed=0)


def test_each_source_is_scored_by_a_model_that_has_not_seen_it(make_bank, tiny_recipe, vectors, monkeypatch):
    bank, seen, reports = of_sources(make_bank(3), "aabbcc"), [], []
    real = learn.find_clusters

    def find_clusters(shared_data, *others):
        seen.append(shared_data.bank)
        return real(shared_data, *others)

    monkeypatch.setattr("manymetrics.learn.find_clusters", find_clusters)
    evaluation = evaluate_leave_one_out(bank, tiny_recipe, shots=3, vectors=vectors, report=reports.append)
    targets = evaluation.targets
    assert [target.source for target in targets] == ["a", "a", "b", "b", "c", "c"]
    assert {(target.answered.task, target.source) for target in targets} == {(task.name, task.source) for task in bank}
    assert [{task.source for task in learned} for learned in seen] == [{"b", "c"}, {"a", "c"}, {"a", "b"}]
    assert not [task for learned in seen for task in learned if len(task.test)]
    assert {target.shots for target in targets} == {9}
    assert evaluation.as_dict()["intervals_over"] == "sources and texts"
    assert evaluation.mean()["accuracy"].value == pytest.approx(np.mean([t.answered.accuracy for t in targets]))
    assert {report.stage for report in reports} == {"leave-one-out"}
    assert [reports[0].seconds, reports[0].total, reports[-1].done] == [0.0, 3, 3]
    assert ("without b: measure-models 4/4",) in {report.running for report in reports}


def test_the_same_call_resumes_its_run_and_shares_jobs_between_sources(make_bank, tiny_recipe, vectors, tmp_path):
    pytest.importorskip("torch")
    bank = of_sources(make_bank(3), "aabbcc")
    options = {"shots": 3, "vectors": vectors, "run": tmp_path / "run"}
    first = evaluate_leave_one_out(bank, tiny_recipe, **options)
    assert len(list((tmp_path / "run" / "jobs" / "measure-models").glob("*/*"))) == 6, "not once for each source"
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "jobs").rglob("*") if path.is_file()}
    again = evaluate_leave_one_out(bank, tiny_recipe, **options)
    assert {path: path.stat().st_mtime_ns for path in files} == files
    assert again.mean() == first.mean()


def test_unsuitable_banks_are_refused_before_anything_is_learned(make_bank, tiny_recipe, vectors, tmp_path):
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
    warned = pytest.warns(TaskSkipped, match=r"'few' is left out\. It has no texts other than 5 examples of each label")
    with warned, pytest.raises(NotEnoughExamples, match="No task of the source 'few' has texts other than 5 examples"):
        evaluate_leave_one_out(short, tiny_recipe, vectors=vectors)


def test_the_command_prints_the_scores_of_held_out_sources_and_of_another_model(make_bank, model_folder, tmp_path):
    pytest.importorskip("torch")
    write_bank(make_bank(2), tmp_path / "bank")
    settings = 'encoder = "words"\nvectors = "random"\nown_steps = 2\nprojection_steps = 10\nclusters = 2\n'
    (tmp_path / "tiny.toml").write_text(settings)
    words = ["evaluate", "--leave-one-out", "--bank", tmp_path / "bank", "--recipe", tmp_path / "tiny.toml"]
    words += ["--run", tmp_path / "run", "--shots", 2, "--sources", 3, "--workers", 1, "--against", model_folder]
    result = done(*words, "--json")
    written = json.loads(result.stdout)
    assert "leave-one-out 3/3" in result.stderr
    assert [target["shots"] for target in written["targets"]] == [6, 6, 6]
    _, _, against = written["baselines"]
    accuracies = [target["baselines"]["the other model"] for target in written["targets"]]
    assert (against["method"], against["accuracy"]["value"]) == ("the other model", pytest.approx(np.mean(accuracies)))
    assert against["gain"]["value"] == pytest.approx(written["mean"]["accuracy"]["value"] - np.mean(accuracies))


def test_a_value_that_is_not_a_task_is_named():
    with pytest.raises(DataError, match=r"Found 'a\.tsv' of type str where a task was expected\. Give a folder"):
        learn_metrics(["a.tsv"])
