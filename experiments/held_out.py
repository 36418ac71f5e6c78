"""`held-out`: every source of a bank held out once, and what methods that learned from the others answer on it.

Sources (products, corpora, repositories) are assigned to folds. For each fold a model is learned from the others, and
few-shot problems drawn from the fold's tasks are answered by it and by what it is compared with. No target is involved,
and every task of the bank is a test, so intervals over sources are as narrow as the bank allows.

That is what a few lines of scikit-learn give on the same encoder (`rows`); with a recipe of convolution networks it is
every row of the paper's table and today's (`Experiment`), none of which looks at label names. What a baseline
chooses it chooses on the past tasks of the first fold, for all folds.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from experiments.baselines.multi_task import count_words, everything_in_one, pooled_tfidf
from experiments.bench import Bench
from experiments.experiment import Experiment
from experiments.intervals import gain_in_accuracy, over_targets, source_of
from experiments.methods import adapted, answer_targets, blind, by_metric, frozen_prototypes
from experiments.plan import choose_size
from experiments.problems import choose, draw_problems
from experiments.provenance import FORMAT
from experiments.tuning import PENALTIES
from manymetrics.encode.cache import encode_bank
from manymetrics.encode.encoder import Encoder
from manymetrics.encode.sentence import SentenceEncoder
from manymetrics.encode.vectors import WordVectors
from manymetrics.engine import Engine, Progress
from manymetrics.engine.code import code_fingerprint
from manymetrics.episodes import hold_out_tasks
from manymetrics.evaluation.baselines import Method, frozen_regression, majority
from manymetrics.evaluation.scoring import SCORES, Answered
from manymetrics.evaluation.targets import label_numbers
from manymetrics.learn import learn_metrics, load_base, material_of, past_tasks
from manymetrics.model import MetricModel
from manymetrics.recipe import CONVOLUTION, Recipe
from manymetrics.specialize import Metric
from manymetrics.specialize.metric import LINEAR, TUNED
from manymetrics.store import Run, write_atomically
from manymetrics.values import Job, TaskBank

FOLDS = 10
QUERIES = 300  # texts asked of each task, at most
TUNING_SHARE = 0.2  # of the other folds' tasks, that baselines are tuned on
OURS, ONE, POOLED = "RobustTC-FSL", "One metric for all tasks", "TF-IDF + LR over all tasks"
REGRESSION, PROTOTYPES = "Frozen encoder + LR, balanced", "Frozen encoder + nearest prototype"
MAJORITY = "Majority class"
WITH_NAMES = ", label names"
RESULTS = "held-out.json"
STAGE = "held-out"

Base = WordVectors | SentenceEncoder
Answers = dict[str, dict[str, list[int]]]  # row -> task -> what was answered


@dataclass(frozen=True, eq=False)
class Fold:
    """Some sources: problems of their tasks, and the tasks of all others."""

    number: int
    past: TaskBank
    problems: TaskBank


def deal_folds(bank: TaskBank, folds: int, *, seed: int) -> list[Fold]:
    """Every source in one fold, assigned at random; no more folds than sources."""
    lots = {name: hashlib.sha256(f"{seed} {name}".encode()).digest() for name in map(source_of, bank)}
    sources = sorted(lots, key=lambda name: lots[name])
    drawn_folds = []
    for number in range(min(folds, len(sources))):
        own = set(sources[number::folds])
        names = [task.name for task in bank if source_of(task) in own]
        problems = draw_problems(bank, names, seed=seed, draws=1, queries=QUERIES)
        drawn_folds.append(Fold(number, bank.only([name for name in bank.names if name not in names]), problems))
    return drawn_folds


def run_held_out(data: str | Path | TaskBank, out: str | Path, recipe: Recipe, *, called: str = "RECIPE",
                 folds: int = FOLDS, workers: int = 1,
                 report: Callable[[Progress], None] = lambda progress: None) -> dict[str, Any]:  # fmt: skip
    """Hold every source out once, and write everything to the folder `out`; gives back what is in held-out.json.

    `called` is what the recipe is called on the command line.
    """
    out, bank, started = Path(out), past_tasks(data), time.process_time()
    bank = bank.only(sorted(bank.names)).without_tests()
    base = load_base(recipe)
    drawn_folds = deal_folds(bank, folds, seed=recipe.seed)
    with threadpool_limits(1):
        shared_data = material_of(bank, base)
        with (
            Run.open(out / "run", recipe.as_toml()) as run,
            Engine(shared_data, workers=workers, run=run, report=report) as run_jobs,
        ):
            base = encode_bank(shared_data, run_jobs).base
        chosen: dict[str, Any] = {}
        told: dict[str, Any] = {}
        answers: Answers = {}
        for fold in drawn_folds:
            found = _answer_fold(fold, out, recipe, base, chosen, workers=workers, report=report)
            chosen, told = found["chosen"], told or found["told"]
            for row, own in found["answers"].items():
                answers.setdefault(row, {}).update(own)
            report(Progress(STAGE, fold.number + 1, len(drawn_folds), time.process_time() - started))
    results = {
        "format": FORMAT,
        "command": f"python -m experiments held-out --data {_name(data)} --recipe {called} --folds {folds} --out OUT",
        "bank": _name(data),
        "recipe_name": called,
        "data": bank.fingerprint,
        "recipe": recipe.as_dict(),
        "folds": len(drawn_folds),
        "chosen": told,
        "seconds_of_processor": round(time.process_time() - started, 1),
        **score(answers, TaskBank(tuple(task for fold in drawn_folds for task in fold.problems))),
    }
    write_atomically(out / RESULTS, json.dumps(results, indent=1).encode())
    return results


def _answer_fold(fold: Fold, out: Path, recipe: Recipe, base: Base, chosen: Mapping[str, Any], *, workers: int,
                 report: Callable[[Progress], None]) -> dict[str, Any]:  # fmt: skip
    """What every row answers on a fold, and what was chosen for it; kept, so that it is asked once."""
    spec = {"past": fold.past.fingerprint, "problems": fold.problems.fingerprint, "recipe": recipe.as_dict()}
    job = Job(f"fold {fold.number}", {**spec, "chosen": dict(chosen)})
    key = Run.key(STAGE, job, code_fingerprint(run_held_out))
    with Run.open(out / "answers", recipe.as_toml()) as run:
        payload = run.get(STAGE, key, job)
    if payload is None:
        if recipe.representation == CONVOLUTION:
            found = _answer_by_networks(fold, out, recipe, base, chosen, workers=workers, report=report)
        else:
            found = _answer_by_projections(fold, out, recipe, base, chosen, workers=workers, report=report)
        payload = json.dumps(found).encode()
        with Run.open(out / "answers", recipe.as_toml()) as run:
            run.put(STAGE, key, job, payload)
    kept: dict[str, Any] = json.loads(payload)
    return kept


def _answer_by_projections(fold: Fold, out: Path, recipe: Recipe, base: Encoder, chosen: Mapping[str, Any],
                           **how: Any) -> dict[str, Any]:  # fmt: skip
    model = learn_metrics(fold.past, recipe, run=out / "run", **how)
    settings = dict(chosen) or tune(fold.past, base, recipe.seed)
    answers = {
        row: {one.task: one.answers.tolist() for one in answer_targets(method, shown(row, fold.problems))}
        for row, method in rows(model, fold.past, base, settings).items()
    }
    return {"answers": answers, "chosen": settings, "told": {row: {"C": C} for row, C in settings.items()}}


def _answer_by_networks(fold: Fold, out: Path, recipe: Recipe, base: Base, chosen: Mapping[str, Any], *,
                        workers: int, report: Callable[[Progress], None]) -> dict[str, Any]:  # fmt: skip
    shared_data = material_of(fold.past, base)
    size = replace(
        choose_size(seeds=1, quick=False, tasks=len(fold.past)), seeds=(recipe.seed,), table_only=True, random_draws=0
    )
    with (
        Run.open(out / "run", recipe.as_toml()) as run,
        Engine(shared_data, workers=workers, run=run, report=report) as run_jobs,
    ):
        code = code_fingerprint(Experiment.run)
        bench = Bench(fold.past, shared_data, fold.problems, run_jobs, run, code, report, chosen)
        tried = Experiment(bench, recipe)
        tried.run(size)
    answers = {
        row: {one.task: one.answers.tolist() for one in by[recipe.seed].targets}
        for row, by in tried.outcome.answers.items()
    }
    return {"answers": answers, "chosen": {**chosen, **bench.made}, "told": tried.outcome.chosen}


def shown(row: str, problems: TaskBank) -> TaskBank:
    """The problems as a row sees them: without the right answers, but for the row that always gives the commonest."""
    return problems if row == MAJORITY else blind(problems)


def tune(past: TaskBank, base: Encoder, seed: int) -> dict[str, Any]:
    """The penalties of the baselines, chosen on problems of tasks not asked; the first fold's are taken for all."""
    sources = {task.name: source_of(task) for task in past}
    names = hold_out_tasks(everything_in_one(past.names), sources, TUNING_SHARE, seed=seed)
    problems = draw_problems(past, names, seed=seed, draws=1)
    settings = {REGRESSION: choose(PENALTIES, lambda C: frozen_regression(base, balanced=True, C=C), problems)}
    if past.shared_labels:
        others = count_words(past.only([name for name in past.names if name not in names]))
        settings[POOLED] = choose(PENALTIES[:3], lambda C: pooled_tfidf(others, C=C), problems)
    return settings


