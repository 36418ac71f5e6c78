"""What a model is compared with in the demonstration: answers without clusters, or without anything learned before.

A method is a function from a task to an answer for each of its test texts. It sees the shots and the texts; whoever
calls it strikes the test labels out first (`evaluation.targets.blind`).

    majority              the commonest label of the test texts, always: what knowing nothing but the balance gives
    single_task_network   baseline (1) of the paper: a convolution network trained on the shots
    train_one_metric      baselines (4) and (5): a matching or prototypical network on all tasks, 400 filters
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from manymetrics.encode.encoder import Features
from manymetrics.encode.settings import PROTOTYPICAL
from manymetrics.encode.vectors import WordVectors
from manymetrics.evaluation.targets import Method
from manymetrics.learn import Learning
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric, train_metrics
from manymetrics.values import Clusters, Floats, Task, Work
from manymetrics.weigh.comparison import Comparison
from manymetrics.weigh.fallback import NetworkFallback

SINGLE_METRIC_WIDTH = 400


def majority(task: Task) -> list[str]:
    """The commonest test label for every text."""
    labels, counts = np.unique(task.test.labels, return_counts=True)
    return [str(labels[counts.argmax()])] * len(task.test)


def single_task_network(words: WordVectors, *, seed: int = 0) -> Method:
    """A convolution network trained on each task's shots alone."""

    def answer(task: Task) -> list[str]:
        model = NetworkFallback(words, task.labelled_train, len(task.labels), seed=seed)
        texts = Features(task.test.texts)
        return likeliest(task, model.probabilities(Comparison(texts, texts, np.arange(len(texts)))))

    return answer


def everything_in_one(names: Sequence[str]) -> Clusters:
    """The clustering without clusters."""
    return Clusters(tuple(names), np.zeros(len(names), dtype=np.int64))


def train_one_metric(learning: Learning, work: Work, recipe: Recipe, *, held_out: Sequence[str],
                     objective: str = PROTOTYPICAL) -> Metric:  # fmt: skip
    """One metric for all tasks, with twice the filters."""
    wide = replace(recipe, width=SINGLE_METRIC_WIDTH, objective=objective)
    everything = everything_in_one(learning.material.bank.names)
    knobs = {**wide.metric_training(), "words": learning.words, "held_out": held_out, "seed": recipe.seed}
    return train_metrics(learning.material, everything, work, **knobs)[0]


def by_metric(metric: Metric) -> Method:
    """Answers by one metric alone."""

    def answer(task: Task) -> list[str]:
        shots = task.labelled_train
        fitted = metric.learn(Features(shots.texts), shots.labels, task.labels)
        return likeliest(task, fitted.probabilities(Features(task.test.texts)))

    return answer


def likeliest(task: Task, probabilities: Floats) -> list[str]:
    """The likeliest label of each text; probabilities (texts, classes)."""
    return [task.labels[place] for place in probabilities.argmax(axis=1)]
