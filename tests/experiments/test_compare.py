"""`compare`: planted answers, and the whole command on an encoder of a few bytes."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from experiments.comparison import OURS, Row, compare, few_shot_problems, rename, score, with_best_penalty

from experiments import german
from manymetrics.collect import write_bank
from manymetrics.evaluation.scoring import Answered
from manymetrics.values import Examples, Task, TaskBank
from tiny_sentence import asked_of


def answered(right, wrong, name="t"):
    labels = np.zeros(right + wrong, dtype=np.int64)
    return Answered(name, np.concatenate([np.zeros(right, dtype=np.int64), np.ones(wrong, dtype=np.int64)]), labels)


def test_seeds_are_averaged_and_every_target_weighs_alike():
    ours = Row(OURS, "off", [[answered(8, 2), answered(80, 20)], [answered(10, 0), answered(100, 0)]])
    theirs = Row("theirs", "off", [[answered(5, 5), answered(100, 0)]])
    found = score([ours, theirs], ["a", "b"])
    assert found[0]["accuracy"]["value"] == pytest.approx(0.9)
    assert found[1]["accuracy"]["value"] == pytest.approx(0.75)
    assert found[1]["ahead"]["value"] == pytest.approx(0.15)
    assert found[1]["ahead"]["low"] < 0.15 < found[1]["ahead"]["high"]


def test_one_source_alone_leaves_only_its_texts_to_draw():
    right = [answered(100, 0), answered(0, 100)]
    rows = [Row(OURS, "off", [right])]
    assert score(rows, ["a", "a"])[0]["accuracy"] == pytest.approx({"value": 0.5, "low": 0.5, "high": 0.5})
    assert score(rows, ["a", "b"])[0]["accuracy"]["low"] == 0


def test_a_row_with_names_is_compared_with_the_model_with_names():
    rows = [
        Row(OURS, "off", [[answered(5, 5)]]),
        Row(OURS, "on", [[answered(9, 1)]]),
        Row("x", "on", [[answered(8, 2)]]),
    ]
    found = score(rows, ["a"])
    assert found[1]["ahead"]["value"] == pytest.approx(0.4)  # of names over no names
    assert found[2]["ahead"]["value"] == pytest.approx(0.1)


def test_the_penalty_is_the_one_that_answers_the_banks_problems_best():
    train = Examples(["a", "b"], ["x", "y"])
    problems = TaskBank((Task("p", train, test=Examples(["c", "d"], ["y", "y"])),))
    said = with_best_penalty(lambda C: lambda task: ["y" if C == 10 else "x"] * len(task.test), problems)
    assert said(problems["p"]) == ["y", "y"]


def test_problems_keep_their_support_apart_from_what_is_asked(make_bank):
    bank = make_bank(4, size=12)
    problems = few_shot_problems(bank)
    assert len(problems) >= 4
    for task in problems:
        assert len(task.test)
        assert not set(task.train.texts) & set(task.test.texts)


def test_misleading_names_keep_the_task(make_bank):
    task = make_bank(1)["colour-0"]
    for how in ("numbered", "shuffled"):
        renamed = rename(task, how)
        assert renamed.train.texts == task.train.texts
        pairs = set(zip(task.train.labels, renamed.train.labels, strict=True))
        assert len(pairs) == len(set(task.train.labels))  # one new name for each old one
    assert all(label.startswith("label_") for label in rename(task, "numbered").labels)


def test_the_whole_command(make_bank, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
    bank = make_bank(6, size=12)
    roles = dict.fromkeys(bank.names[-2:], "target")
    write_bank(TaskBank(tuple(bank), roles), tmp_path / "data")
    asked = [*asked_of(tmp_path, bank, projection_steps=40, own_steps=20, clusters=2), "--seeds", "1"]
    done = CliRunner().invoke(compare, [*asked, "--json"], catch_exceptions=False)
    results = json.loads(done.stdout)
    assert results == json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert results["targets"] == 2
    told = {(row["method"], row["names"]) for row in results["rows"]}
    assert {(OURS, names) for names in ("off", "on", "zero examples", "numbered", "shuffled")} <= told
    assert ("frozen encoder, logistic regression, balanced", "on") in told
    shown = CliRunner().invoke(compare, [*asked, "--quiet"], catch_exceptions=False)
    assert "one metric for all" in shown.stdout
    assert results["data"][:12] in shown.stdout


def test_names_in_german_say_the_same_label_by_label_and_stay_apart():
    train = Examples(["a", "b", "c", "d"], ["late_flight", "confirm", "acknowledge", "osx"])
    assert set(rename(Task("t", train), "in German").train.labels) == {"spät Flug", "confirm", "acknowledge", "osx"}
    assert german.speaks(["late flight", "yes", "no", "lost luggage", "other", "order", "bad hotel"])
    assert not german.speaks(["late flight", "osx"])
