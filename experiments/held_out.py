"""`held-out`: every source of a bank held out once, and what methods that learned from the others answer on it.

Sources (products, corpora, repositories) are assigned to folds. For each fold a model is learned from the others, and
few-shot problems drawn from the fold's tasks are answered by it and by what a few lines of scikit-learn give on the
same encoder. No target is involved, and every task of the bank is a test, so intervals over sources are as narrow as
the bank allows. What a baseline chooses it chooses on the past tasks of the first fold, for all folds.
"""

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from experiments.baselines.multi_task import count_words, pooled_tfidf
from experiments.clusterings import everything_in_one
from experiments.intervals import gain_in_accuracy, over_targets
from experiments.markdown import points, share
from experiments.methods import adapted, answer_targets, blind, by_metric, frozen_prototypes
from experiments.options import Results, data_option, experiment, folds_option, recipe_option, steps_option
from experiments.problems import assign_to_folds, choose, draw_problems, source_of
from experiments.tuning import PENALTIES
from manymetrics.cli.learn import choose_recipe
from manymetrics.cli.output import Table
from manymetrics.encode.encoder import Encoder
from manymetrics.encode.sentence import encode_bank
from manymetrics.engine import Engine, Progress
from manymetrics.engine.code import code_fingerprint
from manymetrics.episodes import hold_out_tasks
from manymetrics.errors import InputError
from manymetrics.evaluation.baselines import Method, frozen_regression, majority
from manymetrics.evaluation.scoring import SCORES, Answered
from manymetrics.evaluation.targets import label_numbers
from manymetrics.learn import learn_metrics, load_base, past_tasks
from manymetrics.model import MetricModel
from manymetrics.recipe import CONVOLUTION, Recipe
from manymetrics.specialize import Metric
from manymetrics.specialize.metric import LINEAR, TUNED
from manymetrics.store import Run
from manymetrics.values import Job, SharedData, TaskBank

FOLDS = 10
QUERIES = 300  # texts asked of each task, at most
TUNING_SHARE = 0.2  # of the other folds' tasks, that baselines are tuned on
OURS, ONE, POOLED = "RobustTC-FSL", "One metric for all tasks", "TF-IDF + LR over all tasks"
OURS_WITH_STEPS, ONE_REGRESSION = f"{OURS}, gradient steps on the shots", "One metric for all tasks + LR, balanced"
REGRESSION, PROTOTYPES = "Frozen encoder + LR, balanced", "Frozen encoder + nearest prototype"
MAJORITY = "Majority class"
WITH_NAMES = ", label names"
STAGE = "held-out"

Answers = dict[str, dict[str, list[int]]]  # row -> task -> what was answered


@dataclass(frozen=True, eq=False)
class Fold:
    """Some sources: problems of their tasks, and the tasks of all others."""

    number: int
    past: TaskBank
    problems: TaskBank


def show(results: Results) -> Iterator[str | Table]:
    """A row for each method."""
    table = Table("method", numbers=["accuracy", "balanced accuracy", "RobustTC-FSL ahead by", "with steps by"])
    for row in results["rows"]:
        leads = points(row["ahead"]), points(row.get("steps_ahead"))
        table.add_row(row["method"], share(row["accuracy"]), share(row["balanced_accuracy"]), *leads)
    yield table
    yield f"{results['tasks']} tasks of {results['sources']} sources in {results['folds']} folds"
    n_clusters = ", ".join(map(str, results["n_clusters"]))
    yield f"{n_clusters} clusters; mean adjusted Rand index between folds {results['agreement']:.2f}"


@experiment("held-out", data_option, recipe_option, folds_option(FOLDS), steps_option, file="held-out.json", show=show,
            short_help="Hold every source of a bank out once.")  # fmt: skip
def held_out(*, data: Path, out: Path, recipe: str, folds: int, steps: bool, **how: Any) -> Results:
    """Learn from all sources but a fold's, answer few-shot problems of that fold, and so for every fold.

    Intervals are 95 % bootstrap intervals over sources and texts. All that is finished is kept in --out.
    """
    return run_held_out(past_tasks(data), out, choose_recipe(recipe), folds=folds, steps=steps, **how)


