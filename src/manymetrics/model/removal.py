"""A model without some of its metrics and without what it keeps of some tasks.

Metrics for tasks that share their labels are removed by the same rule as the others. Of a task are removed its places
in the clusters, the matrices and the routing; what remains is saved and loaded as any model.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np

from manymetrics.classifier import Predictor
from manymetrics.errors import InputError
from manymetrics.model.metric_model import MetricModel
from manymetrics.model.origin import Origin, describe_predictor
from manymetrics.specialize.metric import Metric
from manymetrics.values import Clusters
from manymetrics.weigh.assignment import ClusterAssigner

Rule = Callable[[Metric], bool]


def remove_parts(model: MetricModel, *, is_removed: Rule, tasks: Collection[str]) -> MetricModel:
    """The model without the metrics that the rule names, and without these tasks."""
    predictor = _without_metrics(model.predictor, is_removed)
    if predictor is None:
        raise InputError("No metric would be left of the model. Keep one at least.")
    parts = [_without_metrics(part, is_removed) for part in predictor.by_labels]
    origin, numbers = _without_tasks(model.origin, tasks)
    predictor = replace(
        predictor,
        metrics=tuple(_numbered_anew(metric, numbers) for metric in predictor.metrics),
        assigner=None if predictor.assigner is None else _assigner_without(predictor.assigner, tasks, numbers),
        by_labels=tuple(part for part in parts if part is not None and part.labels),
    )
    return MetricModel(predictor, replace(origin, **describe_predictor(predictor)))


def _without_metrics(predictor: Predictor, is_removed: Rule) -> Predictor | None:
    """What serves without some metrics; None where none is left."""
    metrics = tuple(metric for metric in predictor.metrics if not is_removed(metric))
    return replace(predictor, metrics=metrics) if metrics else None


def _without_tasks(origin: Origin, tasks: Collection[str]) -> tuple[Origin, dict[int, int]]:
    """The origin without these tasks, and the new number of each cluster that still has some."""
    indices = [index for index, name in enumerate(origin.clusters.names) if name not in tasks]
    names, both = tuple(origin.clusters.names[index] for index in indices), np.ix_(indices, indices)
    before, labels = np.unique(origin.clusters.labels[indices], return_inverse=True)
    pairs, solved = origin.pairs, origin.similarity
    reduced = replace(
        origin,
        clusters=Clusters(names, labels),
        transfer=replace(origin.transfer, names=names, scores=origin.transfer.scores[both]),
        pairs=replace(pairs, names=names, similar=pairs.similar[both], observed=pairs.observed[both]),
        similarity=replace(solved, names=names, low_rank=solved.low_rank[both], errors=solved.errors[both]),
        held_out=tuple(name for name in origin.held_out if name not in tasks),
    )
    return reduced, {number: index for index, number in enumerate(before.tolist())}


def _assigner_without(
    assigner: ClusterAssigner, tasks: Collection[str], numbers: dict[int, int]
) -> ClusterAssigner | None:
    """The routing without these tasks; None where no task is left."""
    left = assigner.without(tasks)
    if not left.tasks:
        return None
    clusters = np.array([numbers[number] for number in left.clusters.tolist()], dtype=left.clusters.dtype)
    return replace(left, clusters=clusters, count=len(numbers))


def _numbered_anew(metric: Any, numbers: dict[int, int]) -> Any:
    """The metric under the new number of its cluster."""
    return metric if metric.cluster is None else replace(metric, cluster=numbers.get(metric.cluster))
