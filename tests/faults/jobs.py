"""A job that fails in a learning with the default recipe: the others become a model, and the failed one is named.

    python tests/faults/jobs.py           # every job of every stage, in every way; about half an hour
    python tests/faults/jobs.py --quick   # every job by an exception, the other ways on one job of each stage

A job can raise an exception, exceed its time, exceed its memory, or end its process, and its result can hold numbers
that are not finite. The banks are 12 tasks of which
eight share their labels; 4 to 8 tasks; tasks without valid examples; tasks with one example of each label; and both.
"""

import argparse
import importlib.util
import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from safetensors.numpy import load, save

import manymetrics as mm
from manymetrics.engine.stage import Engine
from manymetrics.model import load_model


def _beside(name: str):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sys.path.append(str(Path(__file__).parents[1]))  # of the modules that conftest.py imports
worlds, planted_bank, tiny_sentence = _beside("conftest"), _beside("planted_bank"), _beside("tiny_sentence")

EXCEPTION, TIMEOUT, MEMORY, KILL = MODES = ("exception", "timeout", "memory", "kill")
NAN, INFINITE = "nan", "inf"
LIMITS = mm.Limits(seconds=120, memory=2**30)
TOLD = {EXCEPTION: "planted", TIMEOUT: "took longer than", MEMORY: "needs more than", KILL: "ended its worker process",
        NAN: "not finite", INFINITE: "not finite"}  # fmt: skip
OWN_STAGES = ("encode", "measure-models")  # a task whose job fails there is left out
ARRAYS = {
    "encode": ("embeddings",),
    "specialize": ("tensors/matrix",),
    "measure-models": ("tensors/matrix",),
    "measure-transfer": ("score",),
    "specialize-linear": ("tensors/head", "tensors/offset", "tensors/prior"),
}  # that the result of a job holds
NAMES = ("colour", "animal")


@dataclass(frozen=True)
class JobFault:
    """A job that fails, and how."""

    stage: str
    job: str
    mode: str = EXCEPTION
    array: str = ""  # of its result, that a number which is not finite is planted in

    def __str__(self) -> str:
        return f"{self.mode} in {self.stage} of {self.job!r} {self.array}"


def do_or_fail(do, faults: tuple[JobFault, ...], job, shared):
    """Do a job, unless it is one that fails."""
    (fault,) = [one for one in faults if one.job == job.name] or [None]
    if fault is None:
        return do(job, shared)
    if fault.mode in (NAN, INFINITE):
        return spoil(do(job, shared), fault)
    return fail(fault.mode)


def spoil(payload: bytes, fault: JobFault) -> bytes:
    """A result with one number replaced; the scores of a pair of tasks are JSON."""
    if payload[:1] == b"{":
        row = json.loads(payload)
        return json.dumps({**row, max(row): float(fault.mode)}).encode()
    tensors = {name: tensor.copy() for name, tensor in load(payload).items()}
    tensors[fault.array].flat[-1] = float(fault.mode)
    header = json.loads(payload[8 : 8 + int.from_bytes(payload[:8], "little")])
    return save(tensors, header.get("__metadata__"))


def fail(mode: str) -> None:
    """What a job may do that has a defect."""
    if mode == EXCEPTION:
        raise RuntimeError("planted")
    if mode == TIMEOUT:
        os.kill(os.getpid(), signal.SIGALRM)  # as the timer of `Limits` does
    if mode == KILL:
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == MEMORY:
        bytearray(4 * LIMITS.memory)


@contextmanager
def failing(*faults: JobFault) -> Iterator[list[tuple[str, str]]]:
    """Let these jobs fail, in this process and in workers; all jobs that were asked for, by stage and job."""
    call, run_jobs, asked = Engine.__call__, Engine._execute, []

    def note(engine, stage, do, jobs):
        asked.extend((stage, job.name) for job in jobs)
        engine.stage = stage
        return call(engine, stage, do, jobs)

    def work_with_faults(engine, do, jobs):
        own = tuple(fault for fault in faults if fault.stage == engine.stage)
        return run_jobs(engine, partial(do_or_fail, do, own) if own else do, jobs)

    Engine.__call__, Engine._execute = note, work_with_faults
    try:
        yield asked
    finally:
        Engine.__call__, Engine._execute = call, run_jobs