def draw_folds(bank: TaskBank, folds: int, *, seed: int) -> list[Fold]:
    """Every source in one fold, assigned at random; no more folds than sources."""
    drawn = []
    for number, names in enumerate(assign_to_folds(bank, folds, seed=seed)):
        problems = draw_problems(bank, names, seed=seed, draws=1, queries=QUERIES)
        drawn.append(Fold(number, bank.only([name for name in bank.names if name not in names]), problems))
    return drawn


def run_held_out(bank: TaskBank, out: Path, recipe: Recipe, *, folds: int = FOLDS, steps: bool = False,
                 workers: int = 1,
                 report: Callable[[Progress], None] = lambda progress: None) -> dict[str, Any]:  # fmt: skip
    """Hold every source out once; all that is finished is kept in the folder `out`."""
    if recipe.representation == CONVOLUTION:
        raise InputError("The metrics compared here are projections. Take a recipe without convolution networks.")
    bank, base, started = bank.only(sorted(bank.names)).without_tests(), load_base(recipe), time.process_time()
    drawn = draw_folds(bank, folds, seed=recipe.seed)
    chosen: dict[str, float] = {}
    answers: Answers = {}
    clusterings: list[dict[str, int]] = []
    with threadpool_limits(1):
        shared_data = SharedData(bank.without_tests(), base)
        with (
            Run.open(out / "run", recipe.as_toml()) as run,
            Engine(shared_data, workers=workers, run=run, report=report) as run_jobs,
        ):
            base = encode_bank(shared_data, run_jobs).base
        for fold in drawn:
            found = _answer_fold(fold, out, recipe, base, chosen, steps=steps, workers=workers, report=report)
            chosen = found["chosen"]
            clusterings.append({name: k for k, group in enumerate(found["clusters"]) for name in group})
            for row, own in found["answers"].items():
                answers.setdefault(row, {}).update(own)
            report(Progress(STAGE, fold.number + 1, len(drawn), time.process_time() - started))
    return {
        "data": bank.fingerprint,
        "recipe": recipe.as_dict(),
        "folds": len(drawn),
        "chosen": {row: {"C": C} for row, C in chosen.items()},
        "seconds_of_processor": round(time.process_time() - started, 1),
        "n_clusters": [len(set(one.values())) for one in clusterings],
        "agreement": agreement(clusterings),
        **score(answers, TaskBank(tuple(task for fold in drawn for task in fold.problems))),
    }


def _answer_fold(fold: Fold, out: Path, recipe: Recipe, base: Encoder, chosen: Mapping[str, float], *, steps: bool,
                 **how: Any) -> dict[str, Any]:  # fmt: skip
    """What every row answers on a fold, and what was chosen for it; stored, so that it is asked once."""
    spec = {"past": fold.past.fingerprint, "problems": fold.problems.fingerprint, "recipe": recipe.as_dict(),
            "steps": steps}  # fmt: skip
    job = Job(f"fold {fold.number}", {**spec, "chosen": dict(chosen)})
    key = Run.key(STAGE, job, code_fingerprint(run_held_out))
    with Run.open(out / "answers", recipe.as_toml()) as run:
        payload = run.get(STAGE, key, job)
    if payload is None:
        model = learn_metrics(fold.past, recipe, run=out / "run", **how)
        settings = dict(chosen) or tune(fold.past, base, _one_metric(model).encoder, recipe.seed)
        answers = {
            row: {one.task: one.answers.tolist() for one in answer_targets(method, _shown(row, fold.problems))}
            for row, method in rows(model, fold.past, base, settings, steps=steps).items()
        }
        clusters = [list(group) for group in model.clusters]
        payload = json.dumps({"answers": answers, "chosen": settings, "clusters": clusters}).encode()
        with Run.open(out / "answers", recipe.as_toml()) as run:
            run.put(STAGE, key, job, payload)
    stored: dict[str, Any] = json.loads(payload)
    return stored


