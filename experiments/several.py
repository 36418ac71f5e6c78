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

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load
from threadpoolctl import threadpool_limits

from experiments.banks import join_banks, known_families, read_banks
from experiments.families import rand
from experiments.intervals import source_of
from experiments.problems import draw_problems
from manymetrics.encode.encoder import Features
from manymetrics.encode.projection import ProjectionEncoder
from manymetrics.encode.rows import remember_rows
from manymetrics.encode.sentence import SentenceEncoder
from manymetrics.encode.settings import PROTOTYPICAL, ProjectionTraining
from manymetrics.engine import Engine, Progress
from manymetrics.errors import InputError
from manymetrics.evaluation.baselines import FROZEN_TEMPERATURE
from manymetrics.evaluation.targets import label_numbers
from manymetrics.learn import measure_enough, train_own_encoders
from manymetrics.measure import Evidence, join_evidence
from manymetrics.measure.evidence import average_directions, standardise
from manymetrics.measure.heads import Head
from manymetrics.measure.projections import open_projection
from manymetrics.measure.scores import accuracy, balanced_accuracy
from manymetrics.partition import choose_p1, cluster_tasks, complete_similarity, keep_reliable_pairs
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric, SharedLabelMetric, SimilarityMetric
from manymetrics.specialize.linear import OF_ROWS, PENALTY, train_linear_metric
from manymetrics.specialize.metric import FROZEN, LEARNED, LINEAR
from manymetrics.specialize.projections import train_projection
from manymetrics.start import Learning, load_base, prepare
from manymetrics.store import Run
from manymetrics.values import Clusters, Floats, Ints, Similarity, Task, TaskBank, TransferMatrix, Unit, Work
from manymetrics.weigh import blend, fit_mix, hold_out_tasks
from manymetrics.weigh.mix import fit_posterior
from manymetrics.weigh.selection import LIKELIHOOD_TEMPERATURES, PRIOR_SHOTS

TRAIN, VALID = 150, 60  # texts of a task, at most
FOLDS, DRAWS, PROBLEMS = 3, 20, 2  # of the sources, of random clusters, of each task
HELD_OUT = 0.2  # of a cluster's tasks, that its metric stops on
FEWEST = 3  # tasks to learn from that a known cluster must have; smaller ones are taken together
SHARED_STEPS, CLUSTER_STEPS, LOOK = 1000, 250, 50  # episodes of a projection, and between two looks
RATES = (1e-4, 3e-4, 1e-3)  # of their steps
STAGE = "several"
NONE, ONE, FOUND, KNOWN, RANDOM = "no metric", "one metric", "clusters found", "clusters known", "dealt at random"
SHOTS, OWN = "from the shots", "own cluster"
TASKS_KNOWN = "tasks of a known cluster"  # the median number to learn from
OTHERS = "another cluster"  # the mean of the other clusters' metrics, each by itself

Row = tuple[str, str]  # clusters, weights
Values = dict[Row, list[dict[str, float]]]  # the scores of each problem; of random clusters, of each draw and problem


@dataclass(frozen=True, eq=False)
class Parting:
    """Clusters: whose each task is, those of the fold among them."""

    name: str
    own: Mapping[str, int]

    def among(self, names: Iterable[str]) -> dict[int, list[str]]:
        """The tasks of each cluster that are among some."""
        groups: dict[int, list[str]] = {}
        for name in sorted(names):
            groups.setdefault(self.own[name], []).append(name)
        return dict(sorted(groups.items()))


@dataclass(frozen=True, eq=False)
class Trained:
    """The metrics of some clusters by the clusters' numbers, and the tasks that none learned from."""

    metrics: Mapping[int, Metric]
    sizes: Floats  # (clusters,): tasks of each
    held_out: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Asked:
    """What metrics answer on a problem."""

    left_out: Floats  # (shots, metrics, classes)
    shots: Ints
    texts: Floats  # (texts, metrics, classes)
    answers: Ints

    def mixed(self, sizes: Floats, freedom: float, *, shared_labels: bool) -> Floats:
        """The metrics weighed by the shots: (texts, classes)."""
        if shared_labels:
            clusters = np.arange(len(sizes))
            found = fit_posterior(self.left_out, self.shots, prior=sizes, temperature=freedom, clusters=clusters)
        else:
            found = fit_mix(self.left_out, self.shots, prior=sizes, prior_shots=freedom, tolerance=1e-4)
        return blend(found.weights, self.texts)


