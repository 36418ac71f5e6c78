"""Methods of the experiments on a metric or a model, and their answers to target tasks.

A method is a function from a task to a label for each of its test texts. It sees the train examples and the test texts;
the caller removes the test labels first (`blind`).
"""

from dataclasses import replace

from manymetrics.encode.encoder import EmbeddedTexts, Encoder
from manymetrics.encode.settings import PROTOTYPICAL
from manymetrics.evaluation.baselines import Method, shots_of
from manymetrics.evaluation.scoring import Answered
from manymetrics.evaluation.targets import adapted_model, answer, require_tests
from manymetrics.model import MetricModel
from manymetrics.specialize import Metric
from manymetrics.specialize.metric import FROZEN
from manymetrics.values import Examples, Floats, Task, TaskBank

FROZEN_TEMPERATURE = 10.0  # changes no predicted label


def by_metric(metric: Metric, *, names: bool = False) -> Method:
    """Predict with one metric alone."""

    def predict(task: Task) -> list[str]:
        shots = shots_of(task, names=names)
        fitted = metric.learn(EmbeddedTexts(shots.texts), shots.numbers, task.labels)
        return predicted_labels(task, fitted.probabilities(EmbeddedTexts(task.test.texts)))

    return predict


def frozen_prototypes(encoder: Encoder, *, names: bool = False) -> Method:
    """The label with the nearest prototype, under a frozen encoder."""
    return by_metric(Metric("frozen", FROZEN, encoder, PROTOTYPICAL, FROZEN_TEMPERATURE), names=names)


def predicted_labels(task: Task, probabilities: Floats) -> list[str]:
    """The most probable label of each text, of equal ones the first; probabilities (texts, classes)."""
    return [task.labels[index] for index in probabilities.argmax(axis=1)]


def adapted(model: MetricModel, *, adaptive: bool = True, names: bool = True, steps: int | str = 0) -> Method:
    """The method that adapts a model to each task."""
    return adapted_model(model, adaptive=adaptive, label_names=names, steps=steps)


def answer_targets(method: Method, targets: TaskBank) -> list[Answered]:
    """The predictions of a method on the test texts of each target task."""
    require_tests(targets)
    return [answer(method, task) for task in targets]


def blind(targets: TaskBank) -> TaskBank:
    """The same tasks, each test label replaced by the task's first label, so that no method can use test labels."""
    tasks = (replace(task, test=Examples(task.test.texts, (task.labels[0],) * len(task.test))) for task in targets)
    return TaskBank(tuple(tasks), targets.roles)
