"""What a member of the mix is worth: planted answers, and the whole command."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from experiments.members import MIX, Problem, cross_fitted, members, score

from manymetrics.collect import write_bank
from manymetrics.errors import InputError
from manymetrics.values import Examples, Task, TaskBank
from manymetrics.weigh.pooling import PENALTIES, PooledEpisode, ProblemSize
from tiny_sentence import asked_of

GROUPS = ("knows", "guesses")


def problem(source, *, right=0.9, seed=0):
    """One group gives the right answer nine tenths, the other gives any answer as much."""
    rng = np.random.default_rng(seed)
    answers = rng.integers(3, size=40)
    knows = np.full((40, 3), (1 - right) / 2)
    knows[np.arange(40), answers] = right
    guesses = rng.dirichlet(np.ones(3), size=40)
    return Problem(
        PooledEpisode(ProblemSize(5, 3), np.log(np.stack([knows, guesses], axis=1)), answers), GROUPS, source
    )


PROBLEMS = [problem(f"source {place}", seed=place) for place in range(12)]


def test_a_member_that_knows_is_missed_and_one_that_guesses_is_not():
    rows = {row["row"]: row for row in score(PROBLEMS, GROUPS, "off")}
    assert rows[MIX]["accuracy"]["value"] == 1.0
    assert rows["without knows"]["ahead"]["low"] > 0.5
    assert rows["without guesses"]["ahead"]["value"] == 0.0
    assert rows["knows alone"]["log_likelihood"] == pytest.approx(np.log(0.9))
    assert rows[MIX]["log_likelihood"] > rows["guesses alone"]["log_likelihood"]


def test_no_problem_is_answered_by_exponents_learned_on_its_own_source():
    misled = problem("source 0", right=0.05)  # here the group that knows is wrong
    before, after = (cross_fitted([one, *PROBLEMS[1:]], GROUPS, (0, 1), PENALTIES) for one in (PROBLEMS[0], misled))
    own = cross_fitted([misled, *PROBLEMS[1:]], GROUPS, (0, 1), PENALTIES)[0]
    np.testing.assert_array_equal(own, after[0])
    assert (after[0].argmax(axis=1) == misled.pooled.answers).mean() < 0.5
    assert any(not np.array_equal(one, other) for one, other in zip(before[1:], after[1:], strict=True))


def bank():
    tasks = []
    for number in range(12):
        rows = [(f"{word} w{row}", word) for word in (f"a{number}", f"b{number}", f"c{number}") for row in range(12)]
        tasks.append(Task(f"s{number}", Examples(*zip(*rows, strict=True))))
    return tasks


def test_the_whole_command(tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
    tasks = TaskBank(tuple(bank()))
    write_bank(tasks, tmp_path / "data")
    asked = [*asked_of(tmp_path, tasks, projection_steps=20, own_steps=5, clusters=2), "--seeds", "1"]
    found = json.loads(CliRunner().invoke(members, [*asked, "--json"], catch_exceptions=False).stdout)
    assert {"without regression", "without letters", "regression alone"} <= {row["row"] for row in found["rows"]}
    assert {row["names"] for row in found["rows"]} == {"off", "on"}
    assert "the mix ahead by" in CliRunner().invoke(members, [*asked, "--quiet"], catch_exceptions=False).stdout


def test_a_bank_of_shared_labels_is_refused(tmp_path):
    rows = [(f"{label} w{row}", label) for label in ("good", "bad") for row in range(9)]
    same = [Task(f"s{number}", Examples(*zip(*rows, strict=True))) for number in range(3)]
    write_bank(TaskBank(tuple(same)), tmp_path / "tasks")
    with pytest.raises(InputError, match="have the same labels"):
        CliRunner().invoke(
            members, ["--data", str(tmp_path / "tasks"), "--out", str(tmp_path / "out")], catch_exceptions=False
        )


def test_too_few_tasks_to_keep_one_from_learning_are_refused_in_a_sentence(tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
    tasks = TaskBank(tuple(bank()[:2]))
    write_bank(tasks, tmp_path / "data")
    asked = [*asked_of(tmp_path, tasks, projection_steps=5, own_steps=2), "--seeds", "1", "-q"]
    with pytest.raises(InputError, match="none can be kept from learning"):
        CliRunner().invoke(members, asked, catch_exceptions=False)