@dataclass(frozen=True, eq=False)
class Bench:
    """One seed: what is learned from, by whom it is asked for, and what is known of clusters."""

    learning: Learning
    work: Work
    seed: int
    draws: int
    families: Mapping[str, str]
    transfer: TransferMatrix
    recipe: Recipe
    chosen: list[dict[str, float]] = field(default_factory=list)  # in each fold

    @property
    def bank(self) -> TaskBank:
        """All tasks."""
        return self.learning.material.bank

    @property
    def shared_labels(self) -> bool:
        """Whether metrics are linear classifiers."""
        return self.bank.shared_labels is not None

    def answer(self, folds: int, report: Callable[[Progress], None]) -> dict[str, Values]:
        """The scores of every row on the problems of each task."""
        found: dict[str, Values] = {}
        started = time.process_time()
        dealt = deal(self.bank, folds, self.seed)
        for number, names in enumerate(dealt):
            past = [name for name in self.bank.names if name not in names]
            rows = self.answer_fold(past, names)
            for name in names:
                found[name] = {row: values[name] for row, values in rows.items()}
            report(Progress(STAGE, number + 1, len(dealt), time.process_time() - started))
        return found

    def answer_fold(self, past: Sequence[str], names: Sequence[str]) -> dict[Row, dict[str, list[dict[str, float]]]]:
        """By row and task of the fold."""
        everything, known = Parting(ONE, dict.fromkeys(self.bank.names, 0)), self._known(past)
        shared_rate, freedom = self.choose_rate(everything, past, SHARED_STEPS), PRIOR_SHOTS[0]
        rate = self.choose_rate(known, past, CLUSTER_STEPS)
        sizes = [len(group) for group in known.among(past).values()]
        chosen = {"rate of one metric": shared_rate, "rate of clusters": rate, TASKS_KNOWN: float(np.median(sizes))}
        one = self.train(everything, past, SHARED_STEPS, shared_rate)
        alone = SimilarityMetric(NONE, FROZEN, self.learning.base, PROTOTYPICAL, FROZEN_TEMPERATURE)
        problems = draw_problems(self.bank, names, seed=self.seed, draws=PROBLEMS)
        rows: dict[Row, dict[str, list[dict[str, float]]]] = {
            (NONE, ""): _by_task(problems, lambda task: [judge(_texts(ask([alone], task), 0))]),
            (ONE, ""): _by_task(problems, lambda task: [judge(_texts(ask([one.metrics[0]], task), 0))]),
        }
        partings = [self.find(past), known, *(shuffle(known, self.seed, draw) for draw in range(self.draws))]
        for parting in partings:
            kind = RANDOM if parting.name.startswith(RANDOM) else parting.name
            trained = self.train(parting, past, CLUSTER_STEPS, rate)
            if kind != RANDOM:
                freedom = chosen[f"freedom of {kind}"] = self.choose_freedom(trained)
            for task in problems:
                for weights, scores in self._judge(trained, parting, one.metrics[0], freedom, task).items():
                    rows.setdefault((kind, weights), {}).setdefault(_name(task), []).append(scores)
        self.chosen.append(chosen)
        return rows

    def _judge(self, trained: Trained, parting: Parting, one: Metric, freedom: float,
               task: Task) -> dict[str, dict[str, float]]:  # fmt: skip
        numbers = list(trained.metrics)
        asked = ask([*trained.metrics.values(), one], task)
        among = replace(asked, left_out=asked.left_out[:, :-1], texts=asked.texts[:, :-1])
        own = parting.own[_name(task)]
        place = numbers.index(own) if own in numbers else len(numbers)  # no cluster is its own: one metric for all
        each = [judge(_texts(asked, other)) for other in range(len(numbers)) if other != place]
        mixed = among.mixed(trained.sizes, freedom, shared_labels=self.shared_labels)
        found = {SHOTS: judge((mixed, asked.answers)), OWN: judge(_texts(asked, place))}
        if each:
            found[OTHERS] = {score: float(np.mean([one[score] for one in each])) for score in each[0]}
        return found

    def choose_rate(self, parting: Parting, past: Sequence[str], steps: int) -> float:
        """The rate under which own clusters' metrics answer held-out tasks most accurately; of equals the slowest."""
        if self.shared_labels:
            return RATES[0]  # linear classifiers have none
        accuracies = []
        for rate in RATES:
            trained = self.train(parting, past, steps, rate)
            problems = draw_problems(self.bank, trained.held_out, seed=self.seed, draws=1)
            own = (ask([trained.metrics[parting.own[_name(task)]]], task) for task in problems)
            accuracies.append(_mean_or([judge(_texts(one, 0))["accuracy"] for one in own]))
        return RATES[int(np.argmax(accuracies))]

    def train(self, parting: Parting, past: Sequence[str], steps: int, rate: float) -> Trained:
        """A metric for each cluster; some tasks of each are kept from it."""
        groups = parting.among(past)
        places = {number: place for place, number in enumerate(groups)}
        names = sorted(past)
        clusters = Clusters(tuple(names), np.array([places[parting.own[name]] for name in names]))
        sources = {task.name: source_of(task) for task in self.bank}
        held_out = hold_out_tasks(clusters, sources, HELD_OUT, seed=self.seed)
        units = [
            self._unit(f"{parting.name} {number}", group, held_out, steps, rate) for number, group in groups.items()
        ]
        payloads = self.work(STAGE, train_linear_metric if self.shared_labels else train_projection, units)
        make = self._linear if self.shared_labels else self._projection
        metrics = {number: make(unit.name, payloads[unit.name]) for number, unit in zip(groups, units, strict=True)}
        return Trained(metrics, np.array([float(len(group)) for group in groups.values()]), held_out)

    def _unit(self, name: str, group: Sequence[str], held_out: Sequence[str], steps: int, rate: float) -> Unit:
        base, prints = self.learning.base.fingerprint, {task: self.bank[task].fingerprint for task in group}
        kept = {task: one for task, one in prints.items() if task not in held_out}
        if self.shared_labels:
            spec = {"penalty": PENALTY, "tasks": list(kept), "bank": kept, "encoder": base, "features": OF_ROWS}
            return Unit(name, spec)
        training = ProjectionTraining(steps, LOOK, rate, self.recipe.projection_dropout)
        spec = {"seed": self.seed, "encoder": base, "training": asdict(training), "tasks": kept}
        return Unit(name, {**spec, "held_out": {task: one for task, one in prints.items() if task in held_out}})

    def _projection(self, name: str, payload: bytes) -> Metric:
        found = open_projection(payload)
        encoder = ProjectionEncoder(self.learning.base, found.matrix)
        return SimilarityMetric(name, LEARNED, encoder, PROTOTYPICAL, found.temperature)

    def _linear(self, name: str, payload: bytes) -> Metric:
        tensors, labels = load(payload), self.bank.shared_labels or ()
        head = Head(tensors["head"], tensors["offset"])
        return SharedLabelMetric(name, LINEAR, self.learning.base, head, labels, tensors["prior"])

    def choose_freedom(self, trained: Trained) -> float:
        """How far shots may move the weights: what makes the right answers of held-out tasks likeliest."""
        problems = draw_problems(self.bank, trained.held_out, seed=self.seed, draws=1)
        grid = LIKELIHOOD_TEMPERATURES if self.shared_labels else PRIOR_SHOTS
        asked = [ask(list(trained.metrics.values()), task) for task in problems]
        likelihoods = [
            _mean_or([
                _log_likelihood(one.mixed(trained.sizes, freedom, shared_labels=self.shared_labels), one.answers)
                for one in asked
            ])
            for freedom in grid
        ]  # fmt: skip
        return grid[int(np.argmax(likelihoods))]

    def find(self, past: Sequence[str]) -> Parting:
        """The clusters of some tasks, found without the others; each of these is of the cluster it is nearest to."""
        base = self.learning.base
        places = [self.transfer.names.index(name) for name in past]
        some = TransferMatrix(tuple(past), self.transfer.scores[np.ix_(places, places)], self.transfer.score)
        clusters = cluster(join_evidence(some, self.bank.only(list(past)), base), self.recipe)[1]
        own = dict(zip(clusters.names, clusters.labels.tolist(), strict=True))
        evidence = join_evidence(self.transfer, self.bank, base).joined.scores  # (tasks, tasks)
        members = [[self.transfer.names.index(name) for name in group] for group in clusters]
        for place, name in enumerate(self.transfer.names):
            if name not in own:
                own[name] = int(np.argmax([_mean_known(evidence[place, group]) for group in members]))
        return Parting(FOUND, own)

    def _known(self, past: Sequence[str]) -> Parting:
        counts = {family: sum(self.families[name] == family for name in past) for family in self.families.values()}
        kinds = sorted(family for family, count in counts.items() if count >= FEWEST)
        numbers = {family: number for number, family in enumerate(kinds)}
        return Parting(KNOWN, {name: numbers.get(family, len(kinds)) for name, family in self.families.items()})


