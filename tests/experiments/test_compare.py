"""`compare`: planted answers, and the whole command on an encoder of a few bytes."""

import json
import shutil
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from experiments.baselines.setfit import METHOD
from experiments.comparison import (
    ANSWERS,
    OURS,
    Row,
    compare,
    pack_answers,
    read_answers,
    score,
    score_against,
)
from experiments.label_names import can_be_german, rename
from safetensors.numpy import save

from experiments import comparison
from manymetrics.collect import write_bank
from manymetrics.errors import InputError, MissingExtra
from manymetrics.evaluation.scoring import Answered
from manymetrics.values import Examples, Task, TaskBank
from planted_setfit import plant
from tiny_sentence import asked_of, vocabulary_of, write_bert_folder


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


def test_a_row_with_names_is_compared_with_the_model_with_names():
    rows = [
        Row(OURS, "off", [[answered(5, 5)]]),
        Row(OURS, "on", [[answered(9, 1)]]),
        Row("x", "on", [[answered(8, 2)]]),
    ]
    found = score(rows, ["a"])
    assert found[1]["ahead"]["value"] == pytest.approx(0.4)  # of names over no names
    assert found[2]["ahead"]["value"] == pytest.approx(0.1)


def test_answers_are_kept_and_compared_text_by_text_with_those_of_an_earlier_run(tmp_path):
    before = [
        Row(OURS, "off", [[answered(5, 5, "a"), answered(2, 8, "b|c")], [answered(7, 3, "a"), answered(4, 6, "b|c")]]),
        Row("gone", "off", [[answered(1, 9, "a"), answered(1, 9, "b|c")]]),
    ]
    (tmp_path / ANSWERS).write_bytes(save(pack_answers(before)))
    earlier = read_answers(tmp_path)
    assert set(earlier) == {(OURS, "off"), ("gone", "off")}
    found = [[(one.task, one.accuracy) for one in seed] for seed in earlier[OURS, "off"]]
    assert [dict(seed) for seed in found] == [{"a": 0.5, "b|c": 0.2}, {"a": 0.7, "b|c": 0.4}]
    now = [Row(OURS, "off", [[answered(3, 7, "b|c"), answered(9, 1, "a")]]), Row(OURS, "on", [[answered(10, 0, "a")]])]
    (row,) = score_against(now, earlier, ["x", "y"])
    assert (row["method"], row["names"]) == (OURS, "off")
    assert row["accuracy"]["value"] == pytest.approx((0.0 + 0.3) / 2)
    assert row["balanced_accuracy"] == pytest.approx(0.15)
    with pytest.raises(InputError, match=r"There are no answers in .*. Give the folder that `compare` wrote"):
        read_answers(tmp_path / "nowhere")


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
    again = CliRunner().invoke(compare, [*asked, "--against", str(tmp_path / "out"), "--json"], catch_exceptions=False)
    assert {row["accuracy"]["value"] for row in json.loads(again.stdout)["earlier"]} == {0.0}
    assert results["data"][:12] in shown.stdout


def test_names_in_german_say_the_same_label_by_label_and_stay_apart():
    train = Examples(["a", "b", "c", "d"], ["late_flight", "confirm", "acknowledge", "osx"])
    assert set(rename(Task("t", train), "in German").train.labels) == {"spät Flug", "confirm", "acknowledge", "osx"}
    assert can_be_german(["late flight", "yes", "no", "lost luggage", "other", "order", "bad hotel"])
    assert not can_be_german(["late flight", "osx"])


@pytest.fixture
def asked_with_setfit(make_bank, tmp_path):
    """The options of a comparison with SetFit on two targets and an encoder that is a BERT."""
    pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
    pytest.importorskip("torch", reason="torch is not installed: the number of heads cannot be found")
    bank = make_bank(6, size=12)
    write_bank(TaskBank(tuple(bank), dict.fromkeys(bank.names[-2:], "target")), tmp_path / "data")
    asked = asked_of(tmp_path, bank, projection_steps=40, own_steps=20, clusters=2)
    shutil.rmtree(tmp_path / "tiny")
    write_bert_folder(tmp_path / "tiny", vocabulary=vocabulary_of(bank))
    return [*asked, "--with", "setfit"]


def test_setfit_is_a_row_and_is_asked_once_for_each_target_and_seed(asked_with_setfit, monkeypatch):
    fits = plant(monkeypatch)
    asked = [*asked_with_setfit, "--seeds", "2", "--peer-seeds", "1", "--json"]
    results = json.loads(CliRunner().invoke(compare, asked, catch_exceptions=False).stdout)
    rows = {row["names"]: row for row in results["rows"] if row["method"] == METHOD}
    assert set(rows) == {"off", "on"}
    assert rows["off"]["accuracy"]["value"] > 0.5, "a third is chance"
    assert results["command"].endswith("--seeds 2 --by source --with setfit --peer-seeds 1")
    assert len(fits) == 2 * 2  # targets, names off and on
    again = CliRunner().invoke(compare, asked, catch_exceptions=False)
    assert json.loads(again.stdout)["rows"] == results["rows"]
    assert len(fits) == 4


def test_what_setfit_lacks_is_said_before_anything_is_learned(make_bank, monkeypatch, tmp_path):
    bank = make_bank(4, size=12)
    write_bank(TaskBank(tuple(bank), {bank.names[-1]: "target"}), tmp_path / "data")
    (tmp_path / "words.toml").write_text('encoder = "words"\nvectors = "random"\n')
    monkeypatch.setattr(comparison, "learn_metrics", lambda *args, **settings: pytest.fail("something was learned"))
    asked = ["--data", str(tmp_path / "data"), "--out", str(tmp_path / "out"), "--with", "setfit", "-q"]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "setfit", None)
        with pytest.raises(MissingExtra, match=r"^SetFit is not installed. Install it with: pip install"):
            CliRunner().invoke(compare, asked, catch_exceptions=False)
    plant(monkeypatch)
    with pytest.raises(InputError, match="SetFit fine-tunes a sentence encoder, and this recipe uses word"):
        CliRunner().invoke(compare, [*asked, "--recipe", str(tmp_path / "words.toml")], catch_exceptions=False)
