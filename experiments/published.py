"""RobustTC-FSL as the paper has it: the clusters' metrics alone, mixed by weights that gradient steps find (eqn:fsl).

The weights are those of a convex combination (`convex`); one row has weights that may be anything, as those of the
package with `Recipe.paper()`. How a task is answered from what its metrics say is a function here, so that both go the
same way.

What the paper tunes on past tasks is tuned there: the networks of the clusters (`networks`), their number, the rate and
the number of the steps, as the package does it (`manymetrics.weigh.published`), the accuracy on its shots below which a
task is out of clusters. Each by accuracy, which is what it reports.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.convex import Convex, choose_convex
from experiments.methods import predicted_labels
from experiments.networks import Network, train_on
from experiments.problems import answer_problems, draw_problems
from manymetrics.episodes import hold_out
from manymetrics.evaluation.baselines import Method
from manymetrics.evaluation.targets import label_numbers
from manymetrics.learn import find_clusters
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric
from manymetrics.values import Floats, Ints, RunJobs, SharedData, Task, TaskBank
from manymetrics.weigh.published import GradientSettings, MetricAnswers, answer_task

PAPER_THRESHOLD = 0.2
THRESHOLDS = (0.0, 0.1, PAPER_THRESHOLD, 0.3, 0.4, 0.5)
UNTUNED_FREE = GradientSettings(0.01, 10)  # where no task is held out to tune on

Answer = Callable[[MetricAnswers], Floats]  # what the metrics of a task say -> its probabilities, (texts, classes)
Metrics = Callable[[Task], Sequence[Metric]]  # a task -> the metrics that may answer it


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


def said(metrics: Metrics | Sequence[Metric], problems: TaskBank) -> list[tuple[MetricAnswers, Ints]]:
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


def train_cluster_metrics(shared_data: SharedData, run_jobs: RunJobs, recipe: Recipe, network: Network
                          ) -> tuple[list[Metric], tuple[str, ...]]:  # fmt: skip
    """The clusters' metrics, and the tasks that they were kept from."""
    return train_on(find_clusters(shared_data, run_jobs, recipe).clusters, shared_data, run_jobs, recipe, network)


@dataclass(frozen=True, eq=False)
class Tried:
    """The metrics of a number of clusters, with the descent that mixes them best on held-out tasks."""

    metrics: Sequence[Metric]
    gradient: Convex
    accuracy: float  # on the problems of these tasks


def try_clusters(shared_data: SharedData, run_jobs: RunJobs, recipe: Recipe, counts: Sequence[int], network: Network
                 ) -> dict[int, Tried]:  # fmt: skip
    """Several numbers of clusters, compared on the tasks held out under every one.

    Many clusters are small and have no task to spare: the largest numbers are left out until some task is held out
    under all others.
    """
    found = {
        count: find_clusters(shared_data, run_jobs, replace(recipe, clusters=count)).clusters
        for count in sorted(counts)
    }
    held_out = {
        count: set(hold_out(shared_data.bank, recipe.held_out, seed=recipe.seed, clusters=clusters))
        for count, clusters in found.items()
    }
    while held_out and not (common := set.intersection(*held_out.values())):
        held_out.popitem()
    if not held_out:
        return {}
    problems = draw_problems(shared_data.bank, sorted(common), seed=recipe.seed)
    tried = {}
    for count in held_out:
        metrics, _ = train_on(found[count], shared_data, run_jobs, replace(recipe, clusters=count), network)
        tried[count] = Tried(metrics, *choose_convex(said(metrics, problems)))
    return tried


def choose_clusters(tried: Mapping[int, Tried]) -> int | None:
    """*K* by trial: the number of clusters that answers most accurately, the first of equals; None of none."""
    return max(tried, key=lambda count: tried[count].accuracy, default=None)
