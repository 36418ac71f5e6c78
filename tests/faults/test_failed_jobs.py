"""A job that fails in a learning with the default recipe: the others become a model, and the failed one is named.

A job can raise an exception, exceed its time or its memory, or end its process, and its result can hold numbers that
are not finite. With MANYMETRICS_ALL_FAULTS every job of every stage fails, in every way.
"""

import json
import os
import signal
import sys
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from safetensors.numpy import load, save

pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")

import manymetrics as mm
from manymetrics.engine import Engine
from manymetrics.model import load_model
from manymetrics.specialize import cluster_metrics
from planted_bank import planted_task
from tiny_sentence import vocabulary_of, write_folder

LIMITS = mm.Limits(seconds=120, memory=2**30)
TOLD = {"exception": "planted", "timeout": "took longer than", "memory": "needs more than",
        "kill": "ended its worker process", "nan": "not finite", "inf": "not finite"}  # fmt: skip
ARRAYS = {
    "encode": ("embeddings",),
    "specialize": ("tensors/matrix",),
    "measure-models": ("tensors/matrix",),
    "measure-transfer": ("score",),
    "specialize-linear": ("tensors/head", "tensors/offset", "tensors/prior"),
}  # that the result of a job holds


@dataclass(frozen=True)
class JobFault:
    """A job that fails, and how; its result may have a number that is not finite in one array."""

    stage: str
    job: str
    mode: str = "exception"
    array: str = ""


def do_or_fail(do, faults, job, shared):
    """Do a job, unless it is one that fails."""
    mode, array = next(((fault.mode, fault.array) for fault in faults if fault.job == job.name), ("", ""))
    if mode == "exception":
        raise RuntimeError("planted")
    if mode == "timeout":
        os.kill(os.getpid(), signal.SIGALRM)  # as the timer of `Limits` does
    if mode == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "memory":
        bytearray(4 * LIMITS.memory)
    payload = do(job, shared)
    if mode in ("nan", "inf") and payload[:1] == b"{":
        row = json.loads(payload)
        return json.dumps({**row, max(row): float(mode)}).encode()
    if mode in ("nan", "inf"):
        tensors = {name: tensor.copy() for name, tensor in load(payload).items()}
        tensors[array].flat[-1] = float(mode)
        header = json.loads(payload[8 : 8 + int.from_bytes(payload[:8], "little")])
        return save(tensors, header.get("__metadata__"))
    return payload


@contextmanager
def failing(*faults):
    """Let these jobs fail, in this process and in workers; gives all jobs that were asked for, by stage and job."""
    call, execute, asked = Engine.__call__, Engine._execute, []

    def note(engine, stage, do, jobs):
        asked.extend((stage, job.name) for job in jobs)
        own = tuple(fault for fault in faults if fault.stage == stage)
        engine._execute = lambda do, jobs: execute(engine, partial(do_or_fail, do, own) if own else do, jobs)
        return call(engine, stage, do, jobs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "__call__", note)
        yield asked


def bank_of(colours, animals, *, size=6, valid=True, lone=0):
    """Tasks of two families; `lone` of them, of both families in turn, have one train example of each label."""
    every = [(family, n) for family, count in (("colour", colours), ("animal", animals)) for n in range(count)]
    few = sorted(every, key=lambda one: one[1])[:lone]
    return mm.TaskBank(
        tuple(
            planted_task(f"{family}-{n}", family, size=1 if (family, n) in few else size, seed=10 * n + len(family),
                         valid=valid)
            for family, n in every
        )
    )  # fmt: skip


