"""A model and target tasks -> its predictions and scores on each, compared with baselines."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from manymetrics.collect import load_tasks
from manymetrics.engine import Progress
from manymetrics.engine.progress import each_with_progress, shown
from manymetrics.errors import InputError
from manymetrics.evaluation.baselines import Method, majority, regression_baselines
from manymetrics.evaluation.scoring import (
    SCORES,
    Answered,
    Estimate,
    calibration_error,
    means_over_tasks,
    paired_balanced_gain,
    paired_gain,
)
from manymetrics.model import MetricModel, load_model
from manymetrics.values import Floats, Ints, Task, TaskBank, html_table
from manymetrics.weigh import Assignment

STAGE = "evaluate"
OTHER_MODEL = "the other model"  # that a model is compared with


@dataclass(frozen=True, eq=False)
class TargetResult:
    """One target task: predictions of the model and of the baselines."""

    answered: Answered
    majority: Answered  # the most frequent test label
    classes: int
    shots: int
    weights: dict[str, float]
    fallback: str | None
    confidences: Floats  # (texts,): probability of each prediction
    source: str = ""  # of the task
    assignment: Assignment | None = None  # the cluster it was assigned to, and the reason
    baselines: dict[str, Answered] = field(default_factory=dict)  # logistic regressions, by name

    def as_dict(self) -> dict[str, Any]:
        """Everything but the predictions, to be written as JSON."""
        return {
            "task": self.answered.task,
            "source": self.source,
            "labels": self.classes,
            "shots": self.shots,
            "texts": len(self.answered.labels),
            **{score: getattr(self.answered, score) for score in SCORES},
            "majority": self.majority.accuracy,
            "baselines": {name: answered.accuracy for name, answered in self.baselines.items()},
            "seconds": self.answered.seconds,
            "weights": self.weights,
            "fallback": self.fallback,
            "assignment": None if self.assignment is None else self.assignment.as_dict(),
        }


@dataclass(frozen=True)
class BaselineResult:
    """A baseline on the same tasks: its mean scores, and the differences of the model to it."""

    method: str
    accuracy: Estimate
    balanced_accuracy: Estimate
    gain: Estimate  # in accuracy
    balanced_gain: Estimate  # in balanced accuracy

    def as_dict(self) -> dict[str, Any]:
        """Everything, to be written as JSON."""
        gains = {name: {**vars(gain), "verdict": gain.verdict} for name, gain in vars(self).items() if "gain" in name}
        return {**asdict(self), **gains}


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The results of a model on several target tasks. Intervals take a while for many tasks."""

    targets: tuple[TargetResult, ...]
    over_sources: bool = False  # whether intervals are over sources and texts, or over texts alone

    def __repr__(self) -> str:
        accuracy = np.mean([target.answered.accuracy for target in self.targets])
        return f"<Evaluation on {len(self.targets)} tasks: mean accuracy {accuracy:.1%}>"

    def _repr_html_(self) -> str:
        head = ["task", "labels", "shots", "texts", "accuracy", "balanced accuracy"]
        written = (target.as_dict() for target in self.targets)
        rows = [[*map(row.get, head[:4]), *(f"{row[score]:.1%}" for score in SCORES[:2])] for row in written]
        return html_table(repr(self), head, rows)

    @property
    def sources(self) -> list[str] | None:
        """The source of each target, if intervals are over sources."""
        return [target.source for target in self.targets] if self.over_sources else None

    def mean(self, *, of_majority: bool = False) -> dict[str, Estimate]:
        """Accuracy, balanced accuracy and macro-F1, averaged over tasks."""
        answered = [target.majority if of_majority else target.answered for target in self.targets]
        return means_over_tasks(answered, sources=self.sources)

    def baselines(self) -> tuple[BaselineResult, ...]:
        """Logistic regressions on the same tasks, and the differences of the model to each.

        The intervals of the differences are paired: over tasks, or their sources, and texts.
        """
        ours, results = [target.answered for target in self.targets], []
        for method in self.targets[0].baselines:
            theirs = [target.baselines[method] for target in self.targets]
            means = means_over_tasks(theirs, sources=self.sources)
            gains = [gain(ours, theirs, sources=self.sources) for gain in (paired_gain, paired_balanced_gain)]
            results.append(BaselineResult(method, means["accuracy"], means["balanced_accuracy"], *gains))
        return tuple(results)

    def calibration_error(self) -> Estimate:
        """The expected calibration error over the texts of all tasks."""
        right = np.concatenate([target.answered.correct for target in self.targets])
        return calibration_error(np.concatenate([target.confidences for target in self.targets]), right)

    def as_dict(self) -> dict[str, Any]:
        """Everything, to be written as JSON."""
        return {
            "format": 1,
            "intervals_over": "sources and texts" if self.over_sources else "texts",
            "mean": {name: vars(estimate) for name, estimate in self.mean().items()},
            "majority": {name: vars(estimate) for name, estimate in self.mean(of_majority=True).items()},
            "baselines": [baseline.as_dict() for baseline in self.baselines()],
            "calibration_error": vars(self.calibration_error()),
            "targets": [target.as_dict() for target in self.targets],
        }


