"""`several`: do several metrics pay? One metric for all tasks beside one for each cluster, clusters known and unknown.

The sources of a bank are assigned to folds; few-shot problems of its tasks are answered by metrics that learned from
the other folds. No target is involved. Compared are

    no metric         the encoder as it is
    one metric        and what is trained on all tasks: a projection, or a projection and a tuned encoder
    clusters found    and one for each cluster that the package finds among the tasks that are learned from
    clusters known    the families that a manifest names
    drawn at random   as many clusters of the same sizes as are known, so many draws

Every row has the package's own head, a regression in the weighted sum of its metrics, fitted on the shots and, where
tasks differ in their labels, on the label names. The clusters of a task are weighed in two ways: by the texts of its
shots and the label names, as the package does it, or by its own cluster alone. A held-out task's own cluster is known
by its family; of clusters found it is the one whose tasks all evidence of its labelled texts puts it nearest to.
Metrics are trained as the recipe says.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from experiments.banks import join_banks, known_families, read_banks
from experiments.clusterings import (
    FOUND,
    KNOWN,
    NONE,
    ONE,
    RANDOM,
    Clustering,
    agreement,
    family_clustering,
    find_clustering,
    random_clustering,
)
from experiments.intervals import over_groups
from experiments.markdown import points, share
from experiments.methods import FROZEN_TEMPERATURE
from experiments.options import (
    Results,
    count_option,
    experiment,
    family_option,
    folders_option,
    folds_option,
    recipe_option,
)
from experiments.problems import assign_to_folds, draw_problems, source_of
from manymetrics.cli.learn import choose_recipe
from manymetrics.cli.output import Table
from manymetrics.encode.encoder import EmbeddedTexts
from manymetrics.encode.sentence import encode_bank
from manymetrics.encode.settings import PROTOTYPICAL
from manymetrics.engine import Engine, Progress
from manymetrics.episodes import hold_out
from manymetrics.errors import InputError
from manymetrics.evaluation.baselines import shots_of
from manymetrics.evaluation.scoring import Answered
from manymetrics.evaluation.targets import label_numbers
from manymetrics.learn import SENTENCE, WORDS, load_base, measure_until_connected
from manymetrics.measure import fit_single_tasks
from manymetrics.recipe import CONVOLUTION, LOW_RANK, STATIC, Recipe
from manymetrics.specialize import Metric, train_metrics
from manymetrics.specialize.metric import FROZEN
from manymetrics.store import Run
from manymetrics.values import Clusters, RunJobs, SharedData, Task, TransferMatrix
from manymetrics.weigh import (
    Assignment,
    ClusterAssigner,
    TaskMetric,
    encoder_weights,
    fit_head,
    learn_assigner,
)
from manymetrics.weigh.assignment import TEXTS

STAGE = "several"
TRAIN, VALID = 150, 60  # texts of a task, at most
FOLDS, DRAWS, PROBLEMS = 3, 20, 2  # of the sources, of random clusters, of each task
SHOTS, OWN = "from the shots", "own cluster"
TASKS_KNOWN = "tasks of a known cluster"  # the median number to learn from
OTHERS = "another cluster"  # the next one, in place of the own

Row = tuple[str, str]  # clusters, weights
Values = dict[Row, list[dict[str, float]]]  # the scores of each problem; of random clusters, of each draw and problem
MANY_FAMILIES = 10  # from so many on, intervals are over families instead of sources
SCORES = ("accuracy", "balanced_accuracy", "auc")
KINDS = (FOUND, KNOWN, RANDOM)
ROWS: tuple[Row, ...] = ((NONE, ""), (ONE, ""), *((kind, how) for kind in KINDS for how in (SHOTS, OWN)))
EVERY_ROW: tuple[Row, ...] = (*ROWS, *((kind, OTHERS) for kind in KINDS))


def show(results: Results) -> Iterator[str | Table]:
    """A row for each kind of clusters and weights."""
    table = Table("metrics", "weights", numbers=["accuracy", "balanced accuracy", "AUC", "over one metric"])
    for row in results["rows"]:
        cells = [share(row[name]) for name in SCORES] + [points(row["accuracy_gain"])]
        table.add_row(row["clusters"], row["weights"], *cells)
    yield table
    own = "; ".join(f"{kind} {points(one)}" for kind, one in results["own_over_others"].items())
    agreed = ", ".join(f"{kind} {value:.2f}" for kind, value in results["agreement"].items())
    yield f"own cluster's metric over another's: {own}"
    yield f"clusters found against families, adjusted Rand: {agreed}"
    yield (f"{results['tasks']} tasks, {results['sources']} sources, {results['families']} families, intervals over "
           f"{results['over']}")  # fmt: skip


@experiment(
    "several",
    folders_option,
    recipe_option,
    family_option,
    count_option("--seeds", 1, "How many seeds."),
    folds_option(FOLDS),
    count_option("--draws", DRAWS, "Of random clusters."),
    file="several-{}.json", show=show,
    short_help="Whether several metrics pay: clusters found, known, and drawn at random.",
)  # fmt: skip
def several(*, folders: tuple[Path, ...], out: Path, recipe: str, seeds: int, draws: int, **how: Any) -> Results:
    """Answer few-shot problems of held-out tasks by one metric, and by one for each cluster of some kinds of clusters.

    Intervals are 95 % bootstrap intervals over families, or over sources where families are few. All that is finished
    is kept in --out, which several banks can share.
    """
    found = run_several(folders, out, choose_recipe(recipe), seeds=seeds, draws=draws, **how)
    return {"seeds": seeds, "draws": draws, **score(found)}


@dataclass(frozen=True, eq=False)
class ClusterMetrics:
    """The frozen encoder, the one of all tasks and those of the clusters whose own training pays."""

    metrics: tuple[Metric, ...]
    numbers: tuple[int, ...]  # of the clusters, in the order of the probabilities of an assignment
    assigner: ClusterAssigner | None

    def from_shots(self, problem: Task) -> Assignment | None:
        """The clusters that a problem may belong to, by the texts of its shots and its label names."""
        if self.assigner is None:
            return None
        return self.assigner.assign(self.metrics[0].encoder, problem.train.texts, problem.label_names)

    def only(self, number: int) -> Assignment:
        """The assignment of a task that is known to be of one cluster; to none, if no past task is of it."""
        return Assignment(tuple(float(one == number) for one in self.numbers), (), TEXTS)


def train_clusters(shared_data: SharedData, clustering: Clustering, run_jobs: RunJobs,
                   recipe: Recipe) -> ClusterMetrics:  # fmt: skip
    """The metrics that the package trains on clusters of past tasks."""
    bank, base = shared_data.bank, shared_data.base
    groups = clustering.groups(bank.names)
    places = {number: place for place, number in enumerate(groups)}
    names = tuple(sorted(bank.names))
    clusters = Clusters(names, np.array([places[clustering.cluster_of[name]] for name in names]))
    held_out, seed = hold_out(bank, recipe.held_out, seed=recipe.seed), recipe.seed
    trained = train_metrics(recipe.phases(shared_data), shared_data, clusters, run_jobs, held_out=held_out, seed=seed)
    frozen = Metric(WORDS if recipe.encoder == STATIC else SENTENCE, FROZEN, base, PROTOTYPICAL, FROZEN_TEMPERATURE)
    return ClusterMetrics((frozen, *trained), tuple(groups), learn_assigner(bank, clusters, base))


def score_metrics(metrics: Sequence[Metric], assignment: Assignment | None, problem: Task, *,
                  names: bool) -> dict[str, float]:  # fmt: skip
    """The scores of the package's head: one regression in the sum of cosines that an assignment weighs.

    Accuracy, balanced accuracy and, where there are two labels, the area under the ROC curve.
    """
    shots = shots_of(problem, names=names)
    metric = TaskMetric.of(metrics, encoder_weights(metrics, assignment), EmbeddedTexts(shots.texts))
    head = fit_head(metric, shots.numbers, len(problem.labels))
    probabilities = softmax(head.logits(EmbeddedTexts(problem.test.texts)), axis=1)
    labels = label_numbers(problem, problem.test.labels)
    answered = Answered(problem.name, probabilities.argmax(axis=1), labels)
    scores = {"accuracy": answered.accuracy, "balanced_accuracy": answered.balanced_accuracy}
    if probabilities.shape[1] == 2 and len(set(labels.tolist())) == 2:
        scores["auc"] = float(roc_auc_score(labels, probabilities[:, 1]))
    return scores


@dataclass(frozen=True, eq=False)
class SeveralRun:
    """One seed: what is learned from, and what is known of clusters."""

    shared_data: SharedData
    run_jobs: RunJobs
    recipe: Recipe
    draws: int
    families: Mapping[str, str]
    transfer: TransferMatrix
    chosen: list[dict[str, float]] = field(default_factory=list)  # in each fold

    @classmethod
    def prepare(cls, shared_data: SharedData, run_jobs: RunJobs, recipe: Recipe, families: Mapping[str, str],
                draws: int) -> "SeveralRun":  # fmt: skip
        """Measure the transfer between all tasks."""
        representation = recipe.phases(shared_data).single
        single = fit_single_tasks(representation, shared_data, run_jobs, seed=recipe.seed)
        transfer, _ = measure_until_connected(representation, single, shared_data, run_jobs, recipe)
        return cls(shared_data, run_jobs, recipe, draws, families, transfer)

    def answer(self, folds: int, report: Callable[[Progress], None]) -> dict[str, Values]:
        """The scores of every row on the problems of each task."""
        found: dict[str, Values] = {}
        bank, started = self.shared_data.bank, time.process_time()
        assigned = assign_to_folds(bank, folds, seed=self.recipe.seed)
        for number, names in enumerate(assigned):
            past = [name for name in bank.names if name not in names]
            found |= self.answer_fold(past, names)
            report(Progress(STAGE, number + 1, len(assigned), time.process_time() - started))
        return found

    def answer_fold(self, past: Sequence[str], names: Sequence[str]) -> dict[str, Values]:
        """By task of the fold and row."""
        bank, seed, shared_data = self.shared_data.bank, self.recipe.seed, self.shared_data.only(past)
        known = family_clustering(self.families, past)
        self.chosen.append({TASKS_KNOWN: float(np.median([len(group) for group in known.groups(past).values()]))})
        found = find_clustering(self.shared_data, self.transfer, self.recipe, past)
        everything = Clustering(ONE, dict.fromkeys(bank.names, 0))
        values: dict[str, Values] = {name: {} for name in names}
        problems = draw_problems(bank, names, seed=seed, draws=PROBLEMS)
        at_random = [random_clustering(known, seed, draw) for draw in range(self.draws)]
        for clustering in (everything, found, known, *at_random):
            trained = train_clusters(shared_data, clustering, self.run_jobs, self.recipe)
            for problem in problems:
                task = problem.name.rpartition(" ")[0]  # that it was drawn from
                for row, scores in _score(trained, clustering, task, problem, names=not bank.shared_labels).items():
                    values[task].setdefault(row, []).append(scores)
        return values


def _score(trained: ClusterMetrics, clustering: Clustering, task: str, problem: Task, *,
           names: bool) -> dict[Row, dict[str, float]]:  # fmt: skip
    """The rows that the metrics of a clustering give."""
    metrics = trained.metrics
    if clustering.name == ONE:
        return {
            (NONE, ""): score_metrics(metrics[:1], None, problem, names=names),
            (ONE, ""): score_metrics(metrics, None, problem, names=names),
        }
    kind = RANDOM if clustering.name.startswith(RANDOM) else clustering.name
    own, numbers = clustering.cluster_of[task], trained.numbers
    found = {
        (kind, SHOTS): score_metrics(metrics, trained.from_shots(problem), problem, names=names),
        (kind, OWN): score_metrics(metrics, trained.only(own), problem, names=names),
    }
    if own in numbers and len(numbers) > 1:
        other = numbers[(numbers.index(own) + 1) % len(numbers)]
        found[kind, OTHERS] = score_metrics(metrics, trained.only(other), problem, names=names)
    return found


def run_several(folders: Sequence[Path], out: Path, recipe: Recipe, *, by: str = "family", seeds: int = 1,
                folds: int = FOLDS, draws: int = DRAWS, workers: int = 1,
                report: Callable[[Progress], None] = lambda progress: None) -> dict[str, Any]:  # fmt: skip
    """Everything that was answered, by seed and task; finished work is kept in `out`."""
    started = time.process_time()
    banks, base = read_banks(folders, train=TRAIN, valid=VALID), load_base(recipe)
    bank, families = join_banks(folders, banks), known_families(folders, banks, by)
    if recipe.representation == CONVOLUTION:
        raise InputError("Convolution networks are not compared here. Give another recipe.")
    if (sources := len({source_of(task) for task in bank})) < folds:
        raise InputError(f"Found {sources} sources to assign to {folds} folds. Ask for fewer folds.")
    shared_data = SharedData(bank.without_tests(), base)
    runs: list[SeveralRun] = []
    found: list[dict[str, Values]] = []
    with threadpool_limits(1), Run.open(out / "run", recipe.as_toml()) as run:
        with Engine(shared_data, workers=workers, run=run, report=report) as run_jobs:
            shared_data = encode_bank(shared_data, run_jobs)
        with Engine(shared_data, workers=workers, run=run, report=report) as run_jobs:
            for seed in range(seeds):
                runs.append(SeveralRun.prepare(shared_data, run_jobs, replace(recipe, seed=seed), families, draws))
                found.append(runs[-1].answer(folds, report))
        run.finish()
    return {
        "answers": found,
        "families": families,
        "sources": {task.name: source_of(task) for task in bank},
        "agreement": [agreement(one.transfer, shared_data, one.recipe, families) for one in runs],
        "chosen": [chosen for one in runs for chosen in one.chosen],
        "data": bank.fingerprint,
        "draws": draws,
        "metrics": "projections and tuned encoders" if recipe.representation == LOW_RANK else "projections",
        "seconds_of_processor": round(time.process_time() - started, 1),
    }


def score(found: Mapping[str, Any]) -> dict[str, Any]:
    """Every row with intervals, what it gains over one metric, and how much better own clusters are than others."""
    families, sources, answers = found["families"], found["sources"], found["answers"]
    many = len(set(families.values())) >= MANY_FAMILIES
    groups = families if many else sources
    values = {score: {row: by_task(answers, row, score) for row in EVERY_ROW} for score in SCORES}
    rows = []
    for row in ROWS:
        scored: dict[str, Any] = {"clusters": row[0], "weights": row[1]}
        for name in SCORES:
            one, own = values[name][ONE, ""], values[name][row]
            scored[name] = over_groups(own, groups)
            scored[f"{name}_gain"] = None if row == (ONE, "") else over_groups(_less(own, one), groups)
        rows.append(scored)

    def gain(one: Row, other: Row) -> dict[str, float] | None:
        return over_groups(_less(values["accuracy"][one], values["accuracy"][other]), groups)

    return {
        "data": found["data"],
        "tasks": len(families),
        "sources": len(set(sources.values())),
        "families": len(set(families.values())),
        "over": "families" if many else "sources",
        "metrics": found["metrics"],
        "chosen": found["chosen"],
        "rows": rows,
        "own_over_others": {kind: gain((kind, OWN), (kind, OTHERS)) for kind in KINDS},
        "over_random": {
            kind: {how: gain((kind, how), (RANDOM, how)) for how in (SHOTS, OWN)} for kind in (FOUND, KNOWN)
        },
        "by_draw": {how: by_draw(answers, how, found["draws"]) for how in (SHOTS, OWN)},
        "agreement": {kind: _mean([one[kind] for one in found["agreement"]]) for kind in found["agreement"][0]},
        "seconds_of_processor": found["seconds_of_processor"],
    }


def by_task(answers: Sequence[Mapping[str, Any]], row: Row, score: str) -> dict[str, float]:
    """The mean of a score over the seeds, draws and problems of each task that has it."""
    found: dict[str, list[float]] = {}
    for seed in answers:
        for task, rows in seed.items():
            found.setdefault(task, []).extend(one[score] for one in rows.get(row, ()) if score in one)
    return {task: _mean(values) for task, values in found.items() if values}


def by_draw(answers: Sequence[Mapping[str, Any]], how: str, draws: int) -> list[float]:
    """The accuracy of each draw of random clusters, over all tasks and seeds."""
    found: list[list[float]] = [[] for _ in range(draws)]
    for seed in answers:
        for rows in seed.values():
            values = [one["accuracy"] for one in rows[RANDOM, how]]  # of one draw after the other
            for draw, some in enumerate(np.array_split(values, draws)):
                found[draw].append(float(some.mean()))
    return [_mean(values) for values in found]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _less(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """The difference of two scores on the tasks that have both."""
    return {task: value - other[task] for task, value in one.items() if task in other}
