"""A model, or any method, on target tasks: what is answered, scored and refused."""

import json

import pytest

from manymetrics.collect import write_bank
from manymetrics.errors import InputError
from manymetrics.evaluation.targets import answer_targets, choose_targets, evaluate
from manymetrics.values import Examples, Task, TaskBank

TEST = Examples(("a lamp", "lamp please", "music now"), ("lamp", "lamp", "music"))


@pytest.fixture(scope="module")
def targets(shots):
    return TaskBank((Task("home", shots, test=TEST), Task("den", shots, test=TEST)))


def test_targets_are_answered_and_compared_with_the_commonest_label(model, targets):
    evaluation = evaluate(model, targets)
    home = evaluation.targets[0]
    assert (home.answered.task, home.classes, home.shots) == ("home", 3, 14)
    assert home.majority.accuracy == pytest.approx(2 / 3)
    assert home.majority.balanced_accuracy == pytest.approx(1 / 2)
    assert home.answered.accuracy == 1.0
    assert sum(home.weights.values()) == pytest.approx(1)
    assert home.fallback is None


def test_an_evaluation_can_be_written_as_json(model, targets):
    written = json.loads(json.dumps(evaluate(model, targets).as_dict(), allow_nan=False))
    assert set(written["mean"]) == {"accuracy", "balanced_accuracy", "macro_f1"}
    assert written["mean"]["accuracy"] == {"value": 1.0, "low": 1.0, "high": 1.0}
    assert written["majority"]["accuracy"]["value"] == pytest.approx(2 / 3)
    assert [target["task"] for target in written["targets"]] == ["home", "den"]
    assert written["targets"][0]["texts"] == 3


def test_a_fallback_is_reported(make_model, targets):
    evaluation = evaluate(make_model(threshold=1.1), targets)
    assert all("No cluster fits this task" in target.fallback for target in evaluation.targets)
    assert all(
        target.fallback is None for target in evaluate(make_model(threshold=1.1), targets, adaptive=False).targets
    )


def write_plain(bank, folder):
    """Write a bank without saying what its tasks are for."""
    write_bank(bank, folder)
    (folder / "manifest.json").unlink()


def test_a_model_and_targets_can_be_given_as_folders(model, targets, tmp_path):
    model.save(tmp_path / "model")
    write_plain(targets, tmp_path / "bank")
    there = evaluate(str(tmp_path / "model"), tmp_path / "bank")
    assert [target.answered.task for target in there.targets] == ["den", "home"]
    assert there.mean() == evaluate(model, targets).mean()


def test_targets_of_a_folder_are_the_named_the_marked_or_the_tested_ones(targets, shots, tmp_path):
    write_plain(TaskBank((*targets, Task("hall", shots))), tmp_path / "plain")
    assert choose_targets(tmp_path / "plain").names == ("den", "home")
    assert choose_targets(str(tmp_path / "plain"), "home").names == ("home",)
    write_bank(TaskBank(tuple(targets), {"den": "target", "home": "meta-train"}), tmp_path / "marked")
    assert choose_targets(tmp_path / "marked").names == ("den",)
    write_plain(TaskBank((Task("hall", shots),)), tmp_path / "untested")
    with pytest.raises(InputError, match=r"untested: none of its 1 tasks has test texts\. Add files <task>\.test\.tsv"):
        choose_targets(tmp_path / "untested")


def test_any_method_can_answer(targets):
    always, right = (
        answer_targets(lambda task: ["lamp"] * 3, targets),
        answer_targets(lambda task: task.test.labels, targets),
    )
    assert [one.accuracy for one in always] == [pytest.approx(2 / 3)] * 2
    assert [one.accuracy for one in right] == [1.0, 1.0]


def test_targets_without_test_texts_are_refused(model, shots):
    with pytest.raises(InputError, match=r"The task 'home' has no test examples\. Add home\.test\.tsv"):
        evaluate(model, TaskBank((Task("home", shots),)))
    with pytest.raises(InputError, match="There are no target tasks to evaluate"):
        evaluate(model, TaskBank(()))