def evaluate(
    model: MetricModel | str | Path,
    targets: TaskBank | str | Path,
    *,
    adaptive: bool = True,
    label_names: bool = True,
    steps: int | str = 0,
    report: Callable[[Progress], None] | None = None,
) -> Evaluation:
    """Adapt the model to each target's train examples and score it on the target's test texts.

    Both can be folders; `choose_targets` describes which tasks of a folder are its targets. `adaptive`, `label_names`
    and `steps` are those of `MetricModel.adapt`. As for `learn_metrics`, progress is passed to `report`, or displayed.
    """
    model, targets = load_both(model, targets)
    with shown(report) as on_progress:
        results = evaluate_each(model, targets, on_progress, adaptive=adaptive, label_names=label_names, steps=steps)
    return Evaluation(tuple(results))


def evaluate_each(model: MetricModel, targets: TaskBank, report: Callable[[Progress], None], *,
                  against: MetricModel | None = None, label_names: bool = True,
                  **options: Any) -> list[TargetResult]:  # fmt: skip
    """The results of the target tasks, one after the other; the options are those of `MetricModel.adapt`.

    A model to compare `against` is a further baseline.
    """

    def n_characters(task: Task) -> float:
        return float(sum(len(text) for part in (task.train, task.test) for text in part.texts))

    methods = regression_baselines(model.metrics, names=label_names)
    if against is not None:
        methods[OTHER_MODEL] = adapted_model(against, label_names=label_names, **options)
    tasks = each_with_progress(STAGE, targets.tasks, report, name=lambda task: task.name, size=n_characters)
    return [_evaluate_target(model, task, methods, label_names=label_names, **options) for task in tasks]


def _evaluate_target(model: MetricModel, task: Task, methods: dict[str, Method], **options: Any) -> TargetResult:
    started = time.perf_counter()
    classifier = model.adapt(task.train.texts, task.train.labels, **options)
    probabilities = classifier.predict_proba(task.test.texts)  # (texts, labels)
    answers = label_numbers(task, classifier.classes_[probabilities.argmax(axis=1)])
    seconds = time.perf_counter() - started
    return TargetResult(
        Answered(task.name, answers, label_numbers(task, task.test.labels), seconds),
        answer(majority, task),
        len(task.labels),
        len(task.train),
        classifier.weights_,
        classifier.fallback_,
        probabilities.max(axis=1),
        task.source,
        classifier.assignment_,
        {name: answer(method, task) for name, method in methods.items()},
    )


def adapted_model(model: MetricModel, **options: Any) -> Method:
    """The method that adapts a model to the train examples of each task."""

    def predict(task: Task) -> list[str]:
        classifier = model.adapt(task.train.texts, task.train.labels, **options)
        return [str(label) for label in classifier.predict(task.test.texts)]

    return predict


def load_both(model: MetricModel | str | Path, targets: TaskBank | str | Path) -> tuple[MetricModel, TaskBank]:
    """A model and target tasks with test texts, each loaded if it is a folder."""
    model = load_model(model) if isinstance(model, str | Path) else model
    targets = choose_targets(targets) if isinstance(targets, str | Path) else targets
    require_tests(targets)
    return model, targets


def choose_targets(folder: str | Path, *names: str) -> TaskBank:
    """The named tasks of a folder; else those marked as targets; else, if no task has a role, all with test texts.

    A name is that of a task, or the beginning of several up to a dot, a dash or an underscore.
    """
    bank = load_tasks(folder)
    if names or bank.roles:
        return bank.split_off(*names)[1]
    tested = bank.only([task.name for task in bank if len(task.test)])
    if not len(tested):
        raise InputError(f"{folder}: none of its {len(bank)} tasks has test texts. Add files <task>.test.tsv.")
    return tested


def answer(method: Method, task: Task) -> Answered:
    """The predictions of a method on the test texts of a task, with the seconds it took."""
    started = time.perf_counter()
    answers = label_numbers(task, method(task))
    return Answered(task.name, answers, label_numbers(task, task.test.labels), time.perf_counter() - started)


def require_tests(targets: TaskBank) -> None:
    """Refuse targets without test texts."""
    if not len(targets):
        raise InputError("There are no target tasks to evaluate. Mark some in manifest.json, or name them.")
    if untested := [task.name for task in targets if not len(task.test)]:
        raise InputError(
            f"The task {untested[0]!r} has no test examples. Add {untested[0]}.test.tsv to evaluate on it."
        )


def label_numbers(task: Task, labels: Sequence[str]) -> Ints:
    """Labels as indices into the labels of the task."""
    indices = {label: index for index, label in enumerate(task.labels)}
    return np.array([indices[str(label)] for label in labels], dtype=np.int64)
