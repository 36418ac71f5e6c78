"""`several`: do several metrics pay? One metric for all tasks beside one for each cluster, clusters known and unknown.

The sources of a bank are dealt to folds; few-shot problems of a fold's tasks are answered by metrics that learned from
the other folds. No target is involved. Compared are

    no metric         the encoder as it is
    one metric        learned from all tasks together
    clusters found    as the package finds them, among the tasks that are learned from
    clusters known    the families that a manifest names
    dealt at random   as many clusters of the same sizes as are known, so many draws

and for clusters two ways to weigh their metrics: from the problem's shots, or by its own cluster's metric alone. A
held-out task's own cluster is known by its family; of clusters found it is the one whose tasks all evidence of its
labelled texts puts it nearest to. Metrics are projections over a frozen sentence encoder, or, where all tasks share
their labels, linear classifiers over its rows. A metric stops training on tasks held out from its own cluster; on all
of these are chosen how far shots may move the weights, and, by accuracy, how fast projections learn: once for the
metric of all tasks, once for those of known clusters, which stands for all clusters.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from experiments.banks import join_banks, known_families, read_banks
from experiments.cluster_metrics import STAGE, Trained, Training
from experiments.intervals import source_of
from experiments.metric_answers import ask, drawn_from, judge
from experiments.partings import NONE, ONE, RANDOM, Parting, agreement, deal, find_parting, part_by_family, shuffle
from experiments.problems import draw_problems
from manymetrics.encode.rows import remember_rows
from manymetrics.encode.sentence import SentenceEncoder
from manymetrics.encode.settings import PROTOTYPICAL
from manymetrics.engine import Engine, Progress
from manymetrics.errors import InputError
from manymetrics.evaluation.baselines import FROZEN_TEMPERATURE
from manymetrics.learn import measure_enough, train_own_encoders
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric, SimilarityMetric
from manymetrics.specialize.metric import FROZEN
from manymetrics.start import Learning, load_base, prepare
from manymetrics.store import Run
from manymetrics.values import Task, TaskBank, TransferMatrix, Work
from manymetrics.weigh.selection import PRIOR_SHOTS

TRAIN, VALID = 150, 60  # texts of a task, at most
FOLDS, DRAWS, PROBLEMS = 3, 20, 2  # of the sources, of random clusters, of each task
SHARED_STEPS, CLUSTER_STEPS = 1000, 250  # episodes of a projection
SHOTS, OWN = "from the shots", "own cluster"
TASKS_KNOWN = "tasks of a known cluster"  # the median number to learn from
OTHERS = "another cluster"  # the mean of the other clusters' metrics, each by itself

Row = tuple[str, str]  # clusters, weights
Values = dict[Row, list[dict[str, float]]]  # the scores of each problem; of random clusters, of each draw and problem


@dataclass(frozen=True, eq=False)
class Bench:
    """One seed: how metrics are trained, and what is known of clusters."""

    training: Training
    draws: int
    families: Mapping[str, str]
    transfer: TransferMatrix
    chosen: list[dict[str, float]] = field(default_factory=list)  # in each fold

    def answer(self, folds: int, report: Callable[[Progress], None]) -> dict[str, Values]:
        """The scores of every row on the problems of each task."""
        found: dict[str, Values] = {}
        bank = self.training.bank
        started = time.process_time()
        dealt = deal(bank, folds, self.training.recipe.seed)
        for number, names in enumerate(dealt):
            past = [name for name in bank.names if name not in names]
            rows = self.answer_fold(past, names)
            for name in names:
                found[name] = {row: values[name] for row, values in rows.items()}
            report(Progress(STAGE, number + 1, len(dealt), time.process_time() - started))
        return found

    def answer_fold(self, past: Sequence[str], names: Sequence[str]) -> dict[Row, dict[str, list[dict[str, float]]]]:
        """By row and task of the fold."""
        training, seed = self.training, self.training.recipe.seed
        everything, known = Parting(ONE, dict.fromkeys(training.bank.names, 0)), part_by_family(self.families, past)
        shared_rate, freedom = training.choose_rate(everything, past, SHARED_STEPS), PRIOR_SHOTS[0]
        rate = training.choose_rate(known, past, CLUSTER_STEPS)
        sizes = [len(group) for group in known.among(past).values()]
        chosen = {"rate of one metric": shared_rate, "rate of clusters": rate, TASKS_KNOWN: float(np.median(sizes))}
        one = training.train(everything, past, SHARED_STEPS, shared_rate)
        alone = SimilarityMetric(NONE, FROZEN, training.learning.base, PROTOTYPICAL, FROZEN_TEMPERATURE)
        problems = draw_problems(training.bank, names, seed=seed, draws=PROBLEMS)
        rows: dict[Row, dict[str, list[dict[str, float]]]] = {
            (NONE, ""): _by_task(problems, lambda task: [judge(ask([alone], task).alone(0))]),
            (ONE, ""): _by_task(problems, lambda task: [judge(ask([one.metrics[0]], task).alone(0))]),
        }
        found = find_parting(training.learning, self.transfer, training.recipe, past)
        partings = [found, known, *(shuffle(known, seed, draw) for draw in range(self.draws))]
        for parting in partings:
            kind = RANDOM if parting.name.startswith(RANDOM) else parting.name
            trained = training.train(parting, past, CLUSTER_STEPS, rate)
            if kind != RANDOM:
                freedom = chosen[f"freedom of {kind}"] = training.choose_freedom(trained)
            for task in problems:
                for weights, scores in self._judge(trained, parting, one.metrics[0], freedom, task).items():
                    rows.setdefault((kind, weights), {}).setdefault(drawn_from(task), []).append(scores)
        self.chosen.append(chosen)
        return rows

    def _judge(self, trained: Trained, parting: Parting, one: Metric, freedom: float,
               task: Task) -> dict[str, dict[str, float]]:  # fmt: skip
        numbers = list(trained.metrics)
        asked = ask([*trained.metrics.values(), one], task)
        among = replace(asked, left_out=asked.left_out[:, :-1], texts=asked.texts[:, :-1])
        own = parting.own[drawn_from(task)]
        place = numbers.index(own) if own in numbers else len(numbers)  # no cluster is its own: one metric for all
        each = [judge(asked.alone(other)) for other in range(len(numbers)) if other != place]
        mixed = among.mixed(trained.sizes, freedom, shared_labels=self.training.shared_labels)
        found = {SHOTS: judge((mixed, asked.answers)), OWN: judge(asked.alone(place))}
        if each:
            found[OTHERS] = {score: float(np.mean([one[score] for one in each])) for score in each[0]}
        return found


def run_several(folders: Sequence[Path], out: Path, recipe: Recipe, *, by: str = "family", seeds: int = 1,
                folds: int = FOLDS, draws: int = DRAWS, workers: int = 1,
                report: Callable[[Progress], None] = lambda progress: None) -> dict[str, Any]:  # fmt: skip
    """Everything that was answered, by seed and task; finished work is kept in `out`."""
    started = time.process_time()
    banks, base = read_banks(folders, train=TRAIN, valid=VALID), load_base(recipe)
    bank = join_banks(folders, banks)
    families = known_families(folders, bank, by)
    if not isinstance(base, SentenceEncoder):
        raise InputError("Metrics are compared over a sentence encoder. Take a recipe that stands on one.")
    learning = prepare(bank, base, {})
    found: list[dict[str, Values]] = []
    agreed: list[dict[str, float]] = []
    chosen: list[dict[str, float]] = []
    with threadpool_limits(1), Run.open(out / "run", recipe.as_toml()) as run:
        # Under their own names, so that a folder's texts are encoded once for all banks it is part of.
        for one in banks:
            material = prepare(one, base, {}).material
            with Engine(material, workers=workers, run=run, report=report) as work:
                remember_rows(material, base, work)
        with Engine(learning.material, workers=workers, run=run, report=report) as work:
            for seed in range(seeds):
                bench = _prepare(learning, work, replace(recipe, seed=seed), families, draws)
                found.append(bench.answer(folds, report))
                chosen += bench.chosen
                agreed.append(agreement(learning, bench.transfer, bench.training.recipe, families))
        run.finish()
    return {
        "answers": found,
        "families": families,
        "sources": {task.name: source_of(task) for task in bank},
        "agreement": agreed,
        "chosen": chosen,
        "data": bank.fingerprint,
        "draws": draws,
        "shared_labels": bank.shared_labels is not None,
        "seconds_of_processor": round(time.process_time() - started, 1),
    }


def _prepare(learning: Learning, work: Work, recipe: Recipe, families: Mapping[str, str], draws: int) -> Bench:
    transfer, _ = measure_enough(learning, train_own_encoders(learning, work, recipe), work, recipe)
    return Bench(Training(learning, work, recipe), draws, families, transfer)


def _by_task(problems: TaskBank, judged: Callable[[Task], list[dict[str, float]]]) -> dict[str, list[dict[str, float]]]:
    found: dict[str, list[dict[str, float]]] = {}
    for task in problems:
        found.setdefault(drawn_from(task), []).extend(judged(task))
    return found
