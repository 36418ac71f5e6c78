"""Tasks that clients opted in to share, and what may be published of a model that was learned from them.

A task is known by a hash of its classifier's id, and a client by a hash of the tenant's: neither names anybody. A
metric that was learned from the tasks of one or two clients only is left out of the published model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import manymetrics as mm


@dataclass(frozen=True)
class SharedTask:
    """The labelled examples of a classifier whose tenant lets others profit from them."""

    id: str
    task: str
    client: str
    texts: list[str]
    labels: list[str]


def hidden(kind: str, name: str) -> str:
    """A name that does not say whose it is."""
    return f"{kind}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def bank_of(tasks: Iterable[Mapping[str, Any]], others: Iterable[mm.Task] = ()) -> mm.TaskBank:
    """A bank of shared tasks and of others that the operator has; the tasks of one client are one source."""
    shared = [
        mm.Task(one["task"], mm.Examples(mm.Texts(one["texts"]), tuple(one["labels"])), source=one["client"])
        for one in tasks
    ]
    return mm.TaskBank((*others, *shared))


def clients_of(tasks: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The client of each shared task, by the name of the task."""
    return {one["task"]: one["client"] for one in tasks}


def require_clients(clients: Mapping[str, str], fewest: int) -> None:
    """Refuse to learn from so few clients that what is learned would be theirs alone."""
    count = len(set(clients.values()))
    if count < fewest:
        raise mm.InputError(
            f"The shared tasks are of {count} client{'s' * (count != 1)}, and at least {fewest} are needed. Wait until "
            "more have opted in."
        )


def published(
    model: mm.MetricModel, clients: Mapping[str, str], *, fewest: int
) -> tuple[mm.MetricModel, Sequence[str]]:
    """The model without metrics that come from too few clients, and the names of those left out."""
    gone = [metric.name for metric in model.metrics if 0 < _clients(metric.tasks, clients) < fewest]
    if not gone:
        return model, ()
    kept = tuple(metric for metric in model.metrics if metric.name not in gone)
    if not kept:
        raise mm.InputError(f"Every metric comes from fewer than {fewest} clients, so nothing can be published.")
    serving = mm.Serving(kept, model.serving.settings, model.serving.trust)
    told = tuple(about for about in model.origin.metrics if about["name"] not in gone)
    return mm.MetricModel(serving, replace(model.origin, metrics=told)), gone


def _clients(tasks: Iterable[str], clients: Mapping[str, str]) -> int:
    """How many clients some tasks come from; the operator's own tasks are nobody's."""
    return len({clients[task] for task in tasks if task in clients})
