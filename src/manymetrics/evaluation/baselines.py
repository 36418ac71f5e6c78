"""What a model is compared with.

majority          the commonest label of the test texts, always: what knowing nothing but the balance gives
single-task CNN   baseline (1) of the paper: a convolution network trained on the shots
one metric        baseline (5): a prototypical network trained on all tasks at once, 400 filters
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from manymetrics.encode.reading import ReadBank
from manymetrics.encode.vectors import WordVectors
from manymetrics.evaluation.targets import Method
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric, train_metrics
from manymetrics.values import Clusters, Ints, Task, Work
from manymetrics.weigh.alone import ConvolutionAlone
from manymetrics.weigh.classifier import fit_metrics

SINGLE_METRIC_WIDTH = 400


def majority(task: Task) -> list[str]:
    """The commonest test label for every text."""
    labels, counts = np.unique(task.test.labels, return_counts=True)
    return [str(labels[counts.argmax()])] * len(task.test)


def single_task_network(vectors: WordVectors, *, seed: int = 0) -> Method:
    """A convolution network trained on each task's shots alone."""

    def answer(task: Task) -> list[str]:
        shots, labels = vectors.read(task.train.texts), _numbers(task)
        model = ConvolutionAlone(vectors.table, shots, labels, len(task.labels), seed=seed)
        return [task.labels[place] for place in model.chances(vectors.read(task.test.texts)).argmax(axis=1)]

    return answer


def train_one_metric(bank: ReadBank, work: Work, recipe: Recipe, *, held_out: Sequence[str]) -> Metric:
    """One metric for all tasks, with twice the filters."""
    everything = Clusters(bank.names, np.zeros(len(bank.names), dtype=np.int64))
    wide = replace(recipe, width=SINGLE_METRIC_WIDTH)
    return train_metrics(bank, everything, work, **wide.metric_training(), held_out=held_out, seed=recipe.seed)[0]


def by_metric(metric: Metric, vectors: WordVectors) -> Method:
    """Answers by one metric alone."""

    def answer(task: Task) -> list[str]:
        fitted = fit_metrics([metric], vectors.read(task.train.texts), _numbers(task), task.labels)[0]
        return [task.labels[place] for place in fitted.chances(vectors.read(task.test.texts)).argmax(axis=1)]

    return answer


def _numbers(task: Task) -> Ints:
    return np.array([task.labels.index(label) for label in task.train.labels], dtype=np.int64)
