"""Progress on stderr: lines at intervals, bars on a terminal, running jobs after a silence, nothing when quiet."""

import io
import json
import logging
import sys
import time
from types import SimpleNamespace

import click
import pytest

import manymetrics as mm
from manymetrics import Engine, Failure, InputError, Progress, ProgressDisplay, learn_metrics
from manymetrics.cli.encoders import fetch_encoder_if_missing
from manymetrics.cli.main import COMMAND_LINE
from manymetrics.cli.output import as_time, on_one_line
from manymetrics.cli.progress import Stages
from manymetrics.cli.serve import learn_sample_model
from manymetrics.encode.cache import amount_of_text
from manymetrics.engine import progress
from manymetrics.engine.progress import BETWEEN_LINES, SILENCE, clock_time, each_with_progress, shown
from manymetrics.values import Job


@pytest.fixture
def clock(monkeypatch):
    """A clock that only moves when the test calls it."""
    now = [100.0]
    stopped = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr("manymetrics.cli.progress.time", stopped)
    monkeypatch.setattr(progress, "time", stopped)

    def wait(seconds):
        now[0] += seconds

    return wait


@pytest.fixture
def terminal(monkeypatch):
    """A terminal that can draw bars, without colours."""
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm"), ("COLUMNS", "100"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)


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


def test_jobs_of_an_earlier_run_are_counted(clock, capfd):
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


def test_failures_are_counted_and_listed_at_the_end_with_the_command_to_try_again(clock, capfd):
    with Stages() as stages:
        for event in failing(clock):
            stages(event)
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


def test_with_json_each_event_is_a_line(clock, capfd):
    with Stages(as_json=True) as stages:
        for event in failing(clock):
            stages(event)
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == ["stage", "failed", "stage", "stage"]
    assert lines[1] == {"event": "failed", "stage": "measure-models", "job": "shop", "error": "it was closed"}
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


def test_the_times_of_a_repeated_stage_are_added(clock, capfd):
    with Stages(quiet=True) as stages:
        for stage in ("specialize", "measure-models", "specialize"):
            for event in events(clock, stage, total=2):
                stages(event)
    assert stages.seconds == {"specialize": 8.0, "measure-models": 4.0, "total": 12.0}
    stages.sum_up()
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_a_bar_with_rate_and_time_left(clock, capfd):
    for count in (3, 5):
        with ProgressDisplay() as stages:
            for event in list(events(clock, total=4))[:count]:
                stages(event)
    output = capfd.readouterr().err
    assert "2.0 s each, 0:04 left" in output
    assert "2.0 s each, 0:08" in output
    assert "\x1b[3" not in output, "NO_COLOR is set"


def test_a_dumb_terminal_gets_lines(clock, capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    with Stages() as stages:
        stages(Progress("specialize", 1, 1, 0.0, 1))
    assert capfd.readouterr().err.startswith("specialize 1/1")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (0.5, "0.5 s"), (25.4, "25 s"), (65, "1 min 05 s"), (119.7, "2 min 00 s"), (3_720, "1 h 02 min")],
)
def test_durations_are_printed_in_seconds_minutes_or_hours(seconds, text):
    assert as_time(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (65, "1:05"), (3599.6, "1:00:00"), (7325, "2:02:05")])
def test_a_clock_shows_minutes_and_hours(seconds, text):
    assert clock_time(seconds) == text


def test_after_a_silence_the_running_jobs_are_printed(clock, capfd):
    with ProgressDisplay("lines") as shows:
        shows.show_running()
        shows(Progress("specialize", 0, 8, 0.0, running=("cluster-0", "cl\x1b[31m")))
        shows.show_running()
        clock(SILENCE)
        shows.show_running()
        shows.show_running()
        clock(45)
        shows(Progress("specialize", 1, 8, 65.0, running=("cl\x1b[31m", "cluster-2")))
        shows(Progress("specialize", 8, 8, 70.0))
        clock(SILENCE)
        shows.show_running()
    assert capfd.readouterr().err.splitlines() == [
        "specialize 0/8, working on 'cluster-0', 'cl\\x1b[31m'",
        "specialize 1/8, 65.0 s each, 7:35 left",
        "specialize 8/8, 8.8 s each, 1:10",
    ]


