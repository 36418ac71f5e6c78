"""One bank of several folders: planted costs, and the whole command on an encoder of a few bytes."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from experiments.together import cost, families_of, grouped, join, together

from manymetrics.collect import write_bank
from manymetrics.collect.bank.labels import MIN_SHARING
from manymetrics.errors import InputError
from manymetrics.evaluation.scoring import Answered
from manymetrics.values import TARGET, Examples, Task, TaskBank
from tiny_sentence import asked_of


def answered(right, of=40):
    """Of one task, so many right answers."""
    labels = np.arange(of) % 2
    return Answered("t", np.where(np.arange(of) < right, labels, 1 - labels), labels)


def test_the_cost_is_what_is_lost_by_being_together():
    found = cost([[answered(40), answered(20)]], [[answered(30), answered(20)]], ["a", "b"])
    assert found["alone"]["accuracy"]["value"] == 0.75
    assert found["together"]["accuracy"]["value"] == 0.625
    assert found["together"]["balanced_accuracy"] == 0.625
    assert found["cost"]["value"] == pytest.approx(0.125)


def test_tasks_keep_their_roles_and_names_must_differ():
    one, other = Task("a", Examples(("x", "z"), ("y", "n"))), Task("b", Examples(("x", "z"), ("y", "n")))
    joined = join([TaskBank((one,)), TaskBank((other,), {"b": TARGET})])
    assert (joined.names, joined.role("a"), joined.role("b")) == (("a", "b"), "meta-train", TARGET)
    with pytest.raises(InputError, match="Tasks of two folders have the same name"):
        join([TaskBank((one,)), TaskBank((one,))])


def test_targets_of_one_family_are_resampled_by_source():
    targets = TaskBank(
        (Task("a", Examples(("x", "z"), ("y", "n")), source="s"), Task("b", Examples(("x", "z"), ("y", "n"))))
    )
    assert grouped(targets, {"a": "f", "b": "g"}) == ["f", "g"]
    assert grouped(targets, {"a": "f", "b": "f"}) == ["s", "b"]


def tasks(kind, count, words):
    """Tasks whose texts name their labels; the last one is a target."""
    made = []
    for number in range(count + 1):
        labels = [word.format(number) for word in words]
        train, test = (
            Examples(*zip(*[(f"{word} {kind} w{row}", word) for word in labels for row in range(size)], strict=True))
            for size in (9, 4)
        )
        made.append(Task(f"{kind}{number}", train, test=test))
    return TaskBank(tuple(made), {made[-1].name: TARGET})


def test_the_whole_command(tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
    reviews, bots = tasks("review", MIN_SHARING, ("good", "bad")), tasks("bot", 4, ("a{0}", "b{0}"))
    write_bank(bots, tmp_path / "bots")
    write_bank(reviews, tmp_path / "data")
    assert {family for _, family in families_of(tmp_path / "bots", bots, "family")} == {"bots"}
    asked = asked_of(tmp_path, join([reviews, bots]), projection_steps=20, own_steps=5, clusters=2)
    asked += ["--data", str(tmp_path / "bots"), "--seeds", "1"]
    found = json.loads(CliRunner().invoke(together, [*asked, "--json"], catch_exceptions=False).stdout)
    assert [(row["bank"], row["names"]) for row in found["rows"]] == [("data", "off"), ("bots", "off"), ("bots", "on")]
    assert found["rows"][0]["together"] == found["rows"][0]["alone"]  # they share their labels
    assert (found["tasks"], found["seeds"][0]["families"]) == (MIN_SHARING + 4, 2)
    shown = CliRunner().invoke(together, [*asked, "--quiet"], catch_exceptions=False).stdout
    assert "clusters, adjusted Rand" in shown
    assert "cost" in shown