def deal(bank: TaskBank, folds: int, seed: int) -> list[list[str]]:
    """The tasks of each fold: sources are dealt by lot."""
    lots = {name: hashlib.sha256(f"{seed} {name}".encode()).digest() for name in map(source_of, bank)}
    sources = sorted(lots, key=lambda name: lots[name])
    if len(sources) < folds:
        raise InputError(f"Found {len(sources)} sources to deal to {folds} folds. Ask for fewer folds.")
    dealt = [set(sources[number::folds]) for number in range(folds)]
    return [[task.name for task in bank if source_of(task) in own] for own in dealt]


def shuffle(known: Parting, seed: int, draw: int) -> Parting:
    """The tasks dealt to clusters of the same sizes."""
    names = sorted(known.own)
    numbers = np.random.default_rng([seed, draw]).permutation([known.own[name] for name in names])
    return Parting(f"{RANDOM} {draw}", dict(zip(names, numbers.tolist(), strict=True)))


def cluster(evidence: Evidence, recipe: Recipe) -> tuple[Similarity, Clusters]:
    """The clusters of some evidence, as the package finds them."""
    p1 = choose_p1(*evidence.parts) if recipe.p1 is None else recipe.p1
    pairs = keep_reliable_pairs(evidence.joined, p1=p1, p2=recipe.p2)
    similarity = complete_similarity(pairs, sparsity=recipe.sparsity)
    return similarity, cluster_tasks(similarity, clusters=recipe.clusters, most=recipe.most_clusters)