class JobLoop:
    """The default recipe on one bank, with a small sentence encoder that knows the bank's words."""

    def __init__(self, bank, place):
        self.bank, self.place = bank, place
        vocabulary = vocabulary_of(bank.without_tests())
        encoder = write_folder(place / "encoder", pooling="mean", vocabulary=vocabulary, width=16)
        self.recipe = mm.Recipe(encoder=str(encoder), projection_steps=200, projection_rate=5e-3, own_steps=10,
                                own_rate=1e-2, shots=2)  # fmt: skip
        with failing() as asked:
            self.model, self.told = self.learn()
        self.jobs = sorted(set(asked), key=asked.index)
        self.names = set(self.model.clusters.names)
        self.lost = set(bank.names) - self.names

    def learn(self, **where):
        """A model, and the warnings on the way."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            return mm.learn_metrics(self.bank, self.recipe, **where), told

    def some_jobs(self):
        """For each stage a job, and where jobs are tasks one more: of a task that is held out; or all of them."""
        held_out = [(stage, job) for stage, job in self.jobs if job in self.model.held_out[:1]]
        return self.jobs if "MANYMETRICS_ALL_FAULTS" in os.environ else {*dict(reversed(self.jobs)).items(), *held_out}

    def array_faults(self):
        """A number that is not finite in every array of a job of each stage: NaN in the first, infinity in the last."""
        found = []
        for stage, arrays in ARRAYS.items():
            jobs = [job for place, job in self.jobs if place == stage]
            for number, array in enumerate(arrays if jobs else ()):
                found.append(JobFault(stage, jobs[-(number % 2)], ("nan", "inf")[number % 2], array))
        return found

    def try_faults(self, *faults):
        """What is wrong with a learning in which these jobs fail; None where nothing is."""
        where = {"limits": LIMITS} if {fault.mode for fault in faults} & {"timeout", "memory", "kill"} else {}
        try:
            with failing(*faults):
                model, told = self.learn(**where)
            self.check(model, told, faults)
        except mm.ManyMetricsError as problem:  # where the only projection fails, or a bank is left with one task
            shared = any(fault.job == "projection" for fault in faults)
            if shared and str(problem).startswith("Nothing was learned"):
                return None
            left = self.names - {fault.job for fault in faults}
            return None if len(left) < 2 and "at least two" in str(problem) else f"{faults}: refused: {problem}"
        except Exception as problem:
            return f"{faults}: {type(problem).__name__}: {problem}"
        return None

    def check(self, model, told, faults=()):
        """Complain where a failed job is not named, another task is missing, or the model cannot be used."""
        lost = {fault.job for fault in faults if fault.stage in ("encode", "measure-models")}
        assert set(model.clusters.names) == self.names - lost
        assert not lost & set(model.held_out)
        lines = [str(one.message) for one in told if one.category is mm.JobSkipped]
        for fault in faults:
            assert any(repr(fault.job) in line and TOLD[fault.mode] in line for line in lines), (fault.job, lines)
            if fault.stage == "specialize":
                assert fault.job not in [metric.name for metric in model.metrics]
        for name in self.lost:
            assert any(repr(name) in line for line in lines), f"{name} is not named in {lines}"
        assert not [one for one in told if not issubclass(one.category, mm.JobSkipped | mm.TrainingWarning)]
        model.save(self.place / "model")
        new = planted_task("new", "colour", size=2, seed=99)
        classifier = load_model(self.place / "model").adapt(new.train.texts, new.train.labels)
        assert np.isfinite(classifier.predict_proba(new.test.texts)).all(), "an answer is not finite"
        mm.write_report(self.place / "model", self.place / "report.html")


def training_warnings(told):
    return [str(one.message) for one in told if one.category is mm.TrainingWarning]


@pytest.fixture(scope="module")
def loop(tmp_path_factory):
    """Six tasks, of which one is held out."""
    return JobLoop(bank_of(3, 3), tmp_path_factory.mktemp("jobs"))


def test_a_job_of_each_stage_that_raises_is_named_and_the_others_become_a_model(loop):
    cases = [JobFault(*job) for job in loop.some_jobs()]
    held_out = {case.stage for case in cases if case.job in loop.model.held_out}
    assert held_out == {"encode", "measure-models", "measure-transfer"}
    assert [told for case in cases if (told := loop.try_faults(case))] == []


def test_the_jobs_of_all_held_out_tasks_may_fail(loop):
    faults = [JobFault("measure-models", name) for name in loop.model.held_out]
    assert loop.try_faults(*faults) is None
    with failing(*faults):
        _, told = loop.learn()
    assert any("No held-out task is left to learn scope and calibration on" in line for line in training_warnings(told))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited by the system")
def test_jobs_that_exceed_their_time_or_memory_or_end_their_process_are_named(loop):
    names = [name for name in loop.bank.names if name not in loop.model.held_out]
    assert loop.try_faults(
        JobFault("encode", names[0], "kill"),
        JobFault("measure-models", loop.model.held_out[0], "timeout"),
        JobFault("measure-transfer", names[1], "memory"),
    ) is None  # fmt: skip
    if "MANYMETRICS_ALL_FAULTS" in os.environ:
        cases = [JobFault(*job, mode) for mode in ("timeout", "memory", "kill") for job in loop.jobs]
        assert [told for case in cases if (told := loop.try_faults(case))] == []


@pytest.mark.parametrize(
    "bank",
    [*(bank_of(n - n // 2, n // 2) for n in (4, 5, 6, 7, 8)), bank_of(8, 4, lone=5),
     bank_of(8, 4, valid=False, lone=5), bank_of(3, 3, valid=False, lone=3), bank_of(2, 2, valid=False, lone=1)],
)  # fmt: skip
def test_small_banks_without_valid_and_with_one_example_a_label_become_a_model(bank, tmp_path):
    loop = JobLoop(bank, tmp_path)
    loop.check(loop.model, loop.told)
    lone = {task.name for task in loop.bank if len(task.train) == len(task.labels)}
    assert loop.lost == lone, "a task that no projection can be trained on is left out"


def test_one_held_out_task_without_a_query_does_not_switch_training_off(tmp_path, monkeypatch):
    """Which task is held out is drawn by its content; each of them in turn has one example of each label, no valid."""
    trained, make_metric = [], cluster_metrics.make_metric

    def noted(name, kind, representation, fitted, **options):
        trained.append(fitted)
        return make_metric(name, kind, representation, fitted, **options)

    monkeypatch.setattr(cluster_metrics, "make_metric", noted)
    bank = bank_of(6, 6)
    loop = JobLoop(bank, tmp_path)
    for name in loop.model.held_out:
        lone = planted_task(name, name.split("-")[0], size=1, seed=3, valid=False)
        loop.bank = mm.TaskBank(tuple(lone if task.name == name else task for task in bank))
        trained.clear()
        model, told = loop.learn()
        assert model.held_out
        assert name not in model.held_out
        message = f"measure-models of '{name}' failed: A projection is trained on tasks"
        assert any(message in str(one.message) for one in told)
        assert trained[0].n_steps > 0
        assert trained[0].tensors["matrix"].any()


def test_where_no_task_can_validate_all_steps_are_taken_and_that_is_said(tmp_path):
    loop = JobLoop(bank_of(2, 1), tmp_path)
    (said,) = training_warnings(loop.told)
    assert said.startswith("No task is held out to validate on: too few tasks have texts beside one example of each")
    assert said.endswith("The shared projection is trained for all its steps.")
    shared = next(metric for metric in loop.model.metrics if metric.name == "projection")
    assert shared.encoder.matrix.any()
    assert loop.model.held_out == ()


@pytest.mark.filterwarnings("ignore::manymetrics.errors.JobSkipped")
@pytest.mark.filterwarnings("ignore::manymetrics.errors.TrainingWarning")
def test_a_bank_with_one_example_a_label_in_every_task_is_refused_in_a_sentence(loop):
    bank = bank_of(3, 3, lone=6, valid=False)
    with pytest.raises(mm.StageFailed, match="two labels that have two train examples each, and there is none"):
        mm.learn_metrics(bank, loop.recipe)


def test_a_shared_projection_that_gains_nothing_is_reported(loop):
    shared = next(metric for metric in loop.model.metrics if metric.name == "projection")
    assert bool(training_warnings(loop.told)) == (not shared.encoder.matrix.any())


def test_a_number_that_is_not_finite_in_a_result_of_any_stage_is_named_and_never_used(loop, tmp_path):
    shared = JobLoop(bank_of(5, 0), tmp_path)  # whose tasks share their labels: linear metrics
    assert {stage for one in (loop, shared) for stage, _ in one.jobs} == set(ARRAYS)
    cases = [(loop, case) for case in loop.array_faults()]
    cases += [(shared, case) for case in shared.array_faults() if case.stage == "specialize-linear"]
    assert {case.mode for _, case in cases} == {"nan", "inf"}
    assert [told for one, case in cases if (told := one.try_faults(case))] == []
