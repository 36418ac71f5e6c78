"""A model that was learned earlier, together with the tasks of a bank: what `learn --from` gives.

The tasks of the bank are compared with a new task beside those of the model, and its clusters are added to the model's.
The shared metric is that of the model, trained on with the tasks of the bank where its held-out tasks gain. A bank of a
few tasks trains nothing: each of its tasks joins the cluster of the model that it is assigned to.
"""

from collections.abc import Sequence
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
from manymetrics.values import Clusters, Ints, ObservedPairs, TaskBank, TransferMatrix
from manymetrics.weigh.assignment import ClusterAssigner, assign_texts, describe_tasks

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
    assigner, base = start.predictor.assigner, start.predictor.base
    assigned = [assign_texts(assigner, base, task.train.texts, task.label_names) for task in bank]
    numbers = [0 if assignment is None else assignment.most_probable for assignment in assigned]
    clusters = np.array(numbers, dtype=np.int64)
    predictor = replace(start.predictor, assigner=_join_assigners(start, bank, bank.names, clusters))
    return _joined_model(start.origin, None, predictor, bank.names, clusters)


def shared_state(start: MetricModel, representation: Representation | None) -> Fitted | None:
    """The state of the model's shared metric, to train on from; None where the representation is another one."""
    shared = [metric for metric in start.predictor.metrics if metric.name == SHARED]
    return representation.state_of(shared[0].encoder) if shared and representation is not None else None


def join_models(start: MetricModel, learned: MetricModel, bank: TaskBank) -> MetricModel:
    """The metrics of both models; the clusters of the second have the numbers behind those of the first."""
    first, second, offset = start.predictor, learned.predictor, len(start.clusters)
    names, clusters = learned.clusters.names, learned.clusters.labels + offset
    shared_tasks = {metric.name: metric.tasks for metric in first.metrics if metric.name == SHARED}
    metrics = [_renumber(metric, offset) for metric in second.metrics]
    metrics = [replace(metric, tasks=(*shared_tasks.get(metric.name, ()), *metric.tasks)) for metric in metrics]
    taken = {metric.name for metric in metrics if metric.kind == FROZEN or metric.name == SHARED}
    metrics += [
        metric if metric.kind == FROZEN else replace(metric, name=f"{PREFIX}{metric.name}")
        for metric in first.metrics
        if metric.name not in taken
    ]
    known = {part.labels for part in second.by_labels}
    calibrated = second if len(learned.held_out) > len(start.held_out) else first
    predictor = replace(
        calibrated,
        metrics=tuple(metrics),
        assigner=_join_assigners(start, bank, names, clusters),
        by_labels=(*second.by_labels, *(part for part in first.by_labels if part.labels not in known)),
    )
    return _joined_model(start.origin, learned.origin, predictor, names, clusters)


def _renumber(metric: Metric, offset: int) -> Metric:
    return metric if metric.cluster is None else replace(metric, cluster=metric.cluster + offset)


def _join_assigners(start: MetricModel, bank: TaskBank, names: Sequence[str], clusters: Ints) -> ClusterAssigner | None:
    assigner = start.predictor.assigner
    if assigner is None:
        return None
    described = describe_tasks([bank[name] for name in names], clusters, start.predictor.base)
    return assigner.join(described)


def _joined_model(start: Origin, learned: Origin | None, predictor: Predictor, own_names: Sequence[str],
                  own_clusters: Ints) -> MetricModel:  # fmt: skip
    """The joined predictor, and matrices in which no pair of one task of each part is observed."""
    names = (*start.clusters.names, *own_names)
    unknown, alone = np.full((len(own_names),) * 2, np.nan), np.eye(len(own_names), dtype=bool)
    scores = unknown if learned is None else learned.transfer.scores
    similar, observed = (alone, alone) if learned is None else (learned.pairs.similar, learned.pairs.observed)
    low_rank, errors = (
        np.zeros(unknown.shape) if learned is None else getattr(learned.similarity, side)
        for side in ("low_rank", "errors")
    )
    origin = replace(
        start if learned is None else learned,
        clusters=Clusters(names, np.concatenate([start.clusters.labels, own_clusters])),
        transfer=TransferMatrix(names, _blocks(start.transfer.scores, scores, np.nan), start.transfer.score),
        pairs=ObservedPairs(
            names, _blocks(start.pairs.similar, similar, False), _blocks(start.pairs.observed, observed, False)
        ),
        similarity=replace(
            start.similarity,
            names=names,
            low_rank=_blocks(start.similarity.low_rank, low_rank, 0.0),
            errors=_blocks(start.similarity.errors, errors, 0.0),
        ),
        held_out=(*start.held_out, *(() if learned is None else learned.held_out)),
        **describe_predictor(predictor),
    )
    return MetricModel(predictor, origin)


def _blocks(first: Any, second: Any, between: Any) -> Any:
    """Two square matrices on the diagonal of one: (n, n)."""
    n, total = len(first), len(first) + len(second)
    joined = np.full((total, total), between, dtype=first.dtype)
    joined[:n, :n], joined[n:, n:] = first, second
    return joined