def rows(model: MetricModel, past: TaskBank, base: Encoder, settings: Mapping[str, Any]) -> dict[str, Method]:
    """Every method: from the examples alone and, where tasks differ in their labels, with the labels' names."""
    made: dict[str, Method] = {MAJORITY: majority}
    if past.shared_labels:
        made[POOLED] = pooled_tfidf(past, C=settings[POOLED])
    for names in (False,) if past.shared_labels else (False, True):
        told = WITH_NAMES if names else ""
        made[PROTOTYPES + told] = frozen_prototypes(base, names=names)
        made[REGRESSION + told] = frozen_regression(base, balanced=True, C=settings[REGRESSION], names=names)
        made[ONE + told] = by_metric(_one_metric(model), names=names)
        made[OURS + told] = adapted(model, names=names)
    return made


def _one_metric(model: MetricModel) -> Metric:
    """What was learned from all tasks together: a projection, else a linear classifier."""
    kinds = {metric.kind: metric for metric in model.metrics}
    return kinds.get(TUNED) or kinds[LINEAR]


def score(answers: Mapping[str, Mapping[str, Sequence[int]]], problems: TaskBank) -> dict[str, Any]:
    """Every row with intervals over sources, and how far the model is ahead of it with the same knowledge of names."""
    truth = {task.name: label_numbers(task, task.test.labels) for task in problems}
    sources = [source_of(task) for task in problems]
    answered = {
        row: [Answered(name, np.array(own[name]), labels) for name, labels in truth.items()]
        for row, own in answers.items()
    }
    scored = []
    for row, found in answered.items():
        ours = OURS + WITH_NAMES if row.endswith(WITH_NAMES) else OURS
        ahead = None if row == ours else vars(gain_in_accuracy([answered[ours]], [found], sources))
        estimates = over_targets([found], sources)
        scored.append({"method": row, **{name: vars(estimates[name]) for name in SCORES}, "ahead": ahead})
    return {"tasks": len(truth), "sources": len(set(sources)), "rows": scored}


def _name(data: str | Path | TaskBank) -> str:
    return "BANK" if isinstance(data, TaskBank) else Path(data).name
