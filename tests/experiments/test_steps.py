"""The experiment on gradient steps: problems, rows and the command."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from experiments.steps import ALL, MARGINS, TRAININGS, WEIGHTS, draw_step_problems, score, steps

from manymetrics.collect import write_bank
from tiny_sentence import vocabulary_of, write_bert_folder


def test_a_problem_has_the_shots_asked_for(make_bank):
    bank = make_bank(2, size=12)
    (problem,) = draw_step_problems(bank, bank.names[:1], "2+3")
    assert len(problem.train) == 2 * len(problem.labels) + 3
    assert not set(problem.train.texts) & set(problem.test.texts)


def test_steps_are_used_above_the_margin_alone():
    """Of two problems steps gain one and lose the other; cross-fitting says so."""
    right, wrong = np.array([[9.0, 0.0]]), np.array([[0.0, 9.0]])

    def answers(gain, unmoved, moved):
        fixed = {"labels": np.array([0]), "gain": np.array([gain]), "temperatures": np.ones(2), "unmoved": unmoved}
        return {**fixed, **{f"{name}|{weight}": moved for name in TRAININGS for weight in WEIGHTS}}

    rows = score([answers(0.3, wrong, right), answers(-0.3, right, wrong)], ["a", "b"])
    by_margin = {row["margin"]: row for row in rows if row["layers"] == ALL and row["weight"] == WEIGHTS[0]}
    assert rows[0]["accuracy"] == 0.5
    assert (by_margin[None]["used"], by_margin[None]["accuracy"]) == (2, 0.5)
    assert (by_margin[0.0]["used"], by_margin[0.0]["accuracy"], by_margin[0.0]["gain"]["value"]) == (1, 1.0, 0.5)
    assert len(rows) == 1 + len(TRAININGS) * len(WEIGHTS) * len(MARGINS)


def test_the_whole_command(make_bank, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: no steps can be taken")
    bank = make_bank(4, size=12)
    write_bank(bank, tmp_path / "data")
    write_bert_folder(tmp_path / "tiny", vocabulary=vocabulary_of(bank))
    (tmp_path / "recipe.toml").write_text(f"encoder = {json.dumps(str(tmp_path / 'tiny'))}\nprojection_steps = 20\n")
    asked = ["--data", tmp_path / "data", "--out", tmp_path / "out", "--recipe", tmp_path / "recipe.toml", "--folds", 2]
    asked = [*map(str, asked), "--workers", "1", "--shots", "1+4"]
    found = json.loads(CliRunner().invoke(steps, [*asked, "--json"], catch_exceptions=False).stdout)
    assert found["problems"] == 4
    shown = CliRunner().invoke(steps, [*asked, "--quiet"], catch_exceptions=False).stdout  # from what was stored
    assert "all layers (in use)" in shown
