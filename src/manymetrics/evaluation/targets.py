"""A model and target tasks -> what it answers on each, beside what always answering the commonest label would give."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from manymetrics.classifier import DEFAULT
from manymetrics.errors import InputError
from manymetrics.evaluation.scope import calibration_error
from manymetrics.evaluation.scoring import Answered, Estimate, mean_over_tasks
from manymetrics.measure.scores import accuracy, balanced_accuracy, macro_f1
from manymetrics.model import MetricModel
from manymetrics.values import Examples, Floats, Ints, Task, TaskBank

Method = Callable[[Task], Sequence[str]]  # a task -> an answer for each of its test texts


@dataclass(frozen=True, eq=False)
class TargetResult:
    """One target task: how it was answered, with which weights, and what the commonest label would have scored."""

    answered: Answered
    majority: Answered
    classes: int
    shots: int
    weights: dict[str, float]
    fallback: str | None
    confidences: Floats  # (texts,): the probability of each answer


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How a model does on several target tasks."""

    targets: tuple[TargetResult, ...]

    def mean(self, *, of_majority: bool = False) -> dict[str, Estimate]:
        """Accuracy, balanced accuracy and macro-F1, averaged over tasks."""
        answered = [target.majority if of_majority else target.answered for target in self.targets]
        return {
            "accuracy": mean_over_tasks(answered, accuracy),
            "balanced_accuracy": mean_over_tasks(answered, balanced_accuracy),
            "macro_f1": mean_over_tasks(answered, macro_f1),
        }

    def calibration_error(self) -> Estimate:
        """How far the probabilities of the answers, of all tasks together, are from the share of right ones."""
        right = np.concatenate([target.answered.answers == target.answered.labels for target in self.targets])
        return calibration_error(np.concatenate([target.confidences for target in self.targets]), right)

    def as_dict(self) -> dict[str, Any]:
        """Everything, to be written as JSON."""
        return {
            "format": 1,
            "mean": {name: vars(estimate) for name, estimate in self.mean().items()},
            "majority": {name: vars(estimate) for name, estimate in self.mean(of_majority=True).items()},
            "calibration_error": vars(self.calibration_error()),
            "targets": [
                {
                    "task": target.answered.task,
                    "labels": target.classes,
                    "shots": target.shots,
                    "texts": len(target.answered.labels),
                    **{name: getattr(target.answered, name) for name in ("accuracy", "balanced_accuracy", "macro_f1")},
                    "majority": target.majority.accuracy,
                    "seconds": target.answered.seconds,
                    "weights": target.weights,
                    "fallback": target.fallback,
                }
                for target in self.targets
            ],
        }


def evaluate(model: MetricModel, targets: TaskBank, *, mix: str = DEFAULT, adaptive: bool = True) -> Evaluation:
    """Adapt the model to each target's train examples and score it on the target's test texts."""
    require_tests(targets)
    results = []
    for task in targets:
        started = time.perf_counter()
        classifier = model.adapt(task.train.texts, task.train.labels, mix=mix, adaptive=adaptive)
        probabilities = classifier.predict_proba(task.test.texts)  # (texts, labels)
        answers = label_numbers(task, classifier.classes_[probabilities.argmax(axis=1)])
        truth = label_numbers(task, task.test.labels)
        answered = Answered(task.name, answers, truth, time.perf_counter() - started)
        majority = Answered(task.name, np.full(len(truth), np.bincount(truth).argmax()), truth)
        results.append(
            TargetResult(
                answered,
                majority,
                len(task.labels),
                len(task.train),
                classifier.weights_,
                classifier.fallback_,
                probabilities.max(axis=1),
            )
        )
    return Evaluation(tuple(results))


def adapted(model: MetricModel, *, mix: str, adaptive: bool) -> Method:
    """The method that adapts a model to each task's shots."""

    def answer(task: Task) -> list[str]:
        classifier = model.adapt(task.train.texts, task.train.labels, mix=mix, adaptive=adaptive)
        return [str(label) for label in classifier.predict(task.test.texts)]

    return answer


def answer_targets(method: Method, targets: TaskBank) -> list[Answered]:
    """What any method answers on each target task's test texts, with the seconds it took."""
    require_tests(targets)
    answered = []
    for task in targets:
        started = time.perf_counter()
        answers = label_numbers(task, method(task))
        answered.append(
            Answered(task.name, answers, label_numbers(task, task.test.labels), time.perf_counter() - started)
        )
    return answered


def blind(targets: TaskBank) -> TaskBank:
    """The same tasks with their test labels struck out: each is replaced by the task's first label.

    What answers such tasks cannot have looked at the right answers.
    """
    struck = (
        replace(task, test=Examples(task.test.texts, (task.labels[0],) * len(task.test.texts))) for task in targets
    )
    return TaskBank(tuple(struck), targets.roles)


def require_tests(targets: TaskBank) -> None:
    """Targets without test texts cannot be evaluated."""
    if not len(targets):
        raise InputError("There are no target tasks to evaluate. Mark some in manifest.json, or name them.")
    for task in targets:
        if not len(task.test):
            raise InputError(
                f"The task {task.name!r} has no test examples. Add {task.name}.test.tsv to evaluate on it."
            )


def label_numbers(task: Task, labels: Sequence[str]) -> Ints:
    """Labels as places among the task's labels."""
    places = {label: place for place, label in enumerate(task.labels)}
    return np.array([places[str(label)] for label in labels], dtype=np.int64)
