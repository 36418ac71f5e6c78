"""Texts that are asked and occur in what was learned from, planted and counted."""

import json

import pytest
from click.testing import CliRunner

from experiments import commands
from manymetrics.collect import write_bank
from manymetrics.values import Examples, Task, TaskBank


def task(name, texts, asked=()):
    labels = tuple("ab"[place % 2] for place in range(len(texts)))
    test = Examples(tuple(asked), tuple("ab"[place % 2] for place in range(len(asked))))
    return Task(name, Examples(tuple(texts), labels), test=test)


@pytest.fixture
def folder(tmp_path):
    """Two targets, one of which asks two of four texts that past tasks have; past tasks share one text."""
    past = [task(f"past-{n}", [f"{word} {n}" for word in ("one", "two", "three", "four")] + ["shared"]) for n in "xy"]
    past.append(task("past-z", ["five", "six", "seven", "eight"], asked=["asked of past tasks alone"]))
    new = [
        task("new", ["p", "q", "r", "s"], ["one x", "six", "One x", "asked of past tasks alone"]),
        task("other", ["t", "u"], ["v", "w"]),
    ]
    roles = {one.name: "meta-train" for one in past} | {one.name: "target" for one in new}
    write_bank(TaskBank((*past, *new), roles), tmp_path / "bank")
    return tmp_path / "bank"


def run(*words):
    return CliRunner().invoke(commands.main, [str(word) for word in words], catch_exceptions=False)


def test_the_command_counts_targets_and_held_out_sources(folder):
    found = json.loads(run("data", "repeated", folder, "--json").stdout)
    assert found["rows"] == [
        {"task": "new", "texts": 4, "repeated": 2},
        {"task": "other", "texts": 2, "repeated": 0},
    ]
    assert found["held_out"]["texts"] > 0
    told = run("data", "repeated", folder).stdout
    assert ["new", "4", "2", "50.0%"] in [line.split() for line in told.splitlines()]
    assert "held out: " in told
