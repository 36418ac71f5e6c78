"""A model and target tasks -> what it answers on each, beside what always answering the commonest label would give."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from manymetrics.classifier import DEFAULT
from manymetrics.collect import load_tasks
from manymetrics.errors import InputError
from manymetrics.evaluation.scoring import Answered, Estimate, calibration_error, means_over_tasks
from manymetrics.model import MetricModel, load_model
from manymetrics.values import Examples, Floats, Ints, Task, TaskBank
from manymetrics.values.notebook import html_table
from manymetrics.weigh import Route

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
    source: str = ""  # of the task
    route: Route | None = None  # which tasks of the bank it was taken for, and why


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """How a model does on several target tasks."""

    targets: tuple[TargetResult, ...]
    over_sources: bool = False  # whether intervals are over the sources of the tasks, too, or over their texts alone

    def __repr__(self) -> str:
        accuracies = [target.answered.accuracy for target in self.targets]
        return f"<Evaluation on {len(accuracies)} tasks: mean accuracy {np.mean(accuracies):.1%}>"

    def _repr_html_(self) -> str:
        head = ["task", "labels", "shots", "texts", "accuracy", "balanced accuracy"]
        rows = [
            [one.answered.task, one.classes, one.shots, len(one.answered.labels), f"{one.answered.accuracy:.1%}",
             f"{one.answered.balanced_accuracy:.1%}"]
            for one in self.targets
        ]  # fmt: skip
        return html_table(repr(self), head, rows)

    def mean(self, *, of_majority: bool = False) -> dict[str, Estimate]:
        """Accuracy, balanced accuracy and macro-F1, averaged over tasks."""
        answered = [target.majority if of_majority else target.answered for target in self.targets]
        sources = [target.source for target in self.targets] if self.over_sources else None
        return means_over_tasks(answered, sources=sources)

    def calibration_error(self) -> Estimate:
        """How far the probabilities of the answers, of all tasks together, are from the share of right ones."""
        right = np.concatenate([target.answered.answers == target.answered.labels for target in self.targets])
        return calibration_error(np.concatenate([target.confidences for target in self.targets]), right)

    def as_dict(self) -> dict[str, Any]:
        """Everything, to be written as JSON."""
        return {
            "format": 1,
            "intervals_over": "sources and texts" if self.over_sources else "texts",
            "mean": {name: vars(estimate) for name, estimate in self.mean().items()},
            "majority": {name: vars(estimate) for name, estimate in self.mean(of_majority=True).items()},
            "calibration_error": vars(self.calibration_error()),
            "targets": [
                {
                    "task": target.answered.task,
                    "source": target.source,
                    "labels": target.classes,
                    "shots": target.shots,
                    "texts": len(target.answered.labels),
                    **{name: getattr(target.answered, name) for name in ("accuracy", "balanced_accuracy", "macro_f1")},
                    "majority": target.majority.accuracy,
                    "seconds": target.answered.seconds,
                    "weights": target.weights,
                    "fallback": target.fallback,
                    "route": None if target.route is None else target.route.as_dict(),
                }
                for target in self.targets
            ],
        }


def evaluate(model: MetricModel | str | Path, targets: TaskBank | str | Path, *, mix: str = DEFAULT,
             adaptive: bool = True, label_names: bool = True) -> Evaluation:  # fmt: skip
    """Adapt the model to each target's train examples and score it on the target's test texts.

    Both can be given as folders; `choose_targets` says which tasks of a folder are its targets.
    """
    model, targets = as_model(model), as_targets(targets)
    require_tests(targets)
    results = []
    for task in targets:
        started = time.perf_counter()
        classifier = model.adapt(
            task.train.texts, task.train.labels, mix=mix, adaptive=adaptive, label_names=label_names
        )
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
                task.source,
                classifier.route_,
            )
        )
    return Evaluation(tuple(results))


def as_model(model: MetricModel | str | Path) -> MetricModel:
    """A model, or the one that is saved in a folder."""
    return load_model(model) if isinstance(model, str | Path) else model


def as_targets(targets: TaskBank | str | Path) -> TaskBank:
    """Target tasks, or those of a folder."""
    return choose_targets(targets) if isinstance(targets, str | Path) else targets


def choose_targets(folder: str | Path, *names: str) -> TaskBank:
    """The named tasks of a folder; else those it marks as targets; else, if it marks none as anything, all with tests.

    A name is that of a task, or the beginning of several up to a dot, a dash or an underscore.
    """
    bank = load_tasks(folder)
    if names or bank.roles:
        return bank.split_off(*names)[1]
    tested = bank.only([task.name for task in bank if len(task.test)])
    if not len(tested):
        raise InputError(f"{folder}: none of its {len(bank)} tasks has test texts. Add files <task>.test.tsv.")
    return tested


def adapted(model: MetricModel, *, mix: str = DEFAULT, adaptive: bool = True, names: bool = True) -> Method:
    """The method that adapts a model to each task's shots."""

    def answer(task: Task) -> list[str]:
        classifier = model.adapt(task.train.texts, task.train.labels, mix=mix, adaptive=adaptive, label_names=names)
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
