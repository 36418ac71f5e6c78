"""A model together with the tasks of a bank, as `learn --from` gives it, and a model without some metrics and tasks.

The tasks of the bank are compared with a new task beside those of the model, and its clusters are added to the model's.
The shared metric is that of the model, trained on with the tasks of the bank where its held-out tasks gain. A bank of a
few tasks trains nothing: each of its tasks joins the cluster of the model that it is assigned to.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from manymetrics.classifier import Predictor
from manymetrics.encode.encoder import Encoder
from manymetrics.encode.representation import Fitted, Representation
from manymetrics.errors import InputError, NotEnoughExamples
from manymetrics.model.metric_model import MetricModel
from manymetrics.model.origin import Origin, describe_predictor
from manymetrics.specialize.cluster_metrics import SHARED
from manymetrics.specialize.metric import FROZEN, Metric
from manymetrics.values import Clusters, Ints, TaskBank
from manymetrics.weigh.assignment import describe_tasks

MIN_OWN_TASKS = 8  # of a bank that trains metrics of its own
PREFIX = "start-"  # of the names of metrics that come from the model


def check_start(start: MetricModel, bank: TaskBank, base: Encoder) -> None:
    """Refuse a model that the tasks of a bank cannot be joined with, and a bank without tasks."""
    if not len(bank):
        raise NotEnoughExamples("Found no task to learn from. Give at least one that is not a target.")
    if start.predictor.gradient is not None or start.predictor.assigner is None:
        raise InputError(
            "This model cannot be learned from: it does not assign tasks to clusters. "
            "Start from a model of the recipe default or tuned with two clusters at least."
        )
    if start.predictor.base.fingerprint != base.fingerprint:
        raise InputError("The model to start from has another encoder. Learn with the encoder of that model.")
    if common := sorted(set(bank.names) & set(start.clusters.names)):
        raise InputError(f"{common[0]!r} is also a task of the model to start from. Rename it in the bank.")


def add_tasks(start: MetricModel, bank: TaskBank) -> MetricModel:
    """The model with the tasks of a small bank in its clusters; nothing is trained."""
    assigner, base, numbers = start.predictor.assigner, start.predictor.base, list[int]()
    for task in bank:
        assignment = assigner.assign(base, task.train.texts, task.label_names) if assigner else None
        numbers.append(assignment.most_probable if assignment else 0)
    alone, zero = np.eye(len(bank), dtype=bool), np.zeros((len(bank), len(bank)))
    matrices = (np.full_like(zero, np.nan), alone, alone, zero, zero)
    return _join(start, start.predictor, start.origin, bank, clusters=np.array(numbers), matrices=matrices)


def shared_state(start: MetricModel, representation: Representation | None) -> Fitted | None:
    """The state of the model's shared metric, to train on from it; None where the representation is another one."""
    shared = [metric for metric in start.metrics if metric.name == SHARED]
    return representation.state_of(shared[0].encoder) if shared and representation is not None else None


def join_models(start: MetricModel, learned: MetricModel, bank: TaskBank) -> MetricModel:
    """The metrics of both models; the clusters of the second have the numbers behind those of the first."""
    first, second, offset = start.predictor, learned.predictor, len(start.clusters)
    shared_tasks = {metric.name: metric.tasks for metric in first.metrics if metric.name == SHARED}
    numbers = {number: number + offset for number in range(len(learned.clusters))}
    metrics = [
        replace(_renumber(metric, numbers), tasks=(*shared_tasks.get(metric.name, ()), *metric.tasks))
        for metric in second.metrics
    ]
    taken = {metric.name for metric in metrics if metric.kind == FROZEN or metric.name == SHARED}
    metrics += [
        metric if metric.kind == FROZEN else replace(metric, name=f"{PREFIX}{metric.name}")
        for metric in first.metrics
        if metric.name not in taken
    ]
    known = {part.labels for part in second.by_labels}
    by_labels = (*second.by_labels, *(part for part in first.by_labels if part.labels not in known))
    calibrated = second if len(learned.held_out) > len(start.held_out) else first
    predictor = replace(calibrated, metrics=tuple(metrics), by_labels=by_labels, assigner=None)
    origin = replace(
        learned.origin,
        transfer=start.transfer,
        similarity=start.similarity,
        held_out=(*start.held_out, *learned.held_out),
    )
    tasks, clusters = bank.only(learned.clusters.names), learned.clusters.labels + offset
    return _join(start, predictor, origin, tasks, clusters=clusters, matrices=_matrices(learned.origin))


