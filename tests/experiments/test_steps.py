"""The experiment on gradient steps: problems, rows and the command."""

import itertools
import json

import numpy as np
import pytest
from click.testing import CliRunner
from experiments.steps import CROSS_FITTINGS, MARGINS, TRAININGS, WEIGHTS, draw_step_problems, score, steps

import manymetrics as mm
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
        fixed = {"labels": np.array([0]), "temperature": np.array(1.0), "unmoved": unmoved}
        fitted = {f"cross-fitted|{name}": np.array([gain, 1.0, 2.0]) for name in CROSS_FITTINGS}
        seconds = {f"seconds|{name}": np.array(3.0) for name in TRAININGS}
        settings = itertools.product(TRAININGS, WEIGHTS)
        return {**fixed, **fitted, **seconds, **{"|".join(map(str, setting)): moved for setting in settings}}

    rows = score([answers(0.3, wrong, right), answers(-0.3, right, wrong)], ["a", "b"])
    setting = {"training": next(iter(TRAININGS)), "cross_fitting": next(iter(CROSS_FITTINGS)), "weight": WEIGHTS[0]}
    by_margin = {row["margin"]: row for row in rows if setting.items() <= row.items()}
    assert rows[0]["accuracy"] == 0.5
    assert (by_margin[None]["used"], by_margin[None]["accuracy"]) == (2, 0.5)
    assert (by_margin[0.0]["used"], by_margin[0.0]["accuracy"], by_margin[0.0]["gain"]["value"]) == (1, 1.0, 0.5)
    assert by_margin[0.0]["seconds"] == 2.0 + 3.0 / 2  # cross-fitting both, training one
    assert len(rows) == 1 + len(TRAININGS) * len(CROSS_FITTINGS) * len(WEIGHTS) * len(MARGINS)


@pytest.fixture
def saved_model(make_bank, tmp_path):
    write_bert_folder(tmp_path / "tiny", vocabulary=vocabulary_of(make_bank(4, size=12)))
    recipe = mm.Recipe(encoder=str(tmp_path / "tiny"), projection_steps=20)
    mm.learn_metrics(make_bank(2, size=12), recipe).save(tmp_path / "model")
    return tmp_path / "model"


def test_the_whole_command(make_bank, saved_model, tmp_path):
    """Tasks that the model was learned from are not asked."""
    pytest.importorskip("torch", reason="torch is not installed: no steps can be taken")
    write_bank(make_bank(4, size=12), tmp_path / "data")
    asked = ["--data", tmp_path / "data", "--out", tmp_path / "out", "--model", saved_model, "--folds", 2]
    asked = [*map(str, asked), "--workers", "1", "--shots", "1+4"]
    found = json.loads(CliRunner().invoke(steps, [*asked, "--json"], catch_exceptions=False).stdout)
    assert found["problems"] == 2
    shown = CliRunner().invoke(steps, [*asked, "--quiet"], catch_exceptions=False).stdout
    assert next(iter(TRAININGS)) in shown
