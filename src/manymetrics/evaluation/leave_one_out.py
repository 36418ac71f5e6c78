"""A bank -> how well a model learned from it would do on a source that it has not seen.

Each source of the bank (a product, a client, a corpus) is held out in turn: metrics are learned from the others, and
few-shot tasks drawn from the source are answered with them. What does not depend on the source that is held out, the
models of the other tasks and the transfer between them, is computed once where there is a run.
"""

import contextlib
import hashlib
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from manymetrics.classifier import DEFAULT
from manymetrics.encode.vectors import WordVectors
from manymetrics.engine import Progress
from manymetrics.engine.display import shown
from manymetrics.errors import InputError, NotEnoughExamples, RecipeError, TaskLeftOut
from manymetrics.evaluation.targets import Evaluation, TargetResult, evaluate
from manymetrics.learn import learn_from
from manymetrics.model import MetricModel
from manymetrics.recipe import WORDS, Recipe
from manymetrics.start import Learning, in_order, load_base, make_ready, past_tasks, prepare
from manymetrics.store import Run
from manymetrics.store.runs import require_run_place
from manymetrics.values import Examples, Task, TaskBank, Texts

STAGE = "leave-one-out"
MOST_TEXTS = 500  # of a task that are asked


def evaluate_leave_one_out(
    bank: TaskBank | str | Path,
    recipe: Recipe | None = None,
    *,
    shots: int = 5,
    sources: int | None = None,
    mix: str = DEFAULT,
    adaptive: bool = True,
    label_names: bool = True,
    run: str | Path | None = None,
    workers: int = 1,
    vectors: WordVectors | None = None,
    report: Callable[[Progress], None] | None = None,
) -> Evaluation:
    """Hold out each source of the bank in turn, learn from the others, and score few-shot tasks drawn from it.

    Such a task has `shots` train examples of each label; it is asked the task's test texts or, where there are none,
    its other texts. With `sources`, so many of the sources are tried, drawn by the seed. Intervals are over sources and
    texts. As for `learn_metrics`, finished work is kept in `run`, and the same call goes on where it was stopped.
    """
    recipe = recipe or Recipe()
    if shots < 1 or (sources is not None and sources < 1):
        raise InputError(f"Found shots={shots} and sources={sources}. Give numbers from 1 up.")
    if recipe.tuning_steps:
        raise RecipeError("Each source held out would take a tuning of its own. Set tuning_steps to 0.")
    if run is not None:
        require_run_place(Path(run))
    every = in_order(past_tasks(bank), None)
    held_out = {source: draw_few_shot_tasks(every, source, shots, seed=recipe.seed)
                for source in draw_sources(every, sources, seed=recipe.seed)}  # fmt: skip
    for source in held_out:
        in_order(without_source(every, source), recipe.clusters)
    if vectors is not None:
        recipe = replace(recipe, encoder=WORDS, vectors=vectors.name)
    learning = prepare(every, vectors or load_base(recipe), {})
    about = f"# {STAGE}, each source in turn\n{recipe.as_toml()}"
    results: list[TargetResult] = []
    with (
        threadpool_limits(1),
        shown(report) as told,
        contextlib.nullcontext() if run is None else Run.open(run, about) as kept,
    ):
        learning = make_ready(learning, recipe, workers=workers, run=kept, report=told)
        progress = _Sources(told, len(held_out))
        for source, targets in held_out.items():
            progress.begin(source)
            model = _learn_without(learning, source, recipe, workers=workers, run=kept, report=progress)
            results += evaluate(model, targets, mix=mix, adaptive=adaptive, label_names=label_names).targets
            progress.end()
        if kept is not None:
            kept.finish()
    return Evaluation(tuple(results), over_sources=True)


def draw_sources(bank: TaskBank, count: int | None, *, seed: int) -> list[str]:
    """The sources to hold out: all of them, or so many, each drawn by its name."""
    names = sorted({task.source for task in bank}, key=lambda name: _lot(seed, name))
    if len(names) < 2:
        raise NotEnoughExamples(
            f"All {len(bank)} tasks are of one source, {names[0]!r}, so there is none to learn from without it. "
            "Add tasks of others, or mend the sources in manifest.json."
        )
    return sorted(names[:count])


def without_source(bank: TaskBank, source: str) -> TaskBank:
    """The tasks of the other sources."""
    return bank.only([task.name for task in bank if task.source != source])


def draw_few_shot_tasks(bank: TaskBank, source: str, shots: int, *, seed: int) -> TaskBank:
    """The tasks of a source with few train examples each, and texts to be asked."""
    drawn = []
    for task in (task for task in bank if task.source == source):
        few = draw_few_shots(task, shots, seed=seed)
        if len(few.test):
            drawn.append(few)
        else:
            warnings.warn(
                f"{task.name!r} is left out. Beside {shots} examples of each label it has no texts to be asked. "
                "Ask for fewer shots, or add texts.",
                TaskLeftOut,
                stacklevel=3,
            )
    if not drawn:
        raise NotEnoughExamples(
            f"No task of the source {source!r} has texts beside {shots} examples of each label. Ask for fewer shots."
        )
    return TaskBank(tuple(drawn))


def draw_few_shots(task: Task, shots: int, *, seed: int) -> Task:
    """Some train examples of each label, and other texts to be asked: the test texts, else what is left."""
    rng = np.random.default_rng(list(_lot(seed, task.fingerprint)))
    numbers = task.labelled_train.labels  # (examples,)
    lots = [rng.permutation(np.flatnonzero(numbers == label)) for label in range(len(task.labels))]
    chosen = np.concatenate([rows[:shots] for rows in lots])
    few = task.train.take(chosen)
    others = task.test
    if not len(others):
        rest = task.train.take(np.setdiff1d(np.arange(len(task.train)), chosen))
        others = Examples(Texts.join([rest.texts, task.valid.texts]), (*rest.labels, *task.valid.labels))
    known = set(map(_folded, few.texts))
    asked = [row for row in rng.permutation(len(others)).tolist() if _folded(others.texts[row]) not in known]
    return Task(task.name, few, Examples(), others.take(asked[:MOST_TEXTS]), task.source)


def _learn_without(learning: Learning, source: str, recipe: Recipe, *, workers: int, run: Run | None,
                   report: Callable[[Progress], None]) -> MetricModel:  # fmt: skip
    past = without_source(learning.material.bank, source)
    others = replace(learning, material=replace(learning.material, bank=past), bank_fingerprint=past.fingerprint)
    return learn_from(others, recipe, workers=workers, run=run, report=report)


class _Sources:
    """Progress of the stages that learn without a source -> progress over the sources."""

    def __init__(self, report: Callable[[Progress], None], total: int) -> None:
        self._report, self._total, self._done, self._source = report, total, 0, ""
        self._started = time.monotonic()
        report(Progress(STAGE, 0, total, 0.0))

    def begin(self, source: str) -> None:
        self._source = source
        self._tell(f"without {source}")

    def end(self) -> None:
        self._done += 1
        self._tell()

    def __call__(self, progress: Progress) -> None:
        self._tell(f"without {self._source}: {progress.stage} {progress.done}/{progress.total}")

    def _tell(self, *running: str) -> None:
        seconds = max(time.monotonic() - self._started, 1e-9)
        self._report(Progress(STAGE, self._done, self._total, seconds, running=running))


def _lot(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed} {name}".encode("utf-8", "surrogatepass")).digest()


def _folded(text: str) -> str:
    return " ".join(text.lower().split())
