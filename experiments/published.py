"""RobustTC-FSL as the paper has it: the clusters' metrics alone, mixed by weights that gradient steps find (eqn:fsl).

The paper calls its baseline (6), trained by eqn:fsl, a convex combination, and a variation of its method without
clusters; so the weights are those of a convex combination. They begin even, and each step of exponentiated gradient
descent makes a metric weigh more the likelier it makes the shots than all do together:

    a_k  <-  a_k exp(rate * mean over shots of  p_k(y | x) / p(y | x)),  then scaled to sum to one

One row has weights that may be anything, as those of the package with `Recipe.paper()`.

What the paper tunes on past tasks is tuned there, by accuracy, which is what it reports: window and width of the
clusters' networks, the number of clusters, the rate and the number of the steps, the accuracy on its shots below which
a task is out of clusters. Each cluster's network answers few-shot problems of the tasks of its cluster that it was kept
from.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.special import softmax

from experiments.bench import Bench
from experiments.methods import by_metric, predicted_labels
from experiments.problems import answer_problems, draw_problems
from manymetrics.episodes import hold_out
from manymetrics.evaluation.baselines import Method
from manymetrics.evaluation.targets import label_numbers
from manymetrics.learn import find_clusters
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric, train_metrics
from manymetrics.values import Clusters, Floats, Ints, Task, TaskBank
from manymetrics.weigh.published import GradientSettings, MetricAnswers, answer_task, blend

RATES = (0.1, 0.3, 1.0, 3.0, 10.0)
STEPS = (1, 2, 5, 10, 20, 50, 100)
TINY = 1e-12  # a shot that all metrics find impossible is no more than this unlikely
PAPER_THRESHOLD = 0.2
WINDOWS, WIDTHS = (5, 3, 7), (200, 100, 400)  # of networks, the paper's first
THRESHOLDS = (0.0, 0.1, PAPER_THRESHOLD, 0.3, 0.4, 0.5)
UNTUNED_FREE = GradientSettings(0.01, 10)  # where no task is held out to tune on

Answer = Callable[[MetricAnswers], Floats]  # what the metrics of a task say -> its probabilities, (texts, classes)
Metrics = Callable[[Task], Sequence[Metric]]  # a task -> the metrics that may answer it
Network = dict[str, int]  # the shape of a cluster's network


@dataclass(frozen=True)
class Convex:
    """How the weights of a task are found."""

    rate: float
    steps: int

    def weigh(self, known: MetricAnswers) -> Floats:
        """The weights of the metrics, which sum to one: (metrics,)."""
        able = np.isfinite(known.shots).all(axis=(1, 2))
        truth = known.shots[able, :, known.labels[able]].astype(np.float64)  # (shots, metrics): p_k(y | x)
        logs = np.zeros(known.shots.shape[1])
        for _ in range(self.steps if len(truth) else 0):
            logs += self.rate * (truth / np.maximum(truth @ softmax(logs), TINY)[:, None]).mean(axis=0)
        return softmax(logs)  # type: ignore[no-any-return]

    def answer(self, known: MetricAnswers) -> Floats:
        """p(y | x) of eqn:fsl: (texts, classes)."""
        return blend(self.weigh(known), known.texts)


UNTUNED = Convex(1.0, 2)  # where no task is held out to tune on


def choose_convex(problems: Iterable[tuple[MetricAnswers, Ints]]) -> tuple[Convex, float]:
    """The rate and the number of steps that answer problems most accurately, and how accurately.

    A problem is what metrics answer and the right answers. Of equals the slowest and shortest.
    """
    asked = list(problems)

    def accuracy(gradient: Convex) -> float:
        right = [np.mean(gradient.answer(known).argmax(axis=1) == answers) for known, answers in asked]
        return float(np.mean(right)) if right else 0.0

    scores = {gradient: accuracy(gradient) for gradient in (Convex(rate, steps) for rate in RATES for steps in STEPS)}
    best = max(scores, key=lambda gradient: scores[gradient])
    return best, scores[best]


def ask(metrics: Sequence[Metric], task: Task) -> MetricAnswers:
    """Every metric's answers on the shots and the texts of a task."""
    return answer_task(metrics, task.train, task.test.texts)


def mix_as_published(metrics: Sequence[Metric], answer: Answer, *, threshold: float = 0.0,
                     fallback: Method | None = None) -> Method:  # fmt: skip
    """Answers by eqn:fsl; with a fallback, a task whose shots no metric answers to `threshold` gets that instead."""

    def method(task: Task) -> Sequence[str]:
        known = ask(metrics, task)
        if fallback is not None and known.best_accuracy < threshold:
            return fallback(task)
        return predicted_labels(task, answer(known))

    return method


def free(gradient: GradientSettings) -> Answer:
    """Answers by weights that may be anything."""
    return lambda known: known.probabilities(gradient)


def answers_of(metrics: Metrics | Sequence[Metric], problems: TaskBank) -> list[tuple[MetricAnswers, Ints]]:
    """What metrics say of problems, and the right answers: to choose rate and steps by."""
    return [
        (ask(metrics(task) if callable(metrics) else metrics, task), label_numbers(task, task.test.labels))
        for task in problems
    ]


