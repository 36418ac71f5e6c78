"""Methods that a model is compared with.

A method is a function from a task to a label for each of its test texts. It sees the train examples and the test texts.
"""

import warnings
from collections.abc import Callable, Sequence

import numpy as np

from manymetrics.encode.encoder import Encoder, normalize
from manymetrics.specialize import Metric
from manymetrics.specialize.metric import FROZEN, TUNED
from manymetrics.values import Examples, Task

Method = Callable[[Task], Sequence[str]]

REGRESSIONS = {FROZEN: "logistic regression on the frozen encoder", TUNED: "logistic regression on the shared metric"}
C = 10.0  # embeddings of length one need a weaker penalty than scikit-learn's default


def majority(task: Task) -> list[str]:
    """The most frequent test label for each text."""
    labels, counts = np.unique(task.test.labels, return_counts=True)
    return [str(labels[counts.argmax()])] * len(task.test)


def regression_baselines(metrics: Sequence[Metric], *, names: bool) -> dict[str, Method]:
    """Logistic regressions on the first frozen and the first shared encoder of a model, by name.

    On the frozen encoder it shows what the model adds to the encoder it is built on; on the shared one, what several
    metrics add to a single one.
    """
    encoders = {metric.kind: metric.encoder for metric in reversed(metrics)}
    kinds = [kind for kind in REGRESSIONS if kind in encoders]
    return {REGRESSIONS[kind]: frozen_regression(encoders[kind], balanced=True, names=names) for kind in kinds}


def frozen_regression(encoder: Encoder, *, balanced: bool, names: bool = False, C: float = C) -> Method:
    """Logistic regression on the embeddings of an encoder; with `names`, label names are examples too."""

    def predict(task: Task) -> list[str]:
        from sklearn.linear_model import LogisticRegression  # slow to import, and learning does not need it

        shots = shots_of(task, names=names)
        model = LogisticRegression(C=C, class_weight="balanced" if balanced else None, max_iter=1000)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The number of unique classes")  # a label may have one example
            model.fit(normalize(encoder.encode(shots.texts)), shots.numbers)
        return [task.labels[index] for index in model.predict(normalize(encoder.encode(task.test.texts)))]

    return predict


def shots_of(task: Task, *, names: bool) -> Examples:
    """The train examples; with `names`, the name of each label is one more example of it."""
    return Examples.join([task.train, Examples(task.label_names, task.labels)]) if names else task.train
