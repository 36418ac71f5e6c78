"""Progress on stderr: lines at intervals, bars on a terminal, running jobs after a silence, nothing when quiet."""

import io
import logging
import sys
import time
from types import SimpleNamespace

import click
import pytest

import manymetrics as mm
from manymetrics import Progress, learn_metrics
from manymetrics.cli.encoders import fetch_encoder_if_missing
from manymetrics.cli.main import COMMAND_LINE
from manymetrics.cli.progress import Stages
from manymetrics.engine import Engine, ProgressDisplay, progress
from manymetrics.engine.progress import SILENCE, each_with_progress, shown
from manymetrics.store import Failure
from manymetrics.values import Job


@pytest.fixture
def clock(monkeypatch):
    """A clock that only moves when the test calls it."""
    now = [100.0]
    stopped = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("manymetrics.cli.progress.time", stopped)
    monkeypatch.setattr(progress, "time", stopped)
    return lambda seconds: now.append(now.pop() + seconds)


def test_failures_are_counted_and_listed_at_the_end_with_the_command_to_try_again(clock, capfd):
    failure = Failure("measure-models", "shop", "it was closed")
    with Stages() as stages:
        stages(Progress("measure-models", 0, 4, 0.0))
        for done in (1, 3):
            clock(6)
            stages(Progress("measure-models", done, 4, 3.0 * (done + 1), 0, (failure,)))
    assert capfd.readouterr().err.splitlines() == [
        "measure-models 1/4, 3.0 s each, 0:06 left, 1 failed",
        "measure-models 3/4, 3.0 s each, 0:12, 1 failed",
    ]
    with click.Context(click.Command("learn")) as context:
        context.meta[COMMAND_LINE] = "manymetrics learn bank"
        stages.sum_up()
    assert capfd.readouterr().err.splitlines()[1] == (
        "manymetrics: 1 job failed and was skipped: measure-models of 'shop'. Try again with: manymetrics learn bank"
    )


def test_the_times_of_a_repeated_stage_are_added(clock, capfd):
    with Stages(quiet=True) as stages:
        for stage in ("specialize", "measure-models", "specialize"):
            for done in range(3):
                clock(2 if done else 0)
                stages(Progress(stage, done, 2, 2.0 * done))
    assert stages.seconds == {"specialize": 8.0, "measure-models": 4.0, "total": 12.0}
    stages.sum_up()
    assert capfd.readouterr().err == ""


def test_after_a_silence_the_running_jobs_and_their_times_are_printed(clock, capfd):
    with ProgressDisplay(lines=True) as shows:
        shows(Progress("specialize", 0, 8, 0.0, running=("cluster-0", "cl\x1b[31m")))
        shows.show_running()
        clock(SILENCE)
        shows.show_running()
        shows.show_running()
        clock(45)
        shows(Progress("specialize", 1, 8, 65.0, running=("cl\x1b[31m", "cluster-2")))
        clock(SILENCE)
        shows.show_running()
    assert capfd.readouterr().err.splitlines() == [
        "specialize 0/8, working on 'cluster-0' for 0:10, 'cl\\x1b[31m' for 0:10",
        "specialize 1/8, 65.0 s each, 7:35 left",
        "specialize 1/8, 65.0 s each, 7:25 left, working on 'cl\\x1b[31m' for 1:05, 'cluster-2' for 0:10",
    ]


def test_after_a_silence_before_the_first_stage_a_line_is_printed(clock, capfd):
    with ProgressDisplay(lines=True) as shows:
        clock(SILENCE)
        shows.show_running()
    assert capfd.readouterr().err == "getting ready, for 0:10\n"


def test_jobs_of_an_earlier_run_are_not_part_of_the_estimate():
    half = Progress("encode", 8, 10, 30.0, 6, share=0.25)
    assert half.seconds_left == pytest.approx(90)
    assert Progress("encode", 8, 10, 30.0, 6).seconds_left == pytest.approx(30)


