"""A new task -> the clusters it may belong to, before its examples have their say: by label names and by texts.

    score_c  =  log(tasks of c)  +  b_names * names_c  +  b_texts * texts_c,      P(c) ~ exp(score_c)

names_c says how alike the labels of the new task and of the two likest tasks of cluster c are called, texts_c how near
their texts lie. The coefficients are learned on the bank, every task taken for a new one in turn; where neither kind
of likeness tells clusters apart they are nothing, and clusters count by their size.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

from manymetrics.encode.encoder import Encoder, centre, unit_rows
from manymetrics.errors import DataError
from manymetrics.values import Clusters, Floats, Ints, Task, TaskBank, Texts

NAMES, TEXTS = "names", "texts"
REASONS = {NAMES: "its labels are called alike", TEXTS: "its texts are alike"}
KNOWN = ((NAMES, TEXTS), (NAMES,), (TEXTS,))  # of a new task
LIKEST = 2  # tasks of a cluster that a new one is compared with
TOLD = 3  # tasks that a new one is said to be like
EXAMPLES = 5  # of each label, of a task that is taken for a new one
PENALTY = 1e-2  # on the coefficients
LARGEST = 1e6  # of a coefficient
LEAST = 1e-9  # tasks of a cluster that has none
Coefficients = Mapping[str, float]  # by kind of likeness


@dataclass(frozen=True)
class Route:
    """Which cluster a task is taken for."""

    clusters: tuple[float, ...]  # the probability of each
    alike: tuple[str, ...]  # tasks of the likeliest cluster that are most like it
    reason: str  # what decided: NAMES or TEXTS

    @property
    def likeliest(self) -> int:
        """The number of the likeliest cluster."""
        return int(np.argmax(self.clusters))

    def __str__(self) -> str:
        sure = self.clusters[self.likeliest]
        return f"taken for a task like {', '.join(self.alike)} with a probability of {sure:.0%}: {REASONS[self.reason]}"

    def as_dict(self) -> dict[str, Any]:
        """The likeliest cluster and what speaks for it, to be written as JSON."""
        return {"said": str(self), "alike": list(self.alike), "reason": self.reason, "cluster": self.likeliest,
                "probability": self.clusters[self.likeliest]}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Routing:
    """What is known of the bank's tasks that tells whose cluster a new one belongs to."""

    tasks: tuple[str, ...]
    clusters: Ints  # (tasks,): the number of each task's cluster
    count: int  # of clusters
    centres: Floats  # (tasks, width) float16: where their texts lie, of length one
    names: Floats  # (labels of all tasks, width) float16: what they are called, of length one
    labels: Ints  # (tasks,): how many each has
    coefficients: Mapping[str, Coefficients] = field(default_factory=dict)  # by what is known of a task: see `KNOWN`

    def __post_init__(self) -> None:
        tasks, rows = len(self.tasks), (self.centres, self.names)
        usable = (
            self.clusters.shape == self.labels.shape == (tasks,)
            and self.clusters.dtype.kind == self.labels.dtype.kind == "i"
            and all(one.ndim == 2 and np.isfinite(one).all() for one in rows)
            and len(self.centres) == tasks
            and self.centres.shape[1] == self.names.shape[1]
            and bool((self.labels > 0).all())
            and self.labels.sum() == len(self.names)
            and bool(((self.clusters >= 0) & (self.clusters < self.count)).all())
            and all(known == _known(one) for known, one in self.coefficients.items())
            and all(abs(number) <= LARGEST for one in self.coefficients.values() for number in one.values())
        )
        if not usable:
            raise DataError("what is known of the tasks' names and texts does not fit together")

    def route(self, centre_of_texts: Floats | None, names: Floats | None) -> Route | None:
        """Whose cluster a task belongs to, from the centre of its texts and the rows of its label names, if known."""
        likeness = self.likeness(centre_of_texts, names)
        coefficients = self.coefficients.get(_known(likeness), {})
        if not any(coefficients.values()):
            return None
        parts = {kind: coefficients[kind] * self.by_cluster(one) for kind, one in likeness.items()}
        shares = softmax(self.log_sizes + sum(parts.values()))
        best = int(shares.argmax())
        leads = {kind: float(part[best] - part.mean()) for kind, part in parts.items()}
        joined = np.sum([coefficients[kind] * one for kind, one in likeness.items()], axis=0)  # (tasks,)
        inside = [place for place in np.argsort(-joined, kind="stable") if self.clusters[place] == best]
        told = tuple(self.tasks[place] for place in inside[:TOLD])
        return Route(tuple(shares.tolist()), told, max(leads, key=lambda kind: leads[kind]))

    def likeness(self, centre_of_texts: Floats | None, names: Floats | None) -> dict[str, Floats]:
        """How like each task of the bank another one is, by each kind that is known: (tasks,) each."""
        found = {}
        if names is not None:
            cosines = names @ self.names.astype(np.float32).T  # (labels, labels of all tasks)
            starts = np.concatenate([[0], np.cumsum(self.labels)[:-1]])
            there = np.maximum.reduceat(cosines, starts, axis=1).mean(axis=0)  # (tasks,)
            back = np.add.reduceat(cosines.max(axis=0), starts) / self.labels  # (tasks,)
            found[NAMES] = (there + back) / 2
        if centre_of_texts is not None:
            away = unit_rows((centre_of_texts - self._middle)[None])[0]
            found[TEXTS] = unit_rows(self.centres.astype(np.float32) - self._middle) @ away
        return found

    @cached_property
    def _middle(self) -> Floats:
        """What all tasks' texts have in common: (width,)."""
        return self.centres.astype(np.float32).mean(axis=0)  # type: ignore[no-any-return]

    @cached_property
    def log_sizes(self) -> Floats:
        """Of the clusters; of one without tasks next to nothing: (clusters,)."""
        return np.log(np.maximum(np.bincount(self.clusters, minlength=self.count), LEAST))

    def by_cluster(self, likeness: Floats) -> Floats:
        """The mean over the likest tasks of each cluster; one without tasks is like nothing: (clusters,)."""
        found = np.full(self.count, float(likeness.min()))
        for number in np.unique(self.clusters):
            found[number] = np.sort(likeness[self.clusters == number])[-LIKEST:].mean()
        return found

    def without(self, tasks: Collection[str]) -> "Routing":
        """What is known of the other tasks; clusters keep their numbers."""
        kept = np.array([name not in tasks for name in self.tasks])
        return replace(
            self,
            tasks=tuple(name for name in self.tasks if name not in tasks),
            clusters=self.clusters[kept],
            centres=self.centres[kept],
            names=self.names[np.repeat(kept, self.labels)],
            labels=self.labels[kept],
        )


