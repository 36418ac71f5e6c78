"""The grid of examples a label by number of labels: planted answers, and the whole command."""

import numpy as np
import pytest
from click.testing import CliRunner
from experiments.comparison import OURS
from experiments.grid import PARTS, draw_problems, grid, held_out_part, score

from manymetrics.collect import write_bank
from manymetrics.errors import InputError
from manymetrics.evaluation.scoring import Answered
from manymetrics.values import Examples, Task, TaskBank


def bank(sources=10, size=30):
    """Tasks of two or three labels, two of each source, with texts of their own."""
    tasks = []
    for source in range(sources):
        for number in range(2):
            labels = [f"l{source}{number}{place}" for place in range(2 + number)]
            rows = [(f"{label} w{row}", label) for label in labels for row in range(size)]
            tasks.append(Task(f"s{source}-{number}", Examples(*zip(*rows, strict=True))))
    return TaskBank(tuple(tasks))


def test_sources_are_held_out_whole_and_every_one_once():
    tasks = bank()
    fifths = [held_out_part(tasks, 0, part) for part in range(PARTS)]
    assert sorted(name for names in fifths for name in names) == sorted(tasks.names)
    sources = [{name.split("-")[0] for name in names} for names in fifths]
    assert sum(map(len, sources)) == len(set.union(*sources))
    assert any(held_out_part(tasks, seed, 0) != fifths[0] for seed in (1, 2, 3))


def test_every_problem_lies_in_its_cell():
    tasks = bank()
    problems = draw_problems(tasks, held_out_part(tasks, 0, 0), 0)
    assert {shots for shots, _ in problems} >= {1, 2, 5, 10, 20}
    for (shots, (low, high)), drawn in problems.items():
        for task in drawn:
            assert low <= len(task.labels) <= high
            assert set(np.unique(task.train.labels, return_counts=True)[1]) == {shots}
            assert not set(task.train.texts) & set(task.test.texts)


def test_ours_is_compared_with_the_best_other_of_each_cell():
    right, half = (Answered("t", np.zeros(4, dtype=int), np.array([0, 0, wrong, wrong])) for wrong in (0, 1))
    cell = (1, (2, 4))
    found = score({cell: {("off", OURS): [half], ("off", "a"): [half], ("off", "b"): [right]}}, {cell: ["s"]})
    assert [(one["best"], one["ahead"]["value"], one["balanced_accuracy"]) for one in found] == [("b", -0.5, 0.5)]
    assert found[0]["sources"] == 1


def test_too_few_sources_are_refused_before_learning(tmp_path):
    few = bank().only(["s1-0", "s1-1"])
    assert not held_out_part(few, 0, 0)
    write_bank(few, tmp_path / "data")
    with pytest.raises(InputError, match=r"none falls to the fifth that is kept from learning\. Take more tasks\."):
        CliRunner().invoke(
            grid, ["--data", str(tmp_path / "data"), "--out", str(tmp_path / "out")], catch_exceptions=False
        )
    assert not (tmp_path / "out").exists()


def test_the_whole_command(run_whole):
    found, shown = run_whole(grid, bank(size=8), projection_steps=20, own_steps=5, clusters=2)
    assert {cell["names"] for cell in found["cells"]} == {"off", "on"}
    assert all(OURS in cell["accuracy"] and cell["problems"] for cell in found["cells"])
    assert "examples a label" in shown
