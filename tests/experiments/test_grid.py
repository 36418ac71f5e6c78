"""The grid of examples a label by number of labels: planted answers, and the whole command."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from experiments.comparison import OURS
from experiments.grid import PARTS, ahead_figure, draw_problems, grid, held_out_part, score

from manymetrics.collect import write_bank
from manymetrics.errors import InputError
from manymetrics.evaluation.scoring import Answered
from manymetrics.values import Examples, Task, TaskBank
from tiny_sentence import asked_of


def bank(sources=10, size=30):
    """Tasks of two or three labels, two of each source, with texts of their own."""
    tasks = []
    for source in range(sources):
        for number in range(2):
            labels = [f"l{source}{number}{place}" for place in range(2 + number)]
            rows = [(f"{label} w{row}", label) for label in labels for row in range(size)]
            tasks.append(Task(f"s{source}-{number}", Examples(*zip(*rows, strict=True))))
    return TaskBank(tuple(tasks))


def test_sources_are_held_out_whole():
    tasks = bank()
    kept = held_out_part(tasks, 0, 0)
    assert 0 < len(kept) < len(tasks)
    assert {name.split("-")[0] for name in kept}.isdisjoint(
        name.split("-")[0] for name in tasks.names if name not in kept
    )
    assert any(held_out_part(tasks, seed, 0) != kept for seed in (1, 2, 3))


def test_every_problem_lies_in_its_cell():
    tasks = bank()
    problems = draw_problems(tasks, held_out_part(tasks, 0, 0), 0)
    assert {shots for shots, _ in problems} >= {1, 2, 5, 10, 20}
    for (shots, (low, high)), drawn in problems.items():
        for task in drawn:
            assert low <= len(task.labels) <= high
            assert set(np.unique(task.train.labels, return_counts=True)[1]) == {shots}
            assert not set(task.train.texts) & set(task.test.texts)


def test_every_source_is_held_out_once():
    tasks = bank()
    fifths = [held_out_part(tasks, 0, part) for part in range(PARTS)]
    assert sorted(name for names in fifths for name in names) == sorted(tasks.names)


def test_ours_is_compared_with_the_best_other_of_each_cell():
    right, half = (Answered("t", np.zeros(4, dtype=int), np.array([0, 0, wrong, wrong])) for wrong in (0, 1))
    cell = (1, (2, 4))
    found = score({cell: {("off", OURS): [half], ("off", "a"): [half], ("off", "b"): [right]}}, {cell: ["s"]})
    assert [(one["best"], one["ahead"]["value"], one["balanced_accuracy"]) for one in found] == [("b", -0.5, 0.5)]
    assert found[0]["sources"] == 1


def test_the_figure_says_how_far_ours_is_ahead_and_leaves_cells_without_problems_open():
    cells = [
        {"names": names, "shots": 5, "labels": [2, 4], "ahead": {"value": ahead}}
        for names, ahead in (("off", 0.021), ("on", -0.004))
    ]
    drawn = str(ahead_figure(cells))
    assert "2–4 labels, names off, 5 a label: +2.1" in drawn
    assert "2–4 labels, names on, 5 a label: -0.4" in drawn
    assert "5–9 labels, names on, 5 a label: not measured" in drawn


def test_too_few_sources_are_refused_before_learning(tmp_path):
    few = bank().only(["s1-0", "s1-1"])
    assert not held_out_part(few, 0, 0)
    write_bank(few, tmp_path / "data")
    with pytest.raises(InputError, match=r"none falls to the fifth that is kept from learning\. Take more tasks\."):
        CliRunner().invoke(
            grid, ["--data", str(tmp_path / "data"), "--out", str(tmp_path / "out")], catch_exceptions=False
        )
    assert not (tmp_path / "out").exists()


def test_the_whole_command(tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
    tasks = bank(size=8)
    write_bank(tasks, tmp_path / "data")
    asked = asked_of(tmp_path, tasks, projection_steps=20, own_steps=5, clusters=2)
    found = json.loads(CliRunner().invoke(grid, [*asked, "--json"], catch_exceptions=False).stdout)
    assert {cell["names"] for cell in found["cells"]} == {"off", "on"}
    assert all(OURS in cell["accuracy"] and cell["problems"] for cell in found["cells"])
    shown = CliRunner().invoke(grid, [*asked, "--quiet"], catch_exceptions=False)
    assert "examples a label" in shown.stdout
