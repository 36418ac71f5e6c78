"""A model, or any method, on target tasks: predictions, scores, refused targets, and the baselines."""

import json

import pytest
from sklearn.linear_model import LogisticRegression

from manymetrics.collect import write_bank
from manymetrics.encode.encoder import normalize
from manymetrics.errors import InputError
from manymetrics.evaluation import Estimate
from manymetrics.evaluation.baselines import frozen_regression, majority, shots_of
from manymetrics.evaluation.targets import choose_targets, evaluate
from manymetrics.values import Examples, Task, TaskBank

TEST = Examples(("a lamp", "lamp please", "music now"), ("lamp", "lamp", "music"))


@pytest.fixture(scope="module")
def targets(shots):
    return TaskBank((Task("home", shots, test=TEST), Task("den", shots, test=TEST)))


@pytest.fixture(scope="module")
def evaluation(model, targets):
    return evaluate(model, targets)


def test_targets_are_predicted_and_compared_with_the_most_frequent_label(evaluation):
    home = evaluation.targets[0]
    assert (home.answered.task, home.classes, home.shots, home.fallback) == ("home", 3, 14, None)
    assert (home.majority.accuracy, home.majority.balanced_accuracy) == (pytest.approx(2 / 3), pytest.approx(1 / 2))
    assert home.answered.accuracy == 1.0
    assert sum(home.weights.values()) == pytest.approx(1)
    written = json.loads(json.dumps(evaluation.as_dict(), allow_nan=False))
    assert set(written["mean"]) == {"accuracy", "balanced_accuracy", "macro_f1"}
    assert written["mean"]["accuracy"] == {"value": 1.0, "low": 1.0, "high": 1.0}
    assert written["majority"]["accuracy"]["value"] == pytest.approx(2 / 3)
    assert [(target["task"], target["texts"]) for target in written["targets"]] == [("home", 3), ("den", 3)]


def test_a_fallback_is_reported(make_model, targets):
    fallbacks = [target.fallback for target in evaluate(make_model(blind=True), targets).targets]
    assert any(fallback is not None and "No cluster fits this task" in fallback for fallback in fallbacks)
    without = evaluate(make_model(blind=True), targets, adaptive=False)
    assert all(target.fallback is None for target in without.targets)


def test_targets_of_a_folder_are_the_named_the_marked_or_the_tested_ones(targets, shots, tmp_path):
    write_bank(TaskBank((*targets, Task("hall", shots))), tmp_path / "plain")
    (tmp_path / "plain" / "manifest.json").unlink()
    assert choose_targets(tmp_path / "plain").names == ("den", "home")
    assert choose_targets(str(tmp_path / "plain"), "home").names == ("home",)
    write_bank(TaskBank(tuple(targets), {"den": "target", "home": "meta-train"}), tmp_path / "marked")
    assert choose_targets(tmp_path / "marked").names == ("den",)


def test_targets_without_test_texts_are_refused(model, shots):
    with pytest.raises(InputError, match=r"The task 'home' has no test examples\. Add home\.test\.tsv"):
        evaluate(model, TaskBank((Task("home", shots),)))
    with pytest.raises(InputError, match="There are no target tasks to evaluate"):
        evaluate(model, TaskBank(()))


def test_a_model_is_compared_with_a_regression_on_its_frozen_encoder(evaluation):
    (baseline,) = evaluation.baselines()  # the model has no shared metric
    assert baseline.method == "logistic regression on the frozen encoder"
    written = evaluation.as_dict()
    row = written["baselines"][0]
    assert row["gain"]["verdict"] in ("better", "worse", "no difference shown")
    assert set(row["gain"]) == set(row["balanced_gain"]) == {"value", "low", "high", "verdict"}
    assert written["targets"][0]["baselines"] == {baseline.method: row["accuracy"]["value"]}


def test_the_verdict_depends_on_whether_the_interval_contains_zero():
    intervals = [(0.003, 0.04), (-0.04, -0.003), (-0.01, 0.04)]
    assert [Estimate(0.0, *ends).verdict for ends in intervals] == ["better", "worse", "no difference shown"]


def test_the_majority_is_that_of_the_test_texts():
    task = Task("t", Examples(("1", "2", "3"), ("a", "b", "b")), test=Examples(("4", "5", "6"), ("a", "a", "b")))
    assert majority(task) == ["a", "a", "a"]


def test_the_name_of_a_label_can_be_one_more_example_of_it():
    task = Task("t", Examples(("one", "two"), ("order_status", "cancel")))
    assert shots_of(task, names=False).texts == ("one", "two")
    named = shots_of(task, names=True)
    assert (named.texts, named.numbers.tolist()) == (("one", "two", "cancel", "order status"), [1, 0, 0, 1])


@pytest.mark.parametrize("balanced", [False, True])
def test_the_regression_is_scikit_learns(tiny_bank, vectors, balanced):
    task = tiny_bank["colour-0"]
    model = LogisticRegression(C=10.0, class_weight="balanced" if balanced else None, max_iter=1000)
    model.fit(normalize(vectors.encode(task.train.texts)), list(task.train.labels))
    expected = model.predict(normalize(vectors.encode(task.test.texts))).tolist()
    assert frozen_regression(vectors, balanced=balanced)(task) == expected
