"""Held-out tasks -> the parts of a model that are chosen, not trained.

Which of the bank's tasks are kept from training (the meta-validation tasks), the temperature of the metrics that learn
nothing, and the rules of the mix. The targets of any evaluation are nowhere near.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import softmax

from manymetrics.encode.encoders import LexicalEncoder, MeanEncoder
from manymetrics.encode.reading import Labelled, ReadBank, ReadTask
from manymetrics.encode.settings import PROTOTYPICAL
from manymetrics.encode.tokens import join
from manymetrics.specialize.metric import FROZEN, LEXICAL, Metric, SimilarityMetric, cluster_metric, linear_metric
from manymetrics.values import Clusters, Floats
from manymetrics.weigh.classifier import pose_problem
from manymetrics.weigh.rules import Problem, Rules, log_likelihoods, tune_rules

FEWEST_TO_PART = 4  # tasks a cluster must have before one of them is held out
TEMPERATURES = (4.0, 6.0, 9.0, 14.0, 20.0, 30.0)
DEFAULT_TEMPERATURE = 9.0
FURTHER = 20  # examples of any label beside one of each, in a problem as people pose them
PROBLEM_TEXTS = 150  # texts to answer in such a problem, at most


def hold_out_tasks(clusters: Clusters, share: float, *, seed: int) -> tuple[str, ...]:
    """The tasks kept from the metrics' training: a share of every cluster that has tasks to spare.

    Tasks named alike up to a dot (`books.t2`, `books.t4`) come from one source and are kept together: what is chosen
    on them is meant for sources not seen before. Each source's lot is drawn from its name, so adding a task does not
    redraw the others'.
    """
    room = {number: _most_held_out(len(group), share) for number, group in enumerate(clusters)}
    sources: dict[str, list[tuple[str, int]]] = {}
    for name, cluster in zip(clusters.names, clusters.labels.tolist(), strict=True):
        sources.setdefault(name.partition(".")[0], []).append((name, cluster))
    held: list[str] = []
    for source in sorted(sources, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).digest()):
        taken = Counter(cluster for _, cluster in sources[source])
        if all(room[cluster] >= count for cluster, count in taken.items()):
            held += [name for name, _ in sources[source]]
            room = {cluster: left - taken[cluster] for cluster, left in room.items()}
    return tuple(sorted(held))


def _most_held_out(size: int, share: float) -> int:
    """How many tasks of a cluster can be spared."""
    if size < FEWEST_TO_PART or share == 0:
        return 0
    return min(max(1, round(share * size)), size - 1)


def choose_unlearned_metrics(bank: ReadBank, problems: Sequence["Drawn"]) -> list[Metric]:
    """The metrics that learn nothing from labels: the word vectors' own, and a lexical one weighted by the bank."""
    lexical = LexicalEncoder.from_bank(join([task.train.tokens for task in bank]))
    metrics = [
        SimilarityMetric("word-vectors", FROZEN, MeanEncoder(bank.vectors.table), PROTOTYPICAL, DEFAULT_TEMPERATURE),
        SimilarityMetric("letters", LEXICAL, lexical, PROTOTYPICAL, DEFAULT_TEMPERATURE),
    ]
    return [_with_best_temperature(metric, problems) for metric in metrics]


def choose_rules(metrics: Sequence[Metric], problems: Sequence["Drawn"], clusters: Clusters) -> Rules:
    """The rules of the mix that answer the held-out tasks' problems best.

    Taking the metric of its own cluster away makes a held-out task one that no cluster fits.
    """
    posed = [_pose(metrics, drawn) for drawn in problems]
    strangers: list[Problem] = []
    for drawn in problems:
        number = int(clusters.labels[clusters.names.index(drawn.task)])
        others = [metric for metric in metrics if metric.name not in (cluster_metric(number), linear_metric(number))]
        if len(others) < len(metrics):
            strangers.append(_pose(others, drawn))
    return tune_rules(posed, strangers)


def answer_likelihood(metrics: Sequence[Metric], problems: Sequence["Drawn"], rules: Rules) -> float:
    """The mean log-likelihood of the right answers to some problems, mixed by the rules."""
    return float(log_likelihoods([_pose(metrics, drawn) for drawn in problems], rules).mean())


def _pose(metrics: Sequence[Metric], drawn: "Drawn") -> Problem:
    shots, texts = drawn.shots, drawn.texts
    return pose_problem(
        metrics, shots.tokens, shots.labels, texts.tokens, answers=texts.labels, classes=drawn.classes
    )  # fmt: skip


class Drawn:
    """A few-shot problem drawn from a held-out task."""

    def __init__(self, task: ReadTask, *, shots: int, further: int = 0, rng: np.random.Generator) -> None:
        examples = Labelled(
            join([task.train.tokens, task.valid.tokens]), np.concatenate([task.train.labels, task.valid.labels])
        )
        chosen = [rng.permutation(np.flatnonzero(examples.labels == label)) for label in range(len(task.labels))]
        support = np.concatenate([rows[: max(1, min(shots, len(rows) - 1))] for rows in chosen])
        others = rng.permutation(np.setdiff1d(np.arange(len(examples)), support))
        more = min(further, len(others) // 2)  # half of them at least are left to be answered
        self.task, self.classes = task.name, task.labels
        self.shots = examples.take(np.concatenate([support, others[:more]]))
        self.texts = examples.take(others[more : more + PROBLEM_TEXTS])


def draw_problems(bank: ReadBank, held_out: Sequence[str], *, shots: int, seed: int) -> list[Drawn]:
    """Few-shot problems from every held-out task: with all the shots, with fewer, and as people pose them.

    People give one example of a rare label and many of a common one; the paper's intent targets are made so.
    """
    problems = []
    for name in held_out:
        task = bank[name]
        digest = hashlib.sha256(f"{seed} {task.fingerprint}".encode()).digest()
        rng = np.random.default_rng(list(digest))
        sizes = ((shots, 0), (max(1, shots - 2), 0), (1, FURTHER))
        problems += [Drawn(task, shots=size, further=further, rng=rng) for size, further in sizes]
    return [problem for problem in problems if len(problem.texts)]


def _with_best_temperature(metric: SimilarityMetric, problems: Sequence[Drawn]) -> Metric:
    """The temperature under which the right answers of the problems are likeliest."""
    if not problems:
        return metric
    logits = [_logits(metric, problem) for problem in problems]
    likelihoods = [
        np.mean([_log_likelihood(temperature * own, problem) for own, problem in zip(logits, problems, strict=True)])
        for temperature in TEMPERATURES
    ]
    return replace(metric, temperature=TEMPERATURES[int(np.argmax(likelihoods))])


def _logits(metric: SimilarityMetric, problem: Drawn) -> Floats:
    """What the temperature multiplies, up to a constant for each text: (texts, classes)."""
    coolest = min(TEMPERATURES)
    fitted = replace(metric, temperature=coolest).learn(problem.shots.tokens, problem.shots.labels, problem.classes)
    return np.log(fitted.chances(problem.texts.tokens)) / coolest


def _log_likelihood(logits: Floats, problem: Drawn) -> float:
    right = softmax(logits, axis=1)[np.arange(len(problem.texts)), problem.texts.labels]
    return float(np.log(np.maximum(right, 1e-12)).mean())