def route_texts(routing: Routing | None, encoder: Encoder, texts: Texts, names: Texts | None) -> Route | None:
    """Whose cluster a task belongs to, from its examples and its label names."""
    if routing is None:
        return None
    middle = centre(encoder, texts) if len(texts) else None
    return routing.route(middle, None if names is None else unit_rows(encoder.encode(names)))


def learn_routing(bank: TaskBank, clusters: Clusters, encoder: Encoder) -> Routing | None:
    """What tells whose cluster a new task belongs to; None where there is but one, or tasks share their labels."""
    if len(clusters) < 2 or bank.shared_labels is not None:
        return None
    tasks = [bank[name] for name in clusters.names]
    routing = Routing(
        clusters.names,
        clusters.labels,
        len(clusters),
        np.stack([centre(encoder, task.train.texts) for task in tasks]).astype(np.float16),
        np.concatenate([unit_rows(encoder.encode(task.label_names)) for task in tasks]).astype(np.float16),
        np.array([len(task.labels) for task in tasks]),
    )
    cases = [_as_though_new(routing, task, tasks, encoder) for task in tasks]
    seen = [case for case in cases if case is not None]
    return replace(routing, coefficients={_known(kinds): _fit(seen, kinds) for kinds in KNOWN}) if seen else None


@dataclass(frozen=True, eq=False)
class _Case:
    """A task of the bank taken for a new one."""

    likeness: dict[str, Floats]  # (clusters,) by kind
    log_sizes: Floats  # (clusters,)
    cluster: int


def _as_though_new(routing: Routing, task: Task, tasks: Sequence[Task], encoder: Encoder) -> _Case | None:
    """With a few of its examples, and no task of its source known; None where then nobody is left in its cluster."""
    left = routing.without({other.name for other in tasks if other.source == task.source})
    cluster = int(routing.clusters[routing.tasks.index(task.name)])
    if cluster not in left.clusters:
        return None
    shots = task.labelled_train
    rows = [np.flatnonzero(shots.labels == label)[:EXAMPLES] for label in range(len(task.labels))]
    middle = centre(encoder, shots.texts.take(np.concatenate(rows)))
    likeness = left.likeness(middle, unit_rows(encoder.encode(task.label_names)))
    return _Case({kind: left.by_cluster(one) for kind, one in likeness.items()}, left.log_sizes, cluster)


def _known(kinds: Iterable[str]) -> str:
    return "+".join(sorted(kinds))


def _fit(cases: Sequence[_Case], kinds: Sequence[str]) -> dict[str, float]:
    """Coefficients under which the tasks' own clusters are likeliest, none below 0."""
    from scipy.optimize import minimize  # slow to load, and adapting does not need it

    rows = np.stack([[case.likeness[kind] for kind in kinds] for case in cases])  # (cases, kinds, clusters)
    scales = np.maximum(rows.std(axis=(0, 2)), 1e-9)  # (kinds,)
    sizes, answers = np.stack([case.log_sizes for case in cases]), [case.cluster for case in cases]

    def loss(weights: Floats) -> float:
        scores = sizes + np.einsum("ikc,k->ic", rows, weights / scales)
        likely = log_softmax(scores, axis=1)[np.arange(len(cases)), answers]
        return float(PENALTY / 2 * (weights**2).sum() - likely.mean())

    found = minimize(loss, np.ones(len(kinds)), method="L-BFGS-B", bounds=[(0, None)] * len(kinds)).x / scales
    return {kind: round(float(one), 4) for kind, one in zip(kinds, found, strict=True)}
