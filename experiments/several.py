"""`several`: do several metrics pay? One metric for all tasks beside one for each cluster, clusters known and unknown.

The sources of a bank are assigned to folds; few-shot problems of its tasks are answered by metrics that learned from
the other folds. No target is involved. Compared are

    no metric         the encoder as it is
    one metric        and the projection that all tasks share
    clusters found    and one for each cluster that the package finds among the tasks that are learned from
    clusters known    the families that a manifest names
    drawn at random   as many clusters of the same sizes as are known, so many draws

Every row has the package's own head, a regression in the weighted sum of its metrics, fitted on the shots alone. The
clusters of a task are weighed in two ways: by the texts of its shots, as the package does it, or by its own cluster
alone. A held-out task's own cluster is known by its family; of clusters found it is the one whose tasks all evidence of
its labelled texts puts it nearest to. Metrics are projections over a frozen encoder, trained as the recipe says.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from experiments.banks import join_banks, known_families, read_banks
from experiments.cluster_metrics import ClusterMetrics, train_clusters
from experiments.intervals import source_of
from experiments.metric_answers import drawn_from, score_metrics
from experiments.partings import NONE, ONE, RANDOM, Parting, agreement, deal, find_parting, part_by_family, shuffle
from experiments.problems import draw_problems
from manymetrics.encode.cache import encode_bank
from manymetrics.engine import Engine, Progress
from manymetrics.errors import InputError
from manymetrics.learn import load_base, material_of, measure_until_connected
from manymetrics.measure import fit_single_tasks
from manymetrics.recipe import CONVOLUTION, Recipe
from manymetrics.store import Run
from manymetrics.values import RunJobs, SharedData, Task, TransferMatrix

STAGE = "several"
TRAIN, VALID = 150, 60  # texts of a task, at most
FOLDS, DRAWS, PROBLEMS = 3, 20, 2  # of the sources, of random clusters, of each task
SHOTS, OWN = "from the shots", "own cluster"
TASKS_KNOWN = "tasks of a known cluster"  # the median number to learn from
OTHERS = "another cluster"  # the next one, in place of the own

Row = tuple[str, str]  # clusters, weights
Values = dict[Row, list[dict[str, float]]]  # the scores of each problem; of random clusters, of each draw and problem


@dataclass(frozen=True, eq=False)
class Bench:
    """One seed: what is learned from, and what is known of clusters."""

    shared_data: SharedData
    run_jobs: RunJobs
    recipe: Recipe
    draws: int
    families: Mapping[str, str]
    transfer: TransferMatrix
    chosen: list[dict[str, float]] = field(default_factory=list)  # in each fold

    def answer(self, folds: int, report: Callable[[Progress], None]) -> dict[str, Values]:
        """The scores of every row on the problems of each task."""
        found: dict[str, Values] = {}
        bank, started = self.shared_data.bank, time.process_time()
        drawn_folds = deal(bank, folds, self.recipe.seed)
        for number, names in enumerate(drawn_folds):
            past = [name for name in bank.names if name not in names]
            found |= self.answer_fold(past, names)
            report(Progress(STAGE, number + 1, len(drawn_folds), time.process_time() - started))
        return found

    def answer_fold(self, past: Sequence[str], names: Sequence[str]) -> dict[str, Values]:
        """By task of the fold and row."""
        bank, seed, shared_data = self.shared_data.bank, self.recipe.seed, self.shared_data.only(past)
        known = part_by_family(self.families, past)
        self.chosen.append({TASKS_KNOWN: float(np.median([len(group) for group in known.among(past).values()]))})
        found = find_parting(self.shared_data, self.transfer, self.recipe, past)
        everything = Parting(ONE, dict.fromkeys(bank.names, 0))
        values: dict[str, Values] = {name: {} for name in names}
        problems = draw_problems(bank, names, seed=seed, draws=PROBLEMS)
        for parting in (everything, found, known, *(shuffle(known, seed, draw) for draw in range(self.draws))):
            trained = train_clusters(shared_data, parting, self.run_jobs, self.recipe)
            for problem in problems:
                for row, scores in _score(trained, parting, problem).items():
                    values[drawn_from(problem)].setdefault(row, []).append(scores)
        return values


def _score(trained: ClusterMetrics, parting: Parting, problem: Task) -> dict[Row, dict[str, float]]:
    """The rows that metrics of some clusters give."""
    metrics = trained.metrics
    if parting.name == ONE:
        return {
            (NONE, ""): score_metrics(metrics[:1], None, problem),
            (ONE, ""): score_metrics(metrics, None, problem),
        }
    kind = RANDOM if parting.name.startswith(RANDOM) else parting.name
    own, numbers = parting.own[drawn_from(problem)], trained.numbers
    found = {
        (kind, SHOTS): score_metrics(metrics, trained.from_shots(problem), problem),
        (kind, OWN): score_metrics(metrics, trained.only(own), problem),
    }
    if own in numbers and len(numbers) > 1:
        other = numbers[(numbers.index(own) + 1) % len(numbers)]
        found[kind, OTHERS] = score_metrics(metrics, trained.only(other), problem)
    return found


def run_several(folders: Sequence[Path], out: Path, recipe: Recipe, *, by: str = "family", seeds: int = 1,
                folds: int = FOLDS, draws: int = DRAWS, workers: int = 1,
                report: Callable[[Progress], None] = lambda progress: None) -> dict[str, Any]:  # fmt: skip
    """Everything that was answered, by seed and task; finished work is kept in `out`."""
    started = time.process_time()
    banks, base = read_banks(folders, train=TRAIN, valid=VALID), load_base(recipe)
    bank = join_banks(folders, banks)
    families = known_families(folders, bank, by)
    if recipe.representation == CONVOLUTION:
        raise InputError("The metrics compared here are projections. Take a recipe without convolution networks.")
    shared_data = material_of(bank, base)
    found: list[dict[str, Values]] = []
    agreed: list[dict[str, float]] = []
    chosen: list[dict[str, float]] = []
    with threadpool_limits(1), Run.open(out / "run", recipe.as_toml()) as run:
        with Engine(shared_data, workers=workers, run=run, report=report) as run_jobs:
            shared_data = encode_bank(shared_data, run_jobs)
        with Engine(shared_data, workers=workers, run=run, report=report) as run_jobs:
            for seed in range(seeds):
                bench = _prepare(shared_data, run_jobs, replace(recipe, seed=seed), families, draws)
                found.append(bench.answer(folds, report))
                chosen += bench.chosen
                agreed.append(agreement(shared_data, bench.transfer, bench.recipe, families))
        run.finish()
    return {
        "answers": found,
        "families": families,
        "sources": {task.name: source_of(task) for task in bank},
        "agreement": agreed,
        "chosen": chosen,
        "data": bank.fingerprint,
        "draws": draws,
        "seconds_of_processor": round(time.process_time() - started, 1),
    }


def _prepare(
    shared_data: SharedData, run_jobs: RunJobs, recipe: Recipe, families: Mapping[str, str], draws: int
) -> Bench:
    representation = recipe.phases(shared_data).single
    single = fit_single_tasks(representation, shared_data, run_jobs, seed=recipe.seed)
    transfer, _ = measure_until_connected(representation, single, shared_data, run_jobs, recipe)
    return Bench(shared_data, run_jobs, recipe, draws, families, transfer)
