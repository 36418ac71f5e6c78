"""RobustTC-FSL as the paper has it: the clusters' metrics alone, mixed by weights that gradient steps find (eqn:fsl).

What the paper tunes on meta-validation tasks is tuned there: the rate and the number of the steps, the number of
clusters, the accuracy on its shots below which a task is out of clusters. Each by accuracy, which is what it reports.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.problems import answer_problems, draw_problems
from manymetrics.encode.encoder import Features
from manymetrics.evaluation.baselines import likeliest
from manymetrics.evaluation.targets import Method, label_numbers
from manymetrics.learn import Learning, find_clusters, hold_out
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric, SharedLabelMetric, train_metrics
from manymetrics.values import Clusters, Floats, Ints, Task, TaskBank, Work
from manymetrics.weigh.mix import blend, descend_as_published, fit_mix_as_published

RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
STEPS = (1, 2, 3, 5, 10, 20, 40, 100)
PAPER_THRESHOLD = 0.2
THRESHOLDS = (0.0, 0.1, PAPER_THRESHOLD, 0.3, 0.4, 0.5)

Metrics = Callable[[Task], Sequence[Metric]]  # a task -> the metrics that may answer it


@dataclass(frozen=True)
class Descent:
    """How the weights of a task are found."""

    rate: float
    steps: int


UNTUNED = Descent(0.01, 10)  # where no task is held out to tune on


@dataclass(frozen=True, eq=False)
class Known:
    """What each metric answers on a task."""

    shots: Floats  # (shots, metrics, classes): NaN where a shot is its label's only one
    labels: Ints  # (shots,)
    texts: Floats  # (texts, metrics, classes)

    def answer(self, descent: Descent) -> Floats:
        """p(y | x) of eqn:fsl: (texts, classes)."""
        weights = fit_mix_as_published(self.shots, self.labels, rate=descent.rate, steps=descent.steps).weights
        return blend(weights, self.texts)

    @property
    def best_accuracy(self) -> float:
        """How many of the shots that can be left out the best metric answers; infinite where none can be."""
        known = np.isfinite(self.shots).all(axis=(1, 2))
        if not known.any():
            return float("inf")
        right = self.shots[known].argmax(axis=2) == self.labels[known][:, None]  # (shots, metrics)
        return float(right.mean(axis=0).max())


def ask(metrics: Sequence[Metric], task: Task) -> Known:
    """Every metric's answers on the shots and the texts of a task.

    A classifier met none of the shots and answers them as it answers texts; a metric that compares with examples
    answers each from the others.
    """
    shots = task.labelled_train
    features, texts = Features(shots.texts), Features(task.test.texts)
    on_shots, on_texts = [], []
    for metric in metrics:
        fitted = metric.learn(features, shots.labels, task.labels)
        classifies = isinstance(metric, SharedLabelMetric) and set(metric.labels) == set(task.labels)
        on_shots.append(fitted.probabilities(features) if classifies else fitted.leave_one_out())
        on_texts.append(fitted.probabilities(texts))
    return Known(np.stack(on_shots, axis=1), shots.labels, np.stack(on_texts, axis=1))


def mix_as_published(metrics: Sequence[Metric], descent: Descent, *, threshold: float = 0.0,
                     fallback: Method | None = None) -> Method:  # fmt: skip
    """Answers by eqn:fsl; with a fallback, a task whose shots no metric answers to `threshold` gets that instead."""

    def answer(task: Task) -> Sequence[str]:
        known = ask(metrics, task)
        if fallback is not None and known.best_accuracy < threshold:
            return fallback(task)
        return likeliest(task, known.answer(descent))

    return answer


def choose_descent(metrics: Metrics | Sequence[Metric], problems: TaskBank) -> tuple[Descent, float]:
    """The rate and the number of steps that answer the problems most accurately, and how accurately.

    Of equals the slowest and shortest.
    """
    accuracies = np.zeros((len(RATES), len(STEPS)))
    for task in problems:
        asked = metrics(task) if callable(metrics) else metrics
        known, answers = ask(asked, task), label_numbers(task, task.test.labels)
        for place, rate in enumerate(RATES):
            path, _ = descend_as_published(known.shots, known.labels, rate=rate, steps=max(STEPS))
            for column, steps in enumerate(STEPS):
                guesses = blend(path[min(steps, len(path) - 1)], known.texts).argmax(axis=1)
                accuracies[place, column] += np.mean(guesses == answers) / len(problems)
    row, best = divmod(int(accuracies.argmax()), len(STEPS))
    return Descent(RATES[row], STEPS[best]), float(accuracies.max())


def choose_threshold(metrics: Sequence[Metric], descent: Descent, fallback: Method, problems: TaskBank) -> float:
    """The accuracy on its shots below which a task had better fall back; of equals the lowest."""
    best = np.array([ask(metrics, task).best_accuracy for task in problems])  # (problems,)
    mixed, alone = (
        np.array([one.accuracy for one in answer_problems(method, problems)])
        for method in (mix_as_published(metrics, descent), fallback)
    )
    return max(THRESHOLDS, key=lambda threshold: float(np.where(best < threshold, alone, mixed).mean()))


def train_cluster_metrics(learning: Learning, work: Work, recipe: Recipe) -> tuple[list[Metric], tuple[str, ...]]:
    """The clusters' metrics, and the tasks that they were kept from."""
    return train_on(find_clusters(learning, work, recipe).clusters, learning, work, recipe)


def train_on(clusters: Clusters, learning: Learning, work: Work, recipe: Recipe
             ) -> tuple[list[Metric], tuple[str, ...]]:  # fmt: skip
    """A metric for each of some clusters, and the tasks that they were kept from."""
    held_out = hold_out(learning, recipe, clusters)
    knobs = {**recipe.metric_training(), "words": learning.words, "held_out": held_out, "seed": recipe.seed}
    return train_metrics(learning.material, clusters, work, **knobs), held_out


@dataclass(frozen=True, eq=False)
class Tried:
    """The metrics of a number of clusters, with the descent that mixes them best on held-out tasks."""

    metrics: Sequence[Metric]
    descent: Descent
    accuracy: float  # on the problems of these tasks


def try_clusters(learning: Learning, work: Work, recipe: Recipe, counts: Sequence[int]) -> dict[int, Tried]:
    """Several numbers of clusters, compared on the tasks held out under every one.

    Many clusters are small and have no task to spare: the largest numbers are left out until some task is held out
    under all others.
    """
    trained = {
        count: train_cluster_metrics(learning, work, replace(recipe, clusters=count)) for count in sorted(counts)
    }
    while trained and not (common := set.intersection(*(set(held_out) for _, held_out in trained.values()))):
        trained.popitem()
    if not trained:
        return {}
    problems = draw_problems(learning.material.bank, sorted(common), seed=recipe.seed)
    return {count: Tried(metrics, *choose_descent(metrics, problems)) for count, (metrics, _) in trained.items()}


def choose_clusters(tried: Mapping[int, Tried]) -> int | None:
    """*K* by trial: the number of clusters that answers most accurately, the first of equals; None of none."""
    return max(tried, key=lambda count: tried[count].accuracy, default=None)