def test_the_time_left_depends_on_the_sizes_of_jobs_not_on_their_number(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("manymetrics.engine.progress.time", SimpleNamespace(monotonic=lambda: now[0]))

    def run_jobs(job, shared):
        now[0] += job.size
        return b"done"

    reports = []
    with Engine(None, report=reports.append) as engine:
        engine("encode", run_jobs, [Job(name, {}, size=size) for name, size in zip("abcd", (1, 1, 1, 97), strict=True)])
    assert [report.seconds_left for report in reports] == [None, *map(pytest.approx, (99, 98, 97, 0))]


def test_jobs_of_an_earlier_run_are_not_part_of_the_estimate():
    half = Progress("encode", 8, 10, 30.0, 6, share=0.25)
    assert half.seconds_left == pytest.approx(90)
    assert Progress("encode", 8, 10, 30.0, 6).seconds_left == pytest.approx(30)


def test_encoding_long_texts_is_expected_to_take_longer():
    short, long, longest = (
        amount_of_text([sign * count, "b"]) for sign, count in (("a", 10), ("a", 600), ("a", 60_000))
    )
    assert 4 < long / short < 10
    assert longest < 1.2 * long, "only the beginning of a text is read"


def test_a_loop_reports_the_running_item_and_the_time_left(monkeypatch):
    now, reports = [0.0], []
    monkeypatch.setattr("manymetrics.engine.progress.time", SimpleNamespace(monotonic=lambda: now[0]))
    for item in each_with_progress("evaluate", ["a", "b"], reports.append, size=lambda item: 30 if item == "b" else 10):
        now[0] += 3 if item == "b" else 1
    assert [(report.done, report.total, report.running, report.seconds) for report in reports] == [
        (0, 2, ("a",), 0.0), (1, 2, ("b",), 1.0), (2, 2, (), 4.0)]  # fmt: skip
    assert [report.seconds_left for report in reports] == [None, pytest.approx(3), 0]
    assert list(each_with_progress("evaluate", [], reports.append)) == []
    assert len(reports) == 3


def test_fetching_an_encoder_shows_a_moving_line(clock, capfd, monkeypatch):
    monkeypatch.setattr(mm, "list_encoders", lambda: {"tiny": False}, raising=False)
    monkeypatch.setattr(mm, "get_encoder", lambda name: time.sleep(1.5) or clock(SILENCE) or time.sleep(1.5))
    fetch_encoder_if_missing("tiny")
    assert "fetch 0/1, working on 'tiny'\n" in capfd.readouterr().err


def test_learning_the_sample_model_of_the_service_shows_progress(capfd, monkeypatch, tmp_path):
    def learn(tasks, recipe, *, workers, report):
        report(Progress("encode", 8, 8, 0.0, 8))
        return SimpleNamespace(save=lambda path: None)

    monkeypatch.setattr(mm, "learn_metrics", learn, raising=False)
    monkeypatch.setattr(mm, "list_encoders", lambda: {"bge-small": True}, raising=False)
    assert learn_sample_model(tmp_path) == tmp_path / "model"
    output = capfd.readouterr().err
    assert "Learning a small model" in output
    assert "encode 8/8" in output


def test_the_first_of_many_running_jobs_are_named(clock, capfd):
    with ProgressDisplay("lines") as shows:
        shows(Progress("stage", 0, 8, 0.0, running=tuple("abcde")))
        clock(SILENCE)
        shows.show_running()
    assert capfd.readouterr().err == "stage 0/8, working on 'a', 'b', 'c' and 2 more\n"


@pytest.mark.usefixtures("terminal")
def test_a_bar_shows_the_running_jobs(clock, capfd):
    with ProgressDisplay() as shows:
        shows(Progress("specialize", 0, 2, 0.0, running=("[red]cluster",)))
    assert "working on '[red]cluster'" in capfd.readouterr().err


def test_the_display_nothing_prints_nothing(clock, capfd):
    with ProgressDisplay("nothing") as shows:
        shows(Progress("specialize", 0, 2, 0.0, running=("a",)))
        clock(SILENCE)
        shows(Progress("specialize", 1, 2, SILENCE))
    assert capfd.readouterr().err == ""
    with pytest.raises(InputError, match=r"Found how='bars'\. Choose 'lines', 'nothing' or None\."):
        ProgressDisplay("bars")


def double(job, shared):
    return f"{job.name}{job.name}".encode()


def test_the_engine_reports_running_jobs():
    reports = []
    with Engine(None, report=reports.append) as engine:
        engine("stage", double, [Job(name, {}) for name in "abc"])
    assert [report.running for report in reports] == [("a",), ("b",), ("c",), ()]
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


def test_without_a_report_progress_is_shown_on_a_terminal_or_in_a_notebook(monkeypatch, capfd):
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
    assert lines[0] == "measure-models: 4 jobs, 0 of them there already"
    assert "partition: 4 tasks in 2 clusters" in lines
    stages = [line.partition(":")[0] for line in lines]
    first = ["measure-models", "measure-transfer", "partition", "specialize"]
    assert list(dict.fromkeys(stages))[:4] == first
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("manymetrics").handlers)


def test_control_characters_in_a_line_are_escaped():
    assert on_one_line("a\nb\x1b[31m é \ud800") == "a\\nb\\x1b[31m é \\ud800"