def bank_of(colours: int, animals: int, *, size: int = 6, valid: bool = True, lone: int = 0) -> mm.TaskBank:
    """Tasks of two families; `lone` of them, of both families in turn, have one train example of each label."""
    counts = dict(zip(NAMES, (colours, animals), strict=True))
    every = [(family, number) for family in NAMES for number in range(counts[family])]
    few = sorted(every, key=lambda one: one[1])[:lone]
    return mm.TaskBank(
        tuple(
            planted_bank.planted_task(f"{family}-{number}", family, size=1 if (family, number) in few else size,
                                seed=10 * number + len(family), valid=valid)
            for family, number in every
        )
    )  # fmt: skip


BANKS = {
    "12 tasks": lambda: bank_of(8, 4),
    "12 tasks that share their labels": lambda: bank_of(12, 0),
    **{f"{n} tasks": (lambda n=n: bank_of(n - n // 2, n // 2)) for n in (4, 5, 6, 7, 8)},
    "12 tasks without valid": lambda: bank_of(8, 4, valid=False),
    "12 tasks, 5 with one example a label": lambda: bank_of(8, 4, lone=5),
    "12 tasks without valid, 5 with one example a label": lambda: bank_of(8, 4, valid=False, lone=5),
    "6 tasks without valid, 3 with one example a label": lambda: bank_of(3, 3, valid=False, lone=3),
    "4 tasks without valid, 1 with one example a label": lambda: bank_of(2, 2, valid=False, lone=1),
}


class JobLoop:
    """The default recipe on one bank, with a small sentence encoder that knows the bank's words."""

    def __init__(self, bank: mm.TaskBank, place: Path) -> None:
        self.bank, self.place = bank, place
        self.recipe = mm.Recipe(
            encoder=str(write_encoder(bank, place / "encoder")), projection_steps=200, projection_rate=5e-3,
            own_steps=10, own_rate=1e-2, shots=2,
        )  # fmt: skip
        with failing() as asked:
            self.model, self.told = self.learn()
        self.jobs = sorted(set(asked), key=asked.index)
        self.names = set(self.model.clusters.names)
        self.lost = set(bank.names) - self.names

    def learn(self, **where) -> tuple[mm.MetricModel, list[warnings.WarningMessage]]:
        """A model, and the warnings on the way."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            return mm.learn_metrics(self.bank, self.recipe, **where), told

    def one_of_each_stage(self) -> list[tuple[str, str]]:
        """For each stage a job, and where jobs are tasks one more: of a task that is held out."""
        first = dict(reversed(self.jobs))
        held_out = [(stage, job) for stage, job in self.jobs if job in self.model.held_out[:1]]
        return sorted({*first.items(), *held_out})

    def try_fault(self, *faults: JobFault) -> str | None:
        """What is wrong with a learning in which these jobs fail; None where nothing is."""
        where = {} if all(fault.mode not in MODES[1:] for fault in faults) else {"limits": LIMITS}
        said = " and ".join(map(str, faults))
        try:
            with failing(*faults):
                model, told = self.learn(**where)
            self.check(model, told, faults)
        except mm.ManyMetricsError as problem:
            return None if self.may_refuse(str(problem), faults) else f"{said}: refused: {problem}"
        except Exception as problem:
            return f"{said}: {type(problem).__name__}: {problem}"
        return None

    def may_refuse(self, problem: str, faults: tuple[JobFault, ...]) -> bool:
        """Nothing can be learned where the only projection that is trained fails, or a bank is left with one task."""
        shared = any(fault.job == "projection" for fault in faults)
        left = self.names - {fault.job for fault in faults}
        return (shared and problem.startswith("Nothing was learned")) or (len(left) < 2 and "at least two" in problem)

    def check(self, model: mm.MetricModel, told: list[warnings.WarningMessage], faults: tuple[JobFault, ...]) -> None:
        """Complain where a failed job is not named, another task is missing, or the model cannot be used."""
        lost = {fault.job for fault in faults if fault.stage in OWN_STAGES}
        assert set(model.clusters.names) == self.names - lost, sorted(self.names - lost - set(model.clusters.names))
        assert not lost & set(model.held_out)
        lines = [str(one.message) for one in told if one.category is mm.JobSkipped]
        for fault in faults:
            named = [line for line in lines if repr(fault.job) in line and TOLD[fault.mode] in line]
            assert named, f"{fault.job} is not named in {lines}"
            if fault.stage.startswith("specialize") and fault.stage != "specialize-linear":
                assert fault.job not in [metric.name for metric in model.metrics]
        for name in self.lost:
            assert any(repr(name) in line for line in lines), f"{name} is not named in {lines}"
        odd = [str(one.message) for one in told if not issubclass(one.category, EXPECTED)]
        assert not odd, odd
        use(model, self.place / "model")


def array_faults(loop: JobLoop) -> list[JobFault]:
    """A number that is not finite in every array of a job of each stage: NaN in the first job, infinity in the last."""
    found = []
    for stage, arrays in ARRAYS.items():
        jobs = [job for place, job in loop.jobs if place == stage]
        for number, array in enumerate(arrays if jobs else ()):
            first = JobFault(stage, jobs[0], NAN, array)
            found.append(first if number % 2 == 0 else JobFault(stage, jobs[-1], INFINITE, array))
    return found


EXPECTED = (mm.JobSkipped, mm.TrainingWarning)


def use(model: mm.MetricModel, folder: Path) -> None:
    """Save a model, load it, adapt it and answer with it; write its report."""
    model.save(folder)
    again = load_model(folder)
    new = planted_bank.planted_task("new", "colour", size=2, seed=99)
    classifier = again.adapt(new.train.texts, new.train.labels)
    assert np.isfinite(classifier.predict_proba(new.test.texts)).all(), "an answer is not finite"
    mm.write_report(folder, folder.with_name("report.html"))


def write_encoder(bank: mm.TaskBank, place: Path) -> Path:
    """A small sentence encoder for the words of a bank."""
    return tiny_sentence.write_folder(
        place, pooling="mean", vocabulary=tiny_sentence.vocabulary_of(bank.without_tests()), width=16
    )


def main() -> int:
    """The command line; gives how many were wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="banks whose names hold this")
    chosen = parser.parse_args()
    tried = wrong = 0
    for name, make in BANKS.items():
        if chosen.only not in name:
            continue
        with TemporaryDirectory() as place:
            began, loop = time.monotonic(), JobLoop(make(), Path(place))
            whole = name == "12 tasks" and not chosen.quick
            cases = [JobFault(stage, job) for stage, job in loop.jobs]
            some = loop.jobs if whole else loop.one_of_each_stage() if name == "12 tasks" else []
            cases += [JobFault(stage, job, mode) for mode in MODES[1:] for stage, job in some]
            cases += array_faults(loop)
            found = [told for case in cases if (told := loop.try_fault(case))]
            tried, wrong = tried + len(cases), wrong + len(found)
            seconds = time.monotonic() - began
            sys.stdout.write(f"{name}: {len(cases)} failed jobs, {len(found)} wrong, {seconds:.0f} s\n")
            sys.stdout.write("".join(f"    {told}\n" for told in found))
            sys.stdout.flush()
    sys.stdout.write(f"{tried} failed jobs, {wrong} wrong.\n")
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(), 1))
