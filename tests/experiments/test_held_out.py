"""Every source held out once: who is asked what, and planted answers."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from experiments.held_out import OURS, WITH_NAMES, deal_folds, run_held_out, score

from experiments import commands, held_out, plan, tuning
from manymetrics.recipe import Recipe
from manymetrics.values import TaskBank
from tiny_sentence import write_folder


@pytest.fixture(scope="module")
def bank(make_bank):
    """Eight tasks of six sources, two of which have two tasks."""
    tasks = make_bank(4).tasks
    sources = {0: "A first", 1: "A second", 2: "B first", 3: "B second"}
    return TaskBank(tuple(replace(task, source=sources.get(at, "")) for at, task in enumerate(tasks)))


def test_every_source_is_in_one_fold_and_learned_from_in_the_others(bank):
    folds = deal_folds(bank, 3, seed=0)
    asked = [problem.name.rpartition(" ")[0] for fold in folds for problem in fold.problems]
    assert sorted(asked) == sorted(bank.names)
    for fold in folds:
        own = {task.source.split()[0] for task in fold.problems}
        assert not own & {task.source.split()[0] for task in fold.past}
    assert len(deal_folds(bank, 100, seed=0)) == 6, "as many as there are sources"


def test_rows_are_compared_with_the_model_that_knows_as_much(bank):
    problems = deal_folds(bank, 2, seed=0)[0].problems
    truth = {task.name: [task.labels.index(label) for label in task.test.labels] for task in problems}
    wrong = {name: [(one + 1) % 2 for one in labels] for name, labels in truth.items()}
    found = score({OURS: truth, OURS + WITH_NAMES: wrong, "x": wrong, "x" + WITH_NAMES: wrong}, problems)
    rows = {row["method"]: row for row in found["rows"]}
    assert rows[OURS]["accuracy"] == {"value": 1, "low": 1, "high": 1}
    assert rows["x"]["ahead"] == {"value": 1, "low": 1, "high": 1}
    assert rows["x" + WITH_NAMES]["ahead"]["value"] == 0
    assert found["tasks"] == len(problems)


def test_with_networks_every_row_of_the_table_is_answered_and_kept(bank, network_recipe, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    asked = []
    choose = lambda tuned: asked.append(tuned.bench.past.names) or {"steps": 3}  # noqa: E731
    monkeypatch.setitem(tuning.CHOICES, "Single-task CNN", choose)
    results = run_held_out(bank, tmp_path, network_recipe, folds=2)
    rows = {row["method"]: row for row in results["rows"]}
    apart = {
        "TF-IDF + LR over all tasks",
        plan.ASAP,
        "Sentence encoder + LR",
        "SetFit",
    }  # these need other tasks, or more
    assert set(rows) == {row.method for row in plan.ROWS} - apart
    assert results["tasks"] == len(bank)
    assert results["sources"] == 6
    assert rows[OURS]["accuracy"]["value"] > rows[held_out.MAJORITY]["accuracy"]["value"]
    assert rows[plan.PUBLISHED]["ahead"] is not None
    assert results["chosen"]["Single-task CNN"] == {"steps": 3}
    first = deal_folds(bank.only(sorted(bank.names)).without_tests(), 2, seed=0)[0]
    assert asked == [first.past.names], "what the first fold chose, the others take over"
    assert json.loads((tmp_path / held_out.RESULTS).read_text("utf-8")) == results
    again = run_held_out(bank, tmp_path, network_recipe, folds=2, report=_refuse_training)
    assert again["rows"] == results["rows"]


def test_over_a_sentence_encoder_rows_stand_on_it(bank, tmp_path):
    folder = write_folder(tmp_path / "encoder")
    recipe = Recipe(encoder=str(folder), projection_steps=20, own_steps=5, clusters=2, shots=2, most_clusters=4)
    results = run_held_out(bank, tmp_path / "out", recipe, folds=2)
    alone = [held_out.PROTOTYPES, held_out.REGRESSION, held_out.ONE, OURS]
    assert {row["method"] for row in results["rows"]} == {
        held_out.MAJORITY, *alone, *(row + WITH_NAMES for row in alone)
    }  # fmt: skip
    assert set(results["chosen"][held_out.REGRESSION]) == {"C"}


def test_projections_over_word_vectors_have_the_rows_of_a_sentence_encoder(bank, tmp_path):
    recipe = Recipe.fast(vectors="random", projection_steps=20, own_steps=5, clusters=2, shots=2)
    results = run_held_out(bank, tmp_path, recipe, folds=2)
    assert {OURS, held_out.ONE, held_out.REGRESSION} < {row["method"] for row in results["rows"]}


def test_where_tasks_share_their_labels_all_texts_are_pooled(bank, network_recipe):
    shared = bank.only([name for name in bank.names if name.startswith("colour")])
    fold = deal_folds(shared, 2, seed=0)[0]
    settings = held_out.tune(fold.past, _vectors(network_recipe), 0)
    assert set(settings) == {held_out.POOLED, held_out.REGRESSION}


def test_the_command_shows_the_table(bank, monkeypatch, tmp_path):
    problems = deal_folds(bank, 2, seed=0)[0].problems
    truth = {task.name: np.zeros(len(task.test), dtype=int).tolist() for task in problems}
    results = {"command": "the command", "folds": 2, "data": "beef" * 16, **score({OURS: truth}, problems)}
    monkeypatch.setattr(commands, "run_held_out", lambda *args, **options: results)
    shown = CliRunner().invoke(commands.main, ["held-out", "--data", "x", "--out", str(tmp_path / "o"), "-q"])
    assert shown.exit_code == 0, shown.output
    assert f"{len(problems)} tasks of" in shown.output


def _refuse_training(progress):
    assert progress.stage == held_out.STAGE


def _vectors(recipe):
    from manymetrics.encode.sources.vectors import load_vectors

    return load_vectors(recipe.vectors)
