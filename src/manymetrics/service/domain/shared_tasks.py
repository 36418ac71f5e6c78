"""Tasks that clients opted in to share, and what may be published of a model that was learned from them.

A task is named by a hash of its classifier's id, and a client by a hash of the tenant's: neither names anybody. The
published model contains nothing that comes from too few clients: neither metrics, those for shared labels among them,
nor the tasks of a cluster, by which new tasks would be assigned to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import manymetrics as mm


@dataclass(frozen=True)
class SharedTask:
    """The labelled examples of a classifier whose tenant shares them."""

    id: str
    task: str
    client: str
    texts: list[str]
    labels: list[str]


def hidden_name(kind: str, name: str) -> str:
    """A name that does not reveal whose it is."""
    return f"{kind}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def bank_of(tasks: Iterable[Mapping[str, Any]], others: Iterable[mm.Task] = ()) -> mm.TaskBank:
    """A bank of shared tasks and of others that the operator has; the tasks of one client are one source."""
    shared = [
        mm.Task(task["task"], mm.Examples(tuple(task["texts"]), tuple(task["labels"])), source=task["client"])
        for task in tasks
    ]
    return mm.TaskBank((*others, *shared))


def clients_of(tasks: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The client of each shared task, by the name of the task."""
    return {task["task"]: task["client"] for task in tasks}


def require_clients(clients: Mapping[str, str], fewest: int) -> None:
    """Refuse to learn from too few clients."""
    count = len(set(clients.values()))
    if count < fewest:
        raise mm.InputError(
            f"The shared tasks are of {count} client{'s' * (count != 1)}, and at least {fewest} are needed. Wait until "
            "more have opted in."
        )


def published(
    model: mm.MetricModel, clients: Mapping[str, str], *, fewest: int
) -> tuple[mm.MetricModel, Sequence[str]]:
    """The model without what comes from too few clients, and the names of the metrics left out."""

    def is_private(tasks: Iterable[str]) -> bool:
        return 0 < len({clients[task] for task in tasks if task in clients}) < fewest

    removed = [metric.name for metric in model.metrics if is_private(metric.tasks)]
    for_labels = [metric for part in model.predictor.by_labels for metric in part.metrics]
    removed += [f"{metric.name} for shared labels" for metric in for_labels if is_private(metric.tasks)]
    tasks = {task for cluster in model.clusters if is_private(cluster) for task in cluster if task in clients}
    if not removed and not tasks:
        return model, ()
    return mm.model.remove_parts(model, is_removed=lambda metric: is_private(metric.tasks), tasks=tasks), removed
