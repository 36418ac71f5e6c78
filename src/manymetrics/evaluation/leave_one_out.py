"""A bank -> the expected scores of a model learned from it on a source that it has not seen.

A source is a product, a client or a corpus. With a run folder, jobs that do not depend on the held-out source (models
of single tasks, transfer between tasks) are computed once.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from manymetrics.encode.sentence import encode_bank
from manymetrics.encode.vectors import WordVectors
from manymetrics.engine import Progress, engines
from manymetrics.engine.progress import each_with_progress, shown
from manymetrics.episodes import draw_few_shots
from manymetrics.errors import InputError, NotEnoughExamples, TaskSkipped
from manymetrics.evaluation.targets import Evaluation, TargetResult, evaluate_each
from manymetrics.learn import in_order, learn_from, load_base, past_tasks
from manymetrics.model import MetricModel
from manymetrics.recipe import STATIC, Recipe
from manymetrics.store.runs import Run, check_run_folder
from manymetrics.values import SharedData, TaskBank, random_key

STAGE = "leave-one-out"


def evaluate_leave_one_out(
    bank: TaskBank | str | Path,
    recipe: Recipe | None = None,
    *,
    shots: int = 5,
    sources: int | None = None,
    run: str | Path | None = None,
    workers: int = 1,
    vectors: WordVectors | None = None,
    against: MetricModel | None = None,
    report: Callable[[Progress], None] | None = None,
) -> Evaluation:
    """Hold out each source of the bank in turn, learn from the others, and score few-shot tasks drawn from it.

    Such a task has `shots` train examples of each label. Its test texts are those of the task or, if it has none, its
    other texts. With `sources`, a random sample of so many sources is held out. Intervals are over sources and texts.
    A model to compare `against`, such as the starter model, is a further baseline: a bank that is not ahead of it is
    too small. As for `learn_metrics`, finished jobs are stored in `run`, and the same call resumes after an
    interruption.
    """
    recipe = recipe or Recipe()
    if shots < 1 or (sources is not None and sources < 1):
        raise InputError(f"Found shots={shots} and sources={sources}. Give numbers from 1 up.")
    if run is not None:
        check_run_folder(Path(run))
    bank = in_order(past_tasks(bank), None)
    targets = {}
    for source in draw_sources(bank, sources, seed=recipe.seed):
        targets[source] = draw_few_shot_tasks(bank, source, shots, seed=recipe.seed)
        in_order(without_source(bank, source), recipe.clusters)  # refused before anything is learned
    if vectors is not None:
        recipe = replace(recipe, encoder=STATIC, vectors=vectors.name)
    shared_data = SharedData(bank.without_tests(), vectors or load_base(recipe))
    results: list[TargetResult] = []
    opened = None if run is None else Run.open(run, f"# {STAGE}, each source in turn\n{recipe.as_toml()}")
    with shown(report) as on_progress, engines(run=opened, report=on_progress, workers=workers) as open_engine:
        with open_engine(shared_data) as run_jobs:
            shared_data = encode_bank(shared_data, run_jobs)
        started = time.monotonic()
        for number, source in enumerate(each_with_progress(STAGE, [*targets], on_progress, name="without {}".format)):
            outer = Progress(STAGE, number, len(targets), 0.0, running=(f"without {source}",))
            inner = partial(_report_inside, on_progress, started, outer)
            others = replace(shared_data, bank=without_source(shared_data.bank, source))
            model = learn_from(others, recipe, partial(open_engine, report=inner))
            results += evaluate_each(model, targets[source], inner, against=against)
    return Evaluation(tuple(results), over_sources=True)


def draw_sources(bank: TaskBank, count: int | None, *, seed: int) -> list[str]:
    """The sources to hold out: all of them, or a sample that depends on their names and the seed."""
    names = sorted({task.source for task in bank}, key=lambda name: random_key(seed, name))
    if len(names) < 2:
        raise NotEnoughExamples(
            f"All {len(bank)} tasks are of one source, {names[0]!r}, so there is none to learn from without it. "
            "Add tasks of other sources, or correct the sources in manifest.json."
        )
    return sorted(names[:count])


def without_source(bank: TaskBank, source: str) -> TaskBank:
    """The tasks of the other sources."""
    return bank.only([task.name for task in bank if task.source != source])


def draw_few_shot_tasks(bank: TaskBank, source: str, shots: int, *, seed: int) -> TaskBank:
    """The tasks of a source, each reduced to a few train examples and test texts."""
    drawn = [draw_few_shots(task, shots, seed=seed) for task in bank if task.source == source]
    no_texts = f"texts other than {shots} examples of each label. Ask for fewer shots, or add texts."
    for task in drawn:
        if not len(task.test):
            warnings.warn(f"{task.name!r} is left out. It has no {no_texts}", TaskSkipped, stacklevel=3)
    if not (tested := tuple(task for task in drawn if len(task.test))):
        raise NotEnoughExamples(f"No task of the source {source!r} has {no_texts}")
    return TaskBank(tested)


def _report_inside(report: Callable[[Progress], None], started: float, outer: Progress, inner: Progress) -> None:
    """Report the stages of learning without a source as progress over the sources."""
    running = f"{outer.running[0]}: {inner.stage} {inner.done}/{inner.total}"
    report(replace(outer, seconds=max(time.monotonic() - started, 1e-9), running=(running,)))
