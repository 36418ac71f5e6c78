import itertools
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from safetensors.numpy import save
from threadpoolctl import threadpool_info

from manymetrics.engine import Engine, Limits
from manymetrics.errors import EnvironmentProblem, JobSkipped, MissingExtra, StageFailed
from manymetrics.learn import learn_metrics
from manymetrics.store import Run
from manymetrics.values import Job
from python_process import run_python
from tiny_sentence import vocabulary_of, write_folder

JOBS = [Job(f"u{number}", {"number": number}) for number in range(5)]


def square(job, shared):
    return str(shared * job.spec["number"] ** 2).encode()


def whisper(job, shared):
    print(f"working on {job.name}")  # noqa: T201 - what a library inside a job might do
    return b""


def threads_and_process(job, shared):
    threads = max([1, *(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")])
    return f"{threads} {os.getpid()}".encode()


def die_at(job, shared):
    """Some jobs end the process they are in: always, or once, as a file in the shared folder tells."""
    if job.name == "deadly" or (job.name == "unlucky" and not (shared / "died").exists()):
        (shared / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return job.name.encode()


def take_memory(job, shared):
    return np.ones(job.spec["bytes"], dtype=np.int8).tobytes()[:1]


def hang(job, shared):
    if job.name == "slow":
        time.sleep(60)
    return b"done"


def lack(job, shared):
    raise MissingExtra("It needs something that is not installed.")


def first_of_array(job, shared):
    shared["numbers"][1] = 0  # a job that does not keep to the rules harms nobody but itself
    return bytes(shared["numbers"].tobytes()[:1]) + shared["text"].encode()


def fail(job, shared):
    raise ValueError(f"{job.name} failed")


def test_results_come_by_name_in_the_order_of_the_jobs_and_progress_is_told_from_first_to_last():
    reports = []
    with Engine(10, report=reports.append) as engine:
        results = engine("stage", square, JOBS)
    assert list(results.items()) == [(f"u{number}", str(10 * number**2).encode()) for number in range(5)]
    assert [report.done for report in reports] == list(range(6))
    assert {(report.stage, report.total, report.kept) for report in reports} == {("stage", 5, 0)}
    assert all(one.seconds <= other.seconds for one, other in itertools.pairwise(reports))


def test_what_a_job_prints_does_not_mix_with_the_results(capsys):
    with Engine(None, workers=2) as engine:
        assert engine("stage", fail, []) == {}
    with Engine(None) as engine:
        engine("stage", whisper, JOBS[:1])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "working on u0" in captured.err


def test_workers_give_the_same_results_on_one_thread_each():
    reports = []
    with Engine(10, workers=2, report=reports.append) as engine:
        assert engine("stage", square, JOBS) == {job.name: square(job, 10) for job in JOBS}
        found = [result.decode().split() for result in engine("threads", threads_and_process, JOBS).values()]
    assert {threads for threads, _ in found} == {"1"}
    assert str(os.getpid()) not in {process for _, process in found}
    assert [report.done for report in reports if report.stage == "stage"] == list(range(6))


def named(*names, **spec):
    return [Job(name, spec) for name in names]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_job_that_fails_is_named_and_the_others_go_on(workers):
    reports = []
    with (
        Engine(2, workers=workers, report=reports.append) as engine,
        pytest.warns(JobSkipped, match=r"stage of 'bad' failed: KeyError: 'number' \(test_engine.py, line \d+\)\."),
    ):
        results = engine("stage", square, [*JOBS[:2], *named("bad"), JOBS[2]])
    assert list(results) == ["u0", "u1", "u2"]
    last = reports[-1]
    assert (last.done, last.total, [failure.job for failure in last.failures]) == (3, 4, ["bad"])


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("do", "error", "message"),
    [
        (fail, StageFailed, r"All 5 jobs of stage failed\. The first, 'u\d': ValueError"),
        (lack, EnvironmentProblem, r"^It needs something that is not installed\.$"),
    ],
)
def test_a_stage_without_results_and_what_the_machine_lacks_stop_everything(workers, do, error, message):
    with Engine(None, workers=workers) as engine, pytest.raises(error, match=message):
        engine("stage", do, JOBS)


def test_the_death_of_a_worker_costs_nothing_but_its_job(tmp_path):
    jobs = named("a", "unlucky", "b", "deadly", "c")
    with Engine(tmp_path, workers=2) as engine:
        with pytest.warns(JobSkipped, match="'deadly' failed: it ended its worker process 3 times, perhaps") as told:
            results = engine("stage", die_at, jobs)
        assert engine("again", die_at, jobs[:1]) == {"a": b"a"}
    assert results == {name: name.encode() for name in ("a", "unlucky", "b", "c")}
    assert len(told) == 1


def test_workers_that_die_between_two_stages_are_replaced():
    with Engine(10, workers=2) as engine:
        found = engine("threads", threads_and_process, JOBS)
        for process in {int(result.split()[1]) for result in found.values()}:
            os.kill(process, signal.SIGKILL)
        time.sleep(0.5)
        assert engine("stage", square, JOBS) == {job.name: square(job, 10) for job in JOBS}


def test_a_job_that_hangs_is_stopped():
    with (
        Engine(None, limits=Limits(seconds=0.5)) as engine,
        pytest.warns(JobSkipped, match=r"'slow' failed: it took longer than the 0\.5 s that a job may take"),
    ):
        assert engine("stage", hang, named("slow", "quick")) == {"quick": b"done"}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts what a process may write to")
def test_a_job_that_takes_too_much_memory_is_stopped():
    small, large = Job("small", {"bytes": 2**20}), Job("large", {"bytes": 2**29})
    with (
        Engine(None, limits=Limits(memory=2**27)) as engine,
        pytest.warns(JobSkipped, match="'large' failed: it needs more than the 128 MiB that a job may take"),
    ):
        assert list(engine("stage", take_memory, [large, small])) == ["small"]


def test_workers_that_cannot_begin_are_an_error_that_says_what_to_do(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import manymetrics as mm\n"
        "from manymetrics.values import Job\n"
        "from os.path import basename\n"
        "try:\n"
        "    with mm.engine.Engine(1, workers=2) as engine:\n"
        "        engine('stage', basename, [Job('a', {})])\n"
        "except mm.EnvironmentProblem as problem:\n"
        "    print(problem)\n"
    )
    found = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert "In a script, put the call under `if __name__ ==" in found.stdout


def test_workers_share_one_copy_of_the_arrays_and_cannot_change_each_others():
    numbers = np.full(10**6, 7, dtype=np.int8)
    with Engine({"numbers": numbers, "text": "é"}, workers=2) as engine:
        assert set(engine("stage", first_of_array, JOBS).values()) == {b"\x07" + "é".encode()}
    assert (numbers == 7).all()


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_one_and_two_workers_learn_the_same_model_to_the_byte_and_a_run_is_not_repeated(
    tiny_bank, tiny_recipe, vectors, tmp_path
):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    reports = {name: [] for name in ("one", "two", "again")}
    for name, workers, run in (("one", 1, "run"), ("two", 2, "other-run"), ("again", 1, "run")):
        where = {"workers": workers, "run": tmp_path / run, "report": reports[name].append}
        learn_metrics(tiny_bank, tiny_recipe, vectors=vectors, **where).save(tmp_path / name)
    assert files(tmp_path / "one") == files(tmp_path / "two") == files(tmp_path / "again")
    assert files(tmp_path / "run") == files(tmp_path / "other-run")
    for name, kept in (("one", 0), ("two", 0), ("again", 1)):
        last = {report.stage: (report.kept, report.done, report.total) for report in reports[name]}
        totals = {"measure-models": 4, "measure-transfer": 4, "specialize": 2}
        assert totals.items() <= {stage: total for stage, (_, _, total) in last.items()}.items()
        assert all(last[stage] == (kept * total, total, total) for stage, total in totals.items())


def test_a_programming_error_after_resumed_work_is_reported_as_what_it_is(tmp_path):
    def learn_with_a_defect():
        with Run.open(tmp_path, "seed = 1\n") as run, Engine(2, run=run) as engine:
            engine("squares", square, JOBS)
            run.finish()
            return 1 / 0

    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="division by zero"):
            learn_with_a_defect()


def not_finite(job, shared):
    numbers = np.array([1.0, job.spec["odd"]], np.float32)
    return save({"numbers": numbers}) if not job.parts else json.dumps({"b": job.spec["odd"]}).encode()


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -1e30])
def test_a_result_that_is_not_finite_is_no_result(odd):
    jobs = [Job("good", {"odd": 0.5}), Job("odd", {"odd": odd}), Job("odd part", {"odd": odd}, parts={"b": "hash"})]
    with Engine(None) as engine, pytest.warns(JobSkipped) as told:
        assert list(engine("stage", not_finite, jobs)) == ["good"]
    said = [str(one.message) for one in told]
    assert "stage of 'odd' failed: its result holds numbers that are not finite: 'numbers'" in said[0]
    assert "stage of 'odd part' failed: its result holds numbers that are not finite: 'b'" in said[1]


