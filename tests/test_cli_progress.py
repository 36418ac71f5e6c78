"""Progress on stderr: lines now and then, bars on a terminal, nothing when quiet."""

import json

import click
import pytest

from manymetrics import Failure, Progress
from manymetrics.cli.group import ASKED
from manymetrics.cli.output import as_time, on_one_line
from manymetrics.cli.progress import BETWEEN_LINES, Stages


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is told to move."""
    now = [100.0]
    monkeypatch.setattr("manymetrics.cli.progress.time.monotonic", lambda: now[0])

    def wait(seconds):
        now[0] += seconds

    return wait


def events(clock, stage="measure-models", total=6, each=2.0, kept=0):
    yield Progress(stage, kept, total, 0.0, kept)
    for done in range(kept + 1, total + 1):
        clock(each)
        yield Progress(stage, done, total, (done - kept) * each, kept)


def test_lines_come_every_few_seconds_and_at_the_end(clock, capfd):
    with Stages() as stages:
        for event in events(clock):
            stages(event)
    assert 4 < BETWEEN_LINES < 6
    assert capfd.readouterr().err.splitlines() == [
        "measure-models 3/6, 2.0 s each, 6 s left",
        "measure-models 6/6, 2.0 s each, 12 s",
    ]


def test_what_was_kept_is_told(clock, capfd):
    with Stages() as stages:
        stages(Progress("specialize", 3, 3, 0.0, 3))
    assert capfd.readouterr().err == "specialize 3/3, 3 were there already\n"


def failing(clock, stage="measure-models"):
    failure = Failure(stage, "shop", "it was closed")
    yield Progress(stage, 0, 4, 0.0)
    clock(6)
    yield Progress(stage, 1, 4, 6.0, 0, (failure,))
    clock(6)
    yield Progress(stage, 3, 4, 12.0, 0, (failure,))


def test_failures_are_counted_and_told_at_the_end_with_the_way_to_try_again(clock, capfd):
    with Stages() as stages:
        for event in failing(clock):
            stages(event)
    assert capfd.readouterr().err.splitlines() == [
        "measure-models 1/4, 3.0 s each, 6 s left, 1 failed",
        "measure-models 3/4, 3.0 s each, 12 s, 1 failed",
    ]
    with click.Context(click.Command("learn")) as context:
        context.meta[ASKED] = "manymetrics learn bank"
        stages.sum_up()
    assert capfd.readouterr().err.splitlines()[1] == (
        "manymetrics: 1 unit failed and was left out: measure-models of 'shop'. Try again with: manymetrics learn bank"
    )


def test_as_json_every_event_is_a_line(clock, capfd):
    with Stages(as_json=True) as stages:
        for event in failing(clock):
            stages(event)
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == ["stage", "failed", "stage", "stage"]
    assert lines[1] == {"event": "failed", "stage": "measure-models", "unit": "shop", "error": "it was closed"}
    assert lines[2] == {
        "event": "stage",
        "stage": "measure-models",
        "done": 1,
        "total": 4,
        "kept": 0,
        "failed": 1,
        "seconds": 6.0,
        "left": 6.0,
    }


def test_the_times_of_a_stage_that_comes_twice_are_added_up(clock, capfd):
    with Stages(quiet=True) as stages:
        for stage in ("specialize", "measure-models", "specialize"):
            for event in events(clock, stage, total=2):
                stages(event)
    assert stages.seconds == {"specialize": 8.0, "measure-models": 4.0, "total": 12.0}
    stages.sum_up()
    assert capfd.readouterr().err == ""


def test_a_terminal_gets_a_bar_with_rate_and_time_left(clock, capfd, monkeypatch):
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm"), ("COLUMNS", "100"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    with Stages() as stages:
        half, *rest = list(events(clock, total=4))[2:]
        stages(Progress("measure-models", 0, 4, 0.0))
        stages(half)
        stages._bars.refresh()
        for event in rest:
            stages(event)
    told = capfd.readouterr().err
    assert "2/4 2.0 s each, 4 s left" in told
    assert "4/4 2.0 s each, 8 s" in told
    assert "\x1b[3" not in told, "NO_COLOR is set"


def test_a_terminal_that_can_do_nothing_gets_lines(clock, capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    with Stages() as stages:
        stages(Progress("specialize", 1, 1, 0.0, 1))
    assert capfd.readouterr().err.startswith("specialize 1/1")


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.04, "0.0 s"), (0.5, "0.5 s"), (25.4, "25 s"), (65, "1 min 05 s"), (119.7, "2 min 00 s"), (3_720, "1 h 02 min")],
)
def test_times_are_told_as_people_do(seconds, told):
    assert as_time(seconds) == told


def test_a_line_cannot_be_broken_or_steer_the_terminal():
    assert on_one_line("a\nb\x1b[31m é \ud800") == "a\\nb\\x1b[31m é \\ud800"