def _join(start: MetricModel, predictor: Predictor, origin: Origin, bank: TaskBank, *, clusters: Ints,
          matrices: Iterable[Any]) -> MetricModel:  # fmt: skip
    """The model with the tasks of a bank; no pair of one task of each part is observed."""
    if start.predictor.assigner is not None:
        described = describe_tasks(list(bank), clusters, start.predictor.base)
        predictor = replace(predictor, assigner=start.predictor.assigner.join(described))
    names = (*start.clusters.names, *bank.names)
    fills = (np.nan, False, False, 0.0, 0.0)
    blocks = map(_blocks, _matrices(start.origin), matrices, fills)
    origin = _with_tasks(origin, names, np.concatenate([start.clusters.labels, clusters]), blocks)
    return MetricModel(predictor, replace(origin, **describe_predictor(predictor)))


def _matrices(origin: Origin) -> tuple[Any, ...]:
    pairs, similarity = origin.pairs, origin.similarity
    return origin.transfer.scores, pairs.similar, pairs.observed, similarity.low_rank, similarity.errors


def _with_tasks(origin: Origin, names: tuple[str, ...], clusters: Ints, matrices: Iterable[Any]) -> Origin:
    """The origin with other tasks and their matrices."""
    scores, similar, observed, low_rank, errors = matrices
    return replace(
        origin,
        clusters=Clusters(names, clusters),
        transfer=replace(origin.transfer, names=names, scores=scores),
        pairs=replace(origin.pairs, names=names, similar=similar, observed=observed),
        similarity=replace(origin.similarity, names=names, low_rank=low_rank, errors=errors),
    )


def _blocks(first: Any, second: Any, between: Any) -> Any:
    """Two square matrices on the diagonal of one: (n, n)."""
    n, total = len(first), len(first) + len(second)
    joined = np.full((total, total), between, dtype=first.dtype)
    joined[:n, :n], joined[n:, n:] = first, second
    return joined


def _renumber(metric: Metric, numbers: dict[int, int]) -> Metric:
    """The metric with the new number of its cluster; None where the cluster has none."""
    return metric if metric.cluster is None else replace(metric, cluster=numbers.get(metric.cluster))


def remove_parts(model: MetricModel, *, is_removed: Callable[[Metric], bool], tasks: Collection[str]) -> MetricModel:
    """The model without the metrics that the rule names, and without these tasks.

    Metrics for tasks that share their labels are removed by the same rule as the others. Of a task are removed its
    places in the clusters, the matrices and the assignment.
    """
    predictor, origin = model.predictor, model.origin
    if all(map(is_removed, predictor.metrics)):
        raise InputError("No metric would be left of the model. Keep one at least.")
    parts = [
        replace(part, metrics=left)
        for part in (predictor, *predictor.by_labels)
        if (left := tuple(metric for metric in part.metrics if not is_removed(metric)))
    ]
    rows = [row for row, name in enumerate(origin.clusters.names) if name not in tasks]
    remaining, clusters = np.unique(origin.clusters.labels[rows], return_inverse=True)
    numbers = {number: index for index, number in enumerate(remaining.tolist())}
    assigner = None if predictor.assigner is None else predictor.assigner.without(tasks)
    if assigner is not None:
        renumbered = np.array([numbers[number] for number in assigner.clusters.tolist()], dtype=assigner.clusters.dtype)
        assigner = replace(assigner, clusters=renumbered, count=len(numbers)) if assigner.tasks else None
    metrics = tuple(_renumber(metric, numbers) for metric in parts[0].metrics)
    by_labels = tuple(part for part in parts[1:] if part.labels)
    predictor = replace(predictor, metrics=metrics, assigner=assigner, by_labels=by_labels)
    names = tuple(origin.clusters.names[row] for row in rows)
    origin = _with_tasks(origin, names, clusters, (matrix[np.ix_(rows, rows)] for matrix in _matrices(origin)))
    held_out = tuple(name for name in origin.held_out if name not in tasks)
    return MetricModel(predictor, replace(origin, held_out=held_out, **describe_predictor(predictor)))