def ask(metrics: Sequence[Metric], task: Task) -> Asked:
    """Every metric's answers on a problem."""
    shots = task.labelled_train
    features, texts = Features(shots.texts), Features(task.test.texts)
    fitted = [metric.learn(features, shots.labels, task.labels) for metric in metrics]
    return Asked(
        np.stack([one.leave_one_out() for one in fitted], axis=1),
        shots.labels,
        np.stack([one.probabilities(texts) for one in fitted], axis=1),
        label_numbers(task, task.test.labels),
    )


def judge(answered: tuple[Floats, Ints]) -> dict[str, float]:
    """Accuracy, balanced accuracy and, where there are two labels, the area under the ROC curve."""
    from sklearn.metrics import roc_auc_score

    probabilities, answers = answered
    guesses = probabilities.argmax(axis=1)
    scores = {"accuracy": accuracy(guesses, answers), "balanced_accuracy": balanced_accuracy(guesses, answers)}
    if probabilities.shape[1] == 2 and len(set(answers.tolist())) == 2:
        scores["auc"] = float(roc_auc_score(answers, probabilities[:, 1]))
    return scores


def agreement(bench: Bench) -> dict[str, float]:
    """The adjusted Rand index of the clusters of all tasks with the families, by transfer alone and by all evidence."""
    own = [bench.families[name] for name in bench.transfer.names]
    bank = bench.bank.only(list(bench.transfer.names))
    alone = TransferMatrix(
        bench.transfer.names, average_directions(standardise(bench.transfer.scores)), bench.transfer.score
    )
    every = join_evidence(bench.transfer, bank, bench.learning.base)
    found = {}
    for kind, evidence in (("transfer", Evidence(alone, (bench.transfer,))), ("all evidence", every)):
        similarity, _ = cluster(evidence, bench.recipe)
        found[kind] = rand(similarity, own, None)
        found[f"{kind}, families counted"] = rand(similarity, own, len(set(own)))
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
        for (
            one
        ) in banks:  # under their own names, so that a folder's texts are encoded once for all banks it is part of
            material = prepare(one, base, {}).material
            with Engine(material, workers=workers, run=run, report=report) as work:
                remember_rows(material, base, work)
        with Engine(learning.material, workers=workers, run=run, report=report) as work:
            for seed in range(seeds):
                bench = _prepare(learning, work, replace(recipe, seed=seed), families, draws)
                found.append(bench.answer(folds, report))
                chosen += bench.chosen
                agreed.append(agreement(bench))
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
    return Bench(learning, work, recipe.seed, draws, families, transfer, recipe)


def _by_task(problems: TaskBank, judged: Callable[[Task], list[dict[str, float]]]) -> dict[str, list[dict[str, float]]]:
    found: dict[str, list[dict[str, float]]] = {}
    for task in problems:
        found.setdefault(_name(task), []).extend(judged(task))
    return found


def _name(problem: Task) -> str:
    """The task that a problem was drawn from."""
    return problem.name.rpartition(" ")[0]


def _texts(asked: Asked, place: int) -> tuple[Floats, Ints]:
    return asked.texts[:, place], asked.answers


def _log_likelihood(probabilities: Floats, answers: Ints) -> float:
    right = probabilities[np.arange(len(answers)), answers]
    return float(np.log(np.maximum(right, 1e-12)).mean())


def _mean_or(values: Sequence[float], otherwise: float = 0.0) -> float:
    """The mean; where there is none, as when no task could be held out, the same for all that is compared."""
    return float(np.mean(values)) if values else otherwise


def _mean_known(scores: Floats) -> float:
    known = scores[np.isfinite(scores)]
    return float(known.mean()) if len(known) else -np.inf
