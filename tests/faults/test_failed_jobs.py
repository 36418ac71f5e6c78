"""A job that fails in a learning with the default recipe: the others become a model, and the failed one is named.

`python tests/faults/jobs.py` lets every job of every stage fail, in every way.
"""

import sys

import jobs
import pytest
from jobs import ARRAYS, BANKS, INFINITE, KILL, MEMORY, NAN, TIMEOUT, JobFault, JobLoop, array_faults, bank_of

pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")

import manymetrics as mm
from manymetrics.specialize import cluster_metrics

SMALL = [name for name in BANKS if not name.startswith("12 tasks") or "5 with one example" in name]


@pytest.fixture(scope="module")
def loop(tmp_path_factory):
    """Six tasks, of which one is held out."""
    return JobLoop(bank_of(3, 3), tmp_path_factory.mktemp("jobs"))


def test_a_job_of_each_stage_that_raises_is_named_and_the_others_become_a_model(loop):
    cases = [JobFault(stage, job) for stage, job in loop.one_of_each_stage()]
    held_out = [case for case in cases if case.job in loop.model.held_out]
    assert {case.stage for case in held_out} == {"encode", "measure-models", "measure-transfer"}
    assert [told for case in cases if (told := loop.try_fault(case))] == []


def test_the_jobs_of_all_held_out_tasks_may_fail(loop):
    faults = [JobFault("measure-models", name) for name in loop.model.held_out]
    assert loop.try_fault(*faults) is None
    with jobs.failing(*faults):
        _, told = loop.learn()
    said = [str(one.message) for one in told if one.category is mm.TrainingWarning]
    assert any("No held-out task is left to learn scope and calibration on" in line for line in said)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited by the system")
def test_jobs_that_exceed_their_time_or_memory_or_end_their_process_are_named(loop):
    names = [name for name in loop.bank.names if name not in loop.model.held_out]
    assert loop.try_fault(
        JobFault("encode", names[0], KILL),
        JobFault("measure-models", loop.model.held_out[0], TIMEOUT),
        JobFault("measure-transfer", names[1], MEMORY),
    ) is None  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_small_banks_without_valid_and_with_one_example_a_label_become_a_model(name, tmp_path):
    loop = JobLoop(BANKS[name](), tmp_path)
    loop.check(loop.model, loop.told, ())
    lone = {task.name for task in loop.bank if len(task.train) == len(task.labels)}
    assert loop.lost == lone, "a task that no projection can be trained on is left out"


def test_one_held_out_task_without_a_query_does_not_switch_training_off(tmp_path, monkeypatch):
    """Which task is held out is drawn by its content; each of them in turn has one example of each label, no valid."""
    trained = []

    make_metric = cluster_metrics.make_metric

    def noted(name, kind, representation, fitted, **options):
        trained.append(fitted)
        return make_metric(name, kind, representation, fitted, **options)

    monkeypatch.setattr(cluster_metrics, "make_metric", noted)
    bank = bank_of(6, 6)
    loop = JobLoop(bank, tmp_path)
    for name in loop.model.held_out:
        lone = jobs.planted_bank.planted_task(name, name.split("-")[0], size=1, seed=3, valid=False)
        loop.bank = mm.TaskBank(tuple(lone if task.name == name else task for task in bank))
        trained.clear()
        model, told = loop.learn()
        assert name not in model.held_out
        assert model.held_out
        said = [str(one.message) for one in told]
        assert any(f"measure-models of '{name}' failed: A projection is trained on tasks" in line for line in said)
        assert trained[0].n_steps > 0
        assert trained[0].tensors["matrix"].any()


def test_where_no_task_can_validate_all_steps_are_taken_and_that_is_said(tmp_path):
    loop = JobLoop(bank_of(2, 1), tmp_path)
    (said,) = [str(one.message) for one in loop.told if one.category is mm.TrainingWarning]
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
    said = [str(one.message) for one in loop.told if one.category is mm.TrainingWarning]
    shared = next(metric for metric in loop.model.metrics if metric.name == "projection")
    assert bool(said) == (not shared.encoder.matrix.any())


def test_a_number_that_is_not_finite_in_a_result_of_any_stage_is_named_and_never_used(loop, tmp_path):
    shared = JobLoop(bank_of(5, 0), tmp_path)  # whose tasks share their labels: linear metrics
    assert {stage for one in (loop, shared) for stage, _ in one.jobs} == set(ARRAYS)
    cases = [(loop, case) for case in array_faults(loop)]
    cases += [(shared, case) for case in array_faults(shared) if case.stage == "specialize-linear"]
    assert {mode for _, case in cases for mode in (case.mode,)} == {NAN, INFINITE}
    assert [told for one, case in cases if (told := one.try_fault(case))] == []
