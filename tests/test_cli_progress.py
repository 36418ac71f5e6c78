"""Progress on stderr: lines now and then, bars on a terminal, a sign of life in between, nothing when quiet."""

import io
import json
import logging
import sys
from types import SimpleNamespace

import click
import pytest

from manymetrics import Engine, Failure, InputError, Progress, ProgressDisplay, learn_metrics
from manymetrics.cli.group import ASKED
from manymetrics.cli.output import as_time, on_one_line
from manymetrics.cli.progress import Stages
from manymetrics.engine import display
from manymetrics.engine.display import BETWEEN_LINES, SILENCE, clock_time, shown
from manymetrics.values import Unit


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is told to move."""
    now = [100.0]
    standing = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("manymetrics.cli.progress.time", standing)
    monkeypatch.setattr(display, "time", standing)

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
        "measure-models 3/6, 2.0 s each, 0:06 left",
        "measure-models 6/6, 2.0 s each, 0:12",
    ]


def test_what_was_kept_is_told(clock, capfd):
    with Stages() as stages:
        stages(Progress("specialize", 3, 3, 0.0, 3))
    assert capfd.readouterr().err == "specialize 3/3, 3 were there already\n"


def failing(clock, stage="measure-models"):
    failure = Failure(stage, "shop", "it was closed")
    yield Progress(stage, 0, 4, 0.0)
    clock(6)
    yield Progress(stage, 1, 4, 6.0, 0, (failure,), ("shelf", "till"))
    clock(6)
    yield Progress(stage, 3, 4, 12.0, 0, (failure,))


def test_failures_are_counted_and_told_at_the_end_with_the_way_to_try_again(clock, capfd):
    with Stages() as stages:
        for event in failing(clock):
            stages(event)
    assert capfd.readouterr().err.splitlines() == [
        "measure-models 1/4, 3.0 s each, 0:06 left, 1 failed",
        "measure-models 3/4, 3.0 s each, 0:12, 1 failed",
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
        "running": ["shelf", "till"],
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
    with ProgressDisplay() as stages:
        half, *rest = list(events(clock, total=4))[2:]
        stages(Progress("measure-models", 0, 4, 0.0))
        stages(half)
        stages.refresh()
        for event in rest:
            stages(event)
    told = capfd.readouterr().err
    assert "2/4 2.0 s each, 0:04 left" in told
    assert "4/4 2.0 s each, 0:08" in told
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


@pytest.mark.parametrize(("seconds", "told"), [(0.4, "0:00"), (65, "1:05"), (3599.6, "1:00:00"), (7325, "2:02:05")])
def test_a_clock_shows_minutes_and_hours(seconds, told):
    assert clock_time(seconds) == told


def test_a_long_silence_is_broken_by_what_is_worked_on_and_for_how_long(clock, capfd):
    with ProgressDisplay("lines") as shows:
        shows(Progress("specialize", 0, 8, 0.0, running=("cluster-0", "cl\x1b[31m")))
        shows.show_running()
        clock(SILENCE)
        shows.show_running()
        shows.show_running()
        clock(35)
        shows(Progress("specialize", 1, 8, 65.0, running=("cl\x1b[31m", "cluster-2")))
        clock(SILENCE)
        shows.show_running()
    assert capfd.readouterr().err.splitlines() == [
        "specialize 0/8, working on 'cluster-0' for 0:30, 'cl\\x1b[31m' for 0:30",
        "specialize 1/8, 65.0 s each, 7:35 left",
        "specialize 1/8, working on 'cl\\x1b[31m' for 1:35, 'cluster-2' for 0:30",
    ]


def test_what_follows_a_stage_is_not_done_in_silence(clock, capfd):
    with ProgressDisplay("lines") as shows:
        shows(Progress("specialize", 1, 1, 0.0, 1))
        clock(SILENCE)
        shows.show_running()
    assert capfd.readouterr().err.splitlines() == [
        "specialize 1/1, 1 were there already",
        "specialize 1/1, 1 were there already, working on what follows for 0:30",
    ]


def test_of_many_units_at_once_some_are_named(clock, capfd):
    with ProgressDisplay("lines") as shows:
        shows(Progress("stage", 0, 8, 0.0, running=tuple("abcde")))
        clock(SILENCE)
        shows.show_running()
    assert capfd.readouterr().err == "stage 0/8, working on 'a' for 0:30, 'b' for 0:30, 'c' for 0:30 and 2 more\n"


def test_a_bar_shows_what_is_worked_on(clock, capfd, monkeypatch):
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm"), ("COLUMNS", "100"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    with ProgressDisplay() as shows:
        shows(Progress("specialize", 0, 2, 0.0, running=("[red]cluster",)))
        clock(7)
        shows.show_running()
        shows.refresh()
        shows(Progress("specialize", 2, 2, 9.0))
        clock(4)
        shows.show_running()
        shows.refresh()
        shows(Progress("next", 1, 1, 0.0, 1))
    told = capfd.readouterr().err
    assert "2/2 4.5 s each, 0:09, working on what follows for 0:04" in told
    assert "what follows" not in told[told.rindex("specialize") :]
    assert "0/2 working on '[red]cluster' for 0:07" in told


def test_nobody_is_shown_anything_where_that_was_asked_for(clock, capfd):
    with ProgressDisplay("nothing") as shows:
        shows(Progress("specialize", 0, 2, 0.0, running=("a",)))
        clock(SILENCE)
        shows.show_running()
    assert capfd.readouterr().err == ""
    with pytest.raises(InputError, match=r"Found how='bars'\. Choose 'lines', 'nothing' or None\."):
        ProgressDisplay("bars")


def double(unit, shared):
    return f"{unit.name}{unit.name}".encode()


def test_the_engine_tells_which_units_are_worked_on():
    reports = []
    with Engine(None, report=reports.append) as engine:
        engine("stage", double, [Unit(name, {}) for name in "abc"])
    assert [report.running for report in reports] == [("a",), ("b",), ("c",), ()]
    reports.clear()
    with Engine(None, workers=2, report=reports.append) as engine:
        engine("stage", double, [Unit(name, {}) for name in "abc"])
    assert reports[0].running == ("a", "b")
    assert set(reports[1].running) < {"a", "b", "c"}
    assert [len(report.running) for report in reports] == [2, 2, 1, 0]


class Terminal(io.StringIO):
    """A terminal that can do nothing but show lines."""

    def isatty(self):
        return True


def test_without_a_report_progress_is_shown_where_somebody_looks(monkeypatch, capfd):
    with shown(None) as report:
        report(Progress("specialize", 1, 1, 0.0, 1))
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "dumb")
    with shown(None) as report:
        report(Progress("specialize", 1, 1, 0.0, 1))
    assert sys.stderr.getvalue() == "specialize 1/1, 1 were there already\n"
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    with shown(None) as report:
        report(Progress("specialize", 1, 1, 0.0, 1))
    assert sys.stderr.getvalue() == "specialize 1/1, 1 were there already\n"
    with shown(print) as report:
        assert report is print


def test_learning_shows_its_progress_and_logs_its_stages(monkeypatch, tiny_bank, tiny_recipe, vectors, caplog):
    pytest.importorskip("torch")
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "dumb")
    with caplog.at_level(logging.INFO, logger="manymetrics"):
        learn_metrics(tiny_bank, tiny_recipe, vectors=vectors)
    assert "measure-models 4/4" in sys.stderr.getvalue()
    lines = [record.getMessage() for record in caplog.records if record.name == "manymetrics"]
    assert lines[0] == "measure-models: 4 units, 0 of them there already"
    assert "partition: 4 tasks in 2 clusters" in lines
    stages = [line.partition(":")[0] for line in lines]
    assert list(dict.fromkeys(stages))[:4] == ["measure-models", "measure-transfer", "partition", "specialize"]
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("manymetrics").handlers)


def test_a_line_cannot_be_broken_or_steer_the_terminal():
    assert on_one_line("a\nb\x1b[31m é \ud800") == "a\\nb\\x1b[31m é \\ud800"