def agreement(clusterings: Sequence[Mapping[str, int]]) -> float:
    """The mean adjusted Rand index of two folds' clusterings, on the tasks that both learned from."""
    indices = []
    for one, other in itertools.combinations(clusterings, 2):
        common = sorted(one.keys() & other.keys())
        indices.append(adjusted_rand_score([one[name] for name in common], [other[name] for name in common]))
    return float(np.mean(indices))


def _shown(row: str, problems: TaskBank) -> TaskBank:
    """The problems as a row sees them: without the right answers, but for the row that always gives the commonest."""
    return problems if row == MAJORITY else blind(problems)


def tune(past: TaskBank, base: Encoder, shared: Encoder, seed: int) -> dict[str, float]:
    """The penalties of the baselines, chosen on problems of tasks not asked; the first fold's are taken for all."""
    sources = {task.name: source_of(task) for task in past}
    names = hold_out_tasks(everything_in_one(past.names), sources, TUNING_SHARE, seed=seed)
    problems = draw_problems(past, names, seed=seed, draws=1)
    settings = {}
    for row, encoder in ((REGRESSION, base), (ONE_REGRESSION, shared)):
        settings[row] = choose(PENALTIES, lambda C, e=encoder: frozen_regression(e, balanced=True, C=C), problems)  # type: ignore[misc]
    if past.shared_labels:
        others = count_words(past.only([name for name in past.names if name not in names]))
        settings[POOLED] = choose(PENALTIES[:3], lambda C: pooled_tfidf(others, C=C), problems)
    return settings


def rows(model: MetricModel, past: TaskBank, base: Encoder, settings: Mapping[str, float], *,
         steps: bool = False) -> dict[str, Method]:  # fmt: skip
    """Every method: from the examples alone and, where tasks differ in their labels, with the labels' names.

    Gradient steps are taken once, with the label names in use where tasks differ in them.
    """
    made: dict[str, Method] = {MAJORITY: majority}
    if past.shared_labels:
        made[POOLED] = pooled_tfidf(past, C=settings[POOLED])
    for names in (False,) if past.shared_labels else (False, True):
        told, one = WITH_NAMES if names else "", _one_metric(model)
        made[PROTOTYPES + told] = frozen_prototypes(base, names=names)
        made[REGRESSION + told] = frozen_regression(base, balanced=True, C=settings[REGRESSION], names=names)
        made[ONE + told] = by_metric(one, names=names)
        made[ONE_REGRESSION + told] = frozen_regression(
            one.encoder, balanced=True, C=settings[ONE_REGRESSION], names=names
        )
        made[OURS + told] = adapted(model, names=names)
    if steps:
        made[OURS_WITH_STEPS + told] = adapted(model, steps="auto")
    return made


def _one_metric(model: MetricModel) -> Metric:
    """What was learned from all tasks together: a projection, else a linear classifier."""
    kinds = {metric.kind: metric for metric in model.metrics}
    return kinds.get(TUNED) or kinds[LINEAR]


def score(answers: Mapping[str, Mapping[str, Sequence[int]]], problems: TaskBank) -> dict[str, Any]:
    """Every row with intervals over sources, and how far the model is ahead of it with the same knowledge of names.

    The lead of the model with gradient steps is over the rows that know as much as it does.
    """
    truth = {task.name: label_numbers(task, task.test.labels) for task in problems}
    sources = [source_of(task) for task in problems]
    answered = {
        row: [Answered(name, np.array(own[name]), labels) for name, labels in truth.items()]
        for row, own in answers.items()
    }
    scored = []
    for row, found in answered.items():
        told, estimates = WITH_NAMES if row.endswith(WITH_NAMES) else "", over_targets([found], sources)
        leads = {
            name: vars(gain_in_accuracy([answered[ours + told]], [found], sources))
            for name, ours in (("ahead", OURS), ("steps_ahead", OURS_WITH_STEPS))
            if ours + told in answered and ours + told != row
        }
        scored.append({"method": row, **{name: vars(estimates[name]) for name in SCORES}, "ahead": None, **leads})
    return {"tasks": len(truth), "sources": len(set(sources)), "rows": scored}
