"""What a model is compared with in the demonstration: answers without clusters, or without anything learned before.

A method is a function from a task to an answer for each of its test texts. It sees the shots and the texts; whoever
calls it strikes the test labels out first (`evaluation.targets.blind`).

    majority              the commonest label of the test texts, always: what knowing nothing but the balance gives
    frozen_prototypes     an encoder as it is, and the label whose mean shot is nearest
    frozen_regression     an encoder as it is, and scikit-learn's logistic regression: three lines
    single_task_network   baseline (1) of the paper: a convolution network trained on the shots
    train_one_metric      baselines (4) and (5): a matching or prototypical network on all tasks, 400 filters
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from manymetrics.encode.encoder import Encoder, Features, unit_rows
from manymetrics.encode.settings import PROTOTYPICAL
from manymetrics.encode.vectors import WordVectors
from manymetrics.evaluation.targets import Method
from manymetrics.recipe import Recipe
from manymetrics.specialize import Metric, SimilarityMetric, train_metrics
from manymetrics.specialize.metric import FROZEN
from manymetrics.start import Learning
from manymetrics.values import Clusters, Floats, LabelledTexts, Task, Work
from manymetrics.weigh.comparison import Comparison
from manymetrics.weigh.fallback import FEW_EXAMPLES, NetworkFallback

SINGLE_METRIC_WIDTH = 400
FROZEN_TEMPERATURE = 10.0  # decides no answer


def majority(task: Task) -> list[str]:
    """The commonest test label for every text."""
    labels, counts = np.unique(task.test.labels, return_counts=True)
    return [str(labels[counts.argmax()])] * len(task.test)


def single_task_network(words: WordVectors, *, steps: int = FEW_EXAMPLES.steps, seed: int = 0) -> Method:
    """A convolution network trained on each task's shots alone."""

    def answer(task: Task) -> list[str]:
        model = NetworkFallback(words, task.labelled_train, len(task.labels), steps=steps, seed=seed)
        texts = Features(task.test.texts)
        return likeliest(task, model.probabilities(Comparison(texts, texts, np.arange(len(texts)), len(texts))))

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


def frozen_prototypes(encoder: Encoder, *, names: bool = False) -> Method:
    """The label whose mean shot is nearest, under an encoder as it is."""
    return by_metric(SimilarityMetric("frozen", FROZEN, encoder, PROTOTYPICAL, FROZEN_TEMPERATURE), names=names)


def frozen_regression(encoder: Encoder, *, balanced: bool, names: bool = False, C: float = 10.0) -> Method:
    """Logistic regression on the rows of an encoder as it is; rows of length one bear less penalty than the default."""

    def answer(task: Task) -> list[str]:
        from sklearn.linear_model import LogisticRegression  # slow to load, and evaluating a model does not need it

        shots = shots_of(task, names=names)
        model = LogisticRegression(C=C, class_weight="balanced" if balanced else None, max_iter=1000)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The number of unique classes")  # as many as there are labels
            model.fit(unit_rows(encoder.encode(shots.texts)), shots.labels)
        return [task.labels[place] for place in model.predict(unit_rows(encoder.encode(task.test.texts)))]

    return answer


def shots_of(task: Task, *, names: bool) -> LabelledTexts:
    """The train examples; with `names`, the name of each label is one more example of it."""
    if not names:
        return task.labelled_train
    return LabelledTexts.join([task.labelled_train, LabelledTexts(task.label_names, np.arange(len(task.labels)))])


def by_metric(metric: Metric, *, names: bool = False) -> Method:
    """Answers by one metric alone."""

    def answer(task: Task) -> list[str]:
        shots = shots_of(task, names=names)
        fitted = metric.learn(Features(shots.texts), shots.labels, task.labels)
        return likeliest(task, fitted.probabilities(Features(task.test.texts)))

    return answer


def likeliest(task: Task, probabilities: Floats) -> list[str]:
    """The likeliest label of each text; probabilities (texts, classes)."""
    return [task.labels[place] for place in probabilities.argmax(axis=1)]
