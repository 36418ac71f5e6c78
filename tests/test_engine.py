import itertools
import os

import pytest
from threadpoolctl import threadpool_info

from manymetrics.engine import Engine
from manymetrics.errors import EnvironmentProblem
from manymetrics.learn import learn_metrics
from manymetrics.store import Run
from manymetrics.values import Unit

UNITS = [Unit(f"u{number}", {"number": number}) for number in range(5)]


def square(unit, shared):
    return str(shared * unit.spec["number"] ** 2).encode()


def whisper(unit, shared):
    print(f"working on {unit.name}")  # noqa: T201 - what a library inside a unit might do
    return b""


def threads_and_process(unit, shared):
    threads = max([1, *(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")])
    return f"{threads} {os.getpid()}".encode()


def die(unit, shared):
    os._exit(9)


def fail(unit, shared):
    raise ValueError(f"{unit.name} failed")


def test_results_come_by_name_in_the_order_of_the_units():
    with Engine(10) as engine:
        results = engine("stage", square, UNITS)
    assert list(results.items()) == [(f"u{number}", str(10 * number**2).encode()) for number in range(5)]


def test_progress_is_told_from_first_to_last():
    reports = []
    with Engine(1, report=reports.append) as engine:
        engine("stage", square, UNITS)
    assert [report.done for report in reports] == list(range(6))
    assert {(report.stage, report.total, report.kept) for report in reports} == {("stage", 5, 0)}
    assert all(one.seconds <= other.seconds for one, other in itertools.pairwise(reports))


def test_no_units_are_no_work():
    with Engine(None, workers=2) as engine:
        assert engine("stage", fail, []) == {}


def test_what_a_unit_prints_does_not_mix_with_the_results(capsys):
    with Engine(None) as engine:
        engine("stage", whisper, UNITS[:1])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "working on u0" in captured.err


def test_workers_give_the_same_results_on_one_thread_each():
    reports = []
    with Engine(10, workers=2, report=reports.append) as engine:
        assert engine("stage", square, UNITS) == {unit.name: square(unit, 10) for unit in UNITS}
        found = [result.decode().split() for result in engine("threads", threads_and_process, UNITS).values()]
    assert {threads for threads, _ in found} == {"1"}
    assert str(os.getpid()) not in {process for _, process in found}
    assert [report.done for report in reports if report.stage == "stage"] == list(range(6))


def test_a_unit_that_fails_stops_the_stage_with_its_error():
    with Engine(None) as engine, pytest.raises(ValueError, match="u0 failed"):
        engine("stage", fail, UNITS)


def test_a_worker_that_dies_is_an_error_that_says_what_to_do(tmp_path):
    with (
        Engine(None, workers=2, run=Run(tmp_path)) as engine,
        pytest.raises(
            EnvironmentProblem,
            match=r"A worker process died.* again with fewer workers to go on from what is finished\.",
        ),
    ):
        engine("stage", die, UNITS[:2])


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_one_and_two_workers_learn_the_same_model_to_the_byte_and_a_run_is_not_repeated(
    tiny_bank, tiny_recipe, vectors, tmp_path
):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    reports = {name: [] for name in ("one", "two", "again")}
    for name, workers, run in (("one", 1, "run"), ("two", 2, "other-run"), ("again", 1, "run")):
        model = learn_metrics(
            tiny_bank,
            tiny_recipe,
            vectors=vectors,
            workers=workers,
            run=tmp_path / run,
            report=reports[name].append,
        )
        model.save(tmp_path / name)
    assert files(tmp_path / "one") == files(tmp_path / "two") == files(tmp_path / "again")
    assert files(tmp_path / "run") == files(tmp_path / "other-run")
    for name, kept in (("one", 0), ("two", 0), ("again", 1)):
        last = {report.stage: report for report in reports[name]}
        assert {stage: report.total for stage, report in last.items()} == {
            "measure-models": 4,
            "measure-transfer": 4,
            "specialize": 2,
        }
        assert all(report.kept == kept * report.total for report in last.values())
        assert all(report.done == report.total for report in last.values())