# --- keys of jobs: computed from source files, nothing is imported, and a library may be missing


def test_a_key_is_computed_without_importing_what_it_is_computed_from():
    script = """
import sys
from manymetrics.engine.code import code_fingerprint
from manymetrics.measure.transfer import fit_single_task
before = set(sys.modules)
code_fingerprint(fit_single_task)
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(loaded & {"manymetrics", "numba", "torch"}), "numba" in sys.modules)
"""
    assert run_python(script, torch=False) == "[] False"


def test_a_module_that_cannot_be_imported_counts_by_its_source(tmp_path):
    package = tmp_path / "planted"
    (package / "inner").mkdir(parents=True)
    (package / "work.py").write_text("def do():\n    from planted.inner.deep import ONE\n    return ONE\n")
    (package / "inner" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    script = "from manymetrics.engine.code import code_fingerprint as f; from planted.work import do; print(f(do))"
    found = []
    for one in ("1", "1  # a comment", "2"):
        (package / "inner" / "deep.py").write_text(f"import torch\nONE = {one}\n")
        found.append(run_python(script, torch=False, cwd=tmp_path))
    assert found[0] == found[1] != found[2]


def test_learning_with_a_run_needs_no_torch(tmp_path, make_bank):
    pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
    write_folder(tmp_path / "tiny", pooling="mean", vocabulary=vocabulary_of(make_bank()), width=16)
    script = """
import manymetrics as mm
from planted_bank import planted_bank
recipe = mm.Recipe(encoder="tiny", projection_steps=5, own_steps=2, clusters=2, shots=2)
for _ in range(2):
    told = []
    model = mm.learn_metrics(planted_bank(), recipe, run="run", report=told.append)
    jobs = [one for one in told if one.stage != "partition" and not one.stage.startswith("weigh")]
    kept = all(one.kept == one.total for one in jobs)
print(kept, [metric.name for metric in model.metrics][-3:])
"""
    assert run_python(script, torch=False, cwd=tmp_path) == "True ['cluster-0', 'cluster-1', 'sentence']"
