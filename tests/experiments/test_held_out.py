"""Every source held out once: who is asked what, and planted answers."""

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from experiments.held_out import OURS, WITH_NAMES, draw_folds, run_held_out, score

from experiments import held_out
from manymetrics.errors import InputError
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
    folds = draw_folds(bank, 3, seed=0)
    asked = [problem.name.rpartition(" ")[0] for fold in folds for problem in fold.problems]
    assert sorted(asked) == sorted(bank.names)
    for fold in folds:
        own = {task.source.split()[0] for task in fold.problems}
        assert not own & {task.source.split()[0] for task in fold.past}
    assert len(draw_folds(bank, 100, seed=0)) == 6, "as many as there are sources"


def test_rows_are_compared_with_the_model_that_knows_as_much(bank):
    problems = draw_folds(bank, 2, seed=0)[0].problems
    truth = {task.name: [task.labels.index(label) for label in task.test.labels] for task in problems}
    wrong = {name: [(one + 1) % 2 for one in labels] for name, labels in truth.items()}
    found = score({OURS: truth, OURS + WITH_NAMES: wrong, "x": wrong, "x" + WITH_NAMES: wrong}, problems)
    rows = {row["method"]: row for row in found["rows"]}
    assert rows[OURS]["accuracy"] == {"value": 1, "low": 1, "high": 1}
    assert rows["x"]["ahead"] == {"value": 1, "low": 1, "high": 1}
    assert rows["x" + WITH_NAMES]["ahead"]["value"] == 0
    assert found["tasks"] == len(problems)


def test_clusterings_of_two_folds_are_compared_on_the_tasks_of_both():
    one, other = {"a": 0, "b": 0, "c": 1, "d": 1, "e": 0}, {"a": 1, "b": 1, "c": 0, "d": 0, "f": 0}
    assert held_out.agreement([one, other]) == 1
    assert held_out.agreement([one, other, {"a": 0, "c": 0, "b": 1, "d": 1}]) < 0.4


def test_networks_are_refused(bank, network_recipe, tmp_path):
    with pytest.raises(InputError, match="Take a recipe without convolution networks"):
        run_held_out(bank, tmp_path, network_recipe)


def test_over_a_sentence_encoder_rows_stand_on_it(bank, tmp_path):
    folder = write_folder(tmp_path / "encoder")
    recipe = Recipe(encoder=str(folder), projection_steps=20, own_steps=5, clusters=2, shots=2, most_clusters=4)
    results = run_held_out(bank, tmp_path / "out", recipe, folds=2, steps=True)
    alone = [held_out.PROTOTYPES, held_out.REGRESSION, held_out.ONE, held_out.ONE_REGRESSION, OURS]
    rows = {row["method"]: row for row in results["rows"]}
    with_steps = held_out.OURS_WITH_STEPS + WITH_NAMES
    assert rows.keys() == {held_out.MAJORITY, with_steps, *alone, *(row + WITH_NAMES for row in alone)}
    assert set(results["chosen"][held_out.REGRESSION]) == {"C"}
    assert rows[OURS + WITH_NAMES]["steps_ahead"]["value"] == pytest.approx(
        rows[with_steps]["accuracy"]["value"] - rows[OURS + WITH_NAMES]["accuracy"]["value"]
    )


def test_projections_over_word_vectors_have_the_rows_of_a_sentence_encoder(bank, tmp_path):
    recipe = Recipe.fast(vectors="random", projection_steps=20, own_steps=5, clusters=2, shots=2)
    results = run_held_out(bank, tmp_path, recipe, folds=2)
    assert {OURS, held_out.ONE, held_out.REGRESSION} < {row["method"] for row in results["rows"]}
    again = run_held_out(bank, tmp_path, recipe, folds=2, report=_refuse_training)
    assert again["rows"] == results["rows"], "what is finished is not done again"


def test_where_tasks_share_their_labels_all_texts_are_pooled(bank, network_recipe):
    shared = bank.only([name for name in bank.names if name.startswith("colour")])
    fold = draw_folds(shared, 2, seed=0)[0]
    vectors = _vectors(network_recipe)
    settings = held_out.tune(fold.past, vectors, vectors, 0)
    assert set(settings) == {held_out.POOLED, held_out.REGRESSION, held_out.ONE_REGRESSION}


def test_the_command_shows_the_table(bank, monkeypatch, tmp_path):
    problems = draw_folds(bank, 2, seed=0)[0].problems
    truth = {task.name: np.zeros(len(task.test), dtype=int).tolist() for task in problems}
    clusters = {"n_clusters": [2, 3], "agreement": 0.5}
    results = {"folds": 2, "data": "beef" * 16, **clusters, **score({OURS: truth}, problems)}
    monkeypatch.setattr(held_out, "past_tasks", lambda data: bank)
    monkeypatch.setattr(held_out, "run_held_out", lambda *args, **options: results)
    shown = CliRunner().invoke(held_out.held_out, ["--data", "x", "--out", str(tmp_path / "o"), "-q"])
    assert shown.exit_code == 0, shown.output
    assert f"{len(problems)} tasks of" in shown.output


def _refuse_training(progress):
    assert progress.stage in (held_out.STAGE, "encode")


def _vectors(recipe):
    from manymetrics.encode.sources.vectors import load_vectors

    return load_vectors(recipe.vectors)