def test_a_loop_reports_the_running_item_and_the_time_left_by_the_sizes_of_items(clock):
    reports = []
    for item in each_with_progress("evaluate", ["a", "b"], reports.append, size=lambda item: 30 if item == "b" else 10):
        clock(3 if item == "b" else 1)
    assert [(report.done, report.total, report.running, report.seconds) for report in reports] == [
        (0, 2, ("a",), 0.0), (1, 2, ("b",), 1.0), (2, 2, (), 4.0)]  # fmt: skip
    assert [report.seconds_left for report in reports] == [None, pytest.approx(3), 0]
    assert list(each_with_progress("evaluate", [], reports.append)) == []
    assert len(reports) == 3


def test_fetching_an_encoder_shows_a_moving_line(clock, capfd, monkeypatch):
    monkeypatch.setattr(mm, "list_encoders", lambda: {"tiny": False}, raising=False)
    monkeypatch.setattr(mm, "get_encoder", lambda name: time.sleep(1.5) or clock(SILENCE) or time.sleep(1.5))
    fetch_encoder_if_missing("tiny")
    assert "fetch 0/1, working on 'tiny' for 0:10\n" in capfd.readouterr().err


def test_a_bar_on_a_terminal_shows_rate_time_left_and_running_jobs(clock, capfd, monkeypatch):
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm"), ("COLUMNS", "100"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    with ProgressDisplay() as shows:
        shows(Progress("specialize", 0, 2, 0.0, running=("[red]cluster",)))
        clock(7)
        shows.show_running()
        shows._bars.refresh()
        shows(Progress("specialize", 1, 2, 7.0))
        shows._bars.refresh()
        shows(Progress("specialize", 2, 2, 9.0))
        clock(4)
        shows.show_running()
        shows._bars.refresh()
        shows(Progress("next", 1, 1, 0.0, 1))
    output = capfd.readouterr().err
    assert "2/2 4.5 s each, 0:09, working on what follows for 0:04" in output
    assert "what follows" not in output[output.rindex("specialize") :]
    assert "0/2 working on '[red]cluster' for 0:07" in output
    assert "1/2 7.0 s each, 0:07 left" in output
    assert "\x1b[3" not in output, "NO_COLOR is set"


def double(job, shared):
    return f"{job.name}{job.name}".encode()


def test_the_engine_reports_running_jobs_and_the_time_left_by_their_sizes(clock):
    def wait(job, shared):
        clock(job.size)
        return b"done"

    reports = []
    with Engine(None, report=reports.append) as engine:
        engine("stage", wait, [Job(name, {}, size=size) for name, size in zip("abcd", (1, 1, 1, 97), strict=True)])
    assert [report.seconds_left for report in reports] == [None, *map(pytest.approx, (99, 98, 97, 0))]
    assert [report.running for report in reports] == [("a",), ("b",), ("c",), ("d",), ()]
    reports.clear()
    with Engine(None, workers=2, report=reports.append) as engine:
        engine("stage", double, [Job(name, {}) for name in "abc"])
    assert reports[0].running == ("a", "b")
    assert set(reports[1].running) < {"a", "b", "c"}
    assert [len(report.running) for report in reports] == [2, 2, 1, 0]


class Terminal(io.StringIO):
    """A terminal that only shows lines."""

    def isatty(self):
        return True


def test_without_a_report_progress_is_shown_on_a_terminal_or_in_a_notebook(monkeypatch):
    def written(stderr):
        monkeypatch.setattr(sys, "stderr", stderr)
        with shown(None) as report:
            report(Progress("specialize", 1, 1, 0.0, 1))
        return stderr.getvalue()

    monkeypatch.setenv("TERM", "dumb")
    assert written(io.StringIO()) == ""
    assert written(Terminal()) == "specialize 1/1, 1 were there already\n"
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert written(io.StringIO()) == "specialize 1/1, 1 were there already\n"
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
    assert lines[0] == "measure-models: 4 jobs, 0 of them there already"
    assert "partition: 4 tasks in 2 clusters" in lines
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("manymetrics").handlers)