@dataclass(frozen=True)
class Rule:
    """What falling back below an accuracy on the shots does to some problems."""

    threshold: float
    below: int  # problems that fall back
    mixed: float | None  # accuracy on these of the mix; None where there are none
    alone: float | None  # and of the fallback
    accuracy: float  # of the rule, on all problems


def try_thresholds(metrics: Sequence[Metric], answer: Answer, fallback: Method, problems: TaskBank) -> list[Rule]:
    """What each threshold would do."""
    best = np.array([ask(metrics, task).best_accuracy for task in problems])  # (problems,)
    mixed, alone = (
        np.array([one.accuracy for one in answer_problems(method, problems)])
        for method in (mix_as_published(metrics, answer), fallback)
    )
    rules = []
    for threshold in THRESHOLDS:
        below = best < threshold  # (problems,)
        there = [float(scores[below].mean()) if below.any() else None for scores in (mixed, alone)]
        accuracy = float(np.where(below, alone, mixed).mean())
        rules.append(Rule(threshold, int(below.sum()), there[0], there[1], accuracy))
    return rules


def choose_threshold(rules: Sequence[Rule]) -> float:
    """The accuracy on its shots below which a task had better fall back; of equals the lowest."""
    return max(rules, key=lambda rule: rule.accuracy).threshold


def train_on(clusters: Clusters, bench: Bench, recipe: Recipe, network: Network
             ) -> tuple[list[Metric], tuple[str, ...]]:  # fmt: skip
    """A metric for each of some clusters, and the tasks that they were kept from."""
    shared_data, seed = bench.shared_data, recipe.seed
    held_out = hold_out(shared_data.bank, recipe.held_out, seed=seed, clusters=clusters)
    shaped = replace(recipe.convolution, window=network["window"], width=network["width"])
    phases = replace(recipe, convolution=shaped).phases(shared_data)
    return train_metrics(phases, shared_data, clusters, bench.run_jobs, held_out=held_out, seed=seed), held_out


def train_cluster_metrics(bench: Bench, recipe: Recipe, network: Network
                          ) -> tuple[list[Metric], tuple[str, ...]]:  # fmt: skip
    """The metrics of the clusters found, and the tasks that they were kept from."""
    return train_on(find_clusters(bench.shared_data, bench.run_jobs, recipe).clusters, bench, recipe, network)


def choose_network(clusters: Clusters, bench: Bench, recipe: Recipe) -> Network:
    """The network that answers tasks held out from its cluster most accurately: first the window, then the width."""

    @cache
    def score(window: int, width: int) -> float:
        metrics, held_out = train_on(clusters, bench, recipe, {"window": window, "width": width})
        return _accuracy(metrics, held_out, clusters, bench, recipe)

    window = max(WINDOWS, key=lambda window: score(window, WIDTHS[0]))
    return {"window": window, "width": max(WIDTHS, key=lambda width: score(window, width))}


def _accuracy(metrics: Sequence[Metric], held_out: Sequence[str], clusters: Clusters, bench: Bench,
              recipe: Recipe) -> float:  # fmt: skip
    """On problems of the held-out tasks, each answered by the metric of its own cluster; 0 where there are none."""
    answered = []
    for number, group in enumerate(clusters):
        problems = draw_problems(bench.shared_data.bank, sorted(set(held_out) & set(group)), seed=recipe.seed)
        for metric in metrics:
            if metric.cluster == number and len(problems):
                answered += answer_problems(by_metric(metric), problems)
    return float(np.mean([one.accuracy for one in answered])) if answered else 0.0


@dataclass(frozen=True, eq=False)
class Tried:
    """The metrics of a number of clusters, with the descent that mixes them best on held-out tasks."""

    metrics: Sequence[Metric]
    gradient: Convex
    accuracy: float  # on the problems of these tasks


def try_clusters(bench: Bench, recipe: Recipe, counts: Sequence[int], network: Network) -> dict[int, Tried]:
    """Several numbers of clusters, compared on the tasks held out under every one.

    Many clusters are small and have no task to spare: the largest numbers are left out until some task is held out
    under all others.
    """
    found = {
        count: find_clusters(bench.shared_data, bench.run_jobs, replace(recipe, clusters=count)).clusters
        for count in sorted(counts)
    }
    held_out = {
        count: set(hold_out(bench.shared_data.bank, recipe.held_out, seed=recipe.seed, clusters=clusters))
        for count, clusters in found.items()
    }
    while held_out and not (common := set.intersection(*held_out.values())):
        held_out.popitem()
    if not held_out:
        return {}
    problems = draw_problems(bench.shared_data.bank, sorted(common), seed=recipe.seed)
    tried = {}
    for count in held_out:
        metrics, _ = train_on(found[count], bench, replace(recipe, clusters=count), network)
        tried[count] = Tried(metrics, *choose_convex(answers_of(metrics, problems)))
    return tried
