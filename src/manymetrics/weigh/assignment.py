"""A new task -> the clusters it may belong to, from the names of its labels and from its texts.

    score_c  =  log(tasks of c)  +  b_names * names_c  +  b_texts * texts_c,      P(c) ~ exp(score_c)

names_c is the similarity of the label names of the new task and of the two most similar tasks of cluster c, texts_c
that of their texts. The coefficients are learned on the bank, each task in turn treated as new with the tasks of its
source left out. Where neither kind of similarity separates the clusters, the coefficients are 0.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

from manymetrics.encode.encoder import EmbeddedTexts, Encoder, centroid_of, normalize
from manymetrics.errors import DataError
from manymetrics.values import Clusters, Each, Floats, Ints, Task, TaskBank, no_progress

NAMES, TEXTS = "names", "texts"
REASONS = {NAMES: "its label names are similar", TEXTS: "its texts are similar"}
KINDS = ((NAMES, TEXTS), (NAMES,), (TEXTS,))  # what may be known of a new task
N_COMPARED = 2  # most similar tasks of a cluster that a new task is compared with
N_REPORTED = 3  # most similar tasks that are named
N_EXAMPLES = 5  # of each label, of a bank task that is treated as new
PENALTY = 1e-2  # on the squared coefficients
MAX_COEFFICIENT = 1e6
MIN_SIZE = 1e-9  # of a cluster without tasks
Coefficients = Mapping[str, float]  # by kind of similarity
Case = tuple[dict[str, Floats], Floats, int]  # similarity to clusters by kind, log sizes of clusters, own cluster


@dataclass(frozen=True)
class Assignment:
    """The clusters that a task may belong to."""

    clusters: tuple[float, ...]  # the probability of each
    similar_tasks: tuple[str, ...]  # the most similar tasks of the most probable cluster
    reason: str  # what decided: NAMES or TEXTS

    @property
    def most_probable(self) -> int:
        """The number of the most probable cluster."""
        return int(np.argmax(self.clusters))

    def __str__(self) -> str:
        probability = self.clusters[self.most_probable]
        return f"assigned to the cluster of {', '.join(self.similar_tasks)} ({probability:.0%}): {REASONS[self.reason]}"

    def as_dict(self) -> dict[str, Any]:
        """The most probable cluster and the reason, to be written as JSON."""
        return {"summary": str(self), "similar_tasks": list(self.similar_tasks), "reason": self.reason,
                "cluster": self.most_probable, "probability": self.clusters[self.most_probable]}  # fmt: skip


@dataclass(frozen=True, eq=False)
class ClusterAssigner:
    """What is stored of the bank's tasks to assign new ones to their clusters."""

    tasks: tuple[str, ...]
    clusters: Ints  # (tasks,): the number of each task's cluster
    count: int  # of clusters
    centroids: Floats  # (tasks, width) float16: unit centroids of their texts
    names: Floats  # (labels of all tasks, width) float16: unit embeddings of the label names
    labels: Ints  # (tasks,): number of labels of each
    coefficients: Mapping[str, Coefficients] = field(default_factory=dict)  # by what is known of a task: see `KINDS`

    def __post_init__(self) -> None:
        n_tasks, arrays = len(self.tasks), (self.centroids, self.names)
        usable = (
            self.clusters.shape == self.labels.shape == (n_tasks,)
            and self.clusters.dtype.kind == self.labels.dtype.kind == "i"
            and all(array.ndim == 2 and np.isfinite(array).all() for array in arrays)
            and self.centroids.shape == (n_tasks, self.names.shape[1])
            and bool((self.labels > 0).all() and self.labels.sum() == len(self.names))
            and bool(((self.clusters >= 0) & (self.clusters < self.count)).all())
            and all(key == "+".join(sorted(values)) for key, values in self.coefficients.items())
            and all(abs(b) <= MAX_COEFFICIENT for values in self.coefficients.values() for b in values.values())
        )
        if not usable:
            raise DataError("The names and texts of the tasks in the cluster assignment have inconsistent shapes.")

    def assign(self, encoder: Encoder, texts: Sequence[str] | EmbeddedTexts,
               names: Sequence[str] | EmbeddedTexts | None) -> Assignment | None:  # fmt: skip
        """Assign a task from its examples and its label names, as far as they are known."""
        similarity = self.similarity(encoder, texts, names)
        coefficients = self.coefficients.get("+".join(similarity), {})
        if not any(coefficients.values()):
            return None
        scores = {kind: coefficients[kind] * self.by_cluster(values) for kind, values in similarity.items()}
        probabilities = softmax(self.log_sizes + sum(scores.values()))
        best = int(probabilities.argmax())
        combined = np.sum([coefficients[kind] * values for kind, values in similarity.items()], axis=0)  # (tasks,)
        members = [index for index in np.argsort(-combined, kind="stable") if self.clusters[index] == best]
        similar_tasks = tuple(self.tasks[index] for index in members[:N_REPORTED])
        reason = max(scores, key=lambda kind: float(scores[kind][best] - scores[kind].mean()))
        return Assignment(tuple(probabilities.tolist()), similar_tasks, reason)

    def similarity(self, encoder: Encoder, texts: Sequence[str] | EmbeddedTexts,
                   names: Sequence[str] | EmbeddedTexts | None) -> dict[str, Floats]:  # fmt: skip
        """The similarity of a task to each task of the bank, by each of `KINDS` that is known: (tasks,) each."""
        similarity = {}
        if names is not None:
            rows = EmbeddedTexts.of(names).rows(encoder, unit=True)
            cosines = rows @ self.names.astype(np.float32).T  # (labels, labels of all tasks)
            starts = np.concatenate([[0], np.cumsum(self.labels)[:-1]])
            from_new = np.maximum.reduceat(cosines, starts, axis=1).mean(axis=0)  # (tasks,)
            from_bank = np.add.reduceat(cosines.max(axis=0), starts) / self.labels  # (tasks,)
            similarity[NAMES] = (from_new + from_bank) / 2
        if len(texts):
            centroids = self.centroids.astype(np.float32)  # (tasks, width)
            mean = centroids.mean(axis=0)
            similarity[TEXTS] = normalize(centroids - mean) @ normalize((centroid_of(encoder, texts) - mean)[None])[0]
        return similarity

    @property
    def log_sizes(self) -> Floats:
        """The logarithm of each cluster's number of tasks: (clusters,)."""
        return np.log(np.maximum(np.bincount(self.clusters, minlength=self.count), MIN_SIZE))

    def by_cluster(self, similarity: Floats) -> Floats:
        """The mean similarity to the most similar tasks of each cluster; the minimum without tasks: (clusters,)."""
        means = np.full(self.count, float(similarity.min()))
        for number in np.unique(self.clusters):
            means[number] = np.sort(similarity[self.clusters == number])[-N_COMPARED:].mean()
        return means

    def join(self, other: "ClusterAssigner") -> "ClusterAssigner":
        """With the tasks of another one, whose clusters are numbered with these, and the coefficients of this one."""
        arrays = ("clusters", "centroids", "names", "labels")
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in arrays}
        joined: dict[str, Any] = {name: np.concatenate(pair) for name, pair in pairs.items()}
        return replace(self, tasks=(*self.tasks, *other.tasks), count=max(self.count, other.count), **joined)

    def without(self, tasks: Collection[str]) -> "ClusterAssigner":
        """Without some tasks; clusters keep their numbers."""
        rows = np.array([name not in tasks for name in self.tasks])
        return replace(
            self, tasks=tuple(name for name in self.tasks if name not in tasks), clusters=self.clusters[rows],
            centroids=self.centroids[rows], names=self.names[np.repeat(rows, self.labels)], labels=self.labels[rows],
        )  # fmt: skip


def describe_tasks(tasks: Sequence[Task], clusters: Ints, encoder: Encoder) -> ClusterAssigner:
    """What is stored of the tasks of numbered clusters, without coefficients."""
    return ClusterAssigner(
        tuple(task.name for task in tasks),
        clusters,
        int(clusters.max()) + 1,
        np.stack([centroid_of(encoder, task.train.texts) for task in tasks]).astype(np.float16),
        np.concatenate([normalize(encoder.encode(task.label_names)) for task in tasks]).astype(np.float16),
        np.array([len(task.labels) for task in tasks]),
    )


def learn_assigner(
    bank: TaskBank, clusters: Clusters, encoder: Encoder, each: Each = no_progress
) -> ClusterAssigner | None:
    """Learn to assign new tasks; None with one cluster, or where all tasks share their labels."""
    if len(clusters) < 2 or bank.shared_labels is not None:
        return None
    tasks = [bank[name] for name in clusters.names]
    assigner = describe_tasks(tasks, clusters.labels, encoder)
    cases: list[Case] = []
    reported = each("weigh-assignment", tasks, name=lambda task: task.name)
    for task, cluster in zip(reported, clusters.labels.tolist(), strict=True):
        others = assigner.without({other.name for other in tasks if other.source == task.source})
        if cluster in others.clusters:
            rows = [np.flatnonzero(task.train.numbers == label)[:N_EXAMPLES] for label in range(len(task.labels))]
            similarity = others.similarity(encoder, task.train.take(np.concatenate(rows)).texts, task.label_names)
            by_cluster = {kind: others.by_cluster(values) for kind, values in similarity.items()}
            cases.append((by_cluster, others.log_sizes, cluster))
    return replace(assigner, coefficients={"+".join(kinds): _fit(cases, kinds) for kinds in KINDS}) if cases else None


def _fit(cases: Sequence[Case], kinds: Sequence[str]) -> dict[str, float]:
    """The coefficients, none below 0, that maximize the penalized likelihood of the tasks' own clusters."""
    from scipy.optimize import minimize  # slow to load, and adapting does not need it

    by_kind, sizes, answers = zip(*cases, strict=True)
    similarity = np.stack([[values[kind] for kind in kinds] for values in by_kind])  # (cases, kinds, clusters)
    scales = np.maximum(similarity.std(axis=(0, 2)), 1e-9)  # (kinds,)

    def loss(weights: Floats) -> float:
        scores = np.stack(sizes) + np.einsum("ikc,k->ic", similarity, weights / scales)
        log_likelihood = log_softmax(scores, axis=1)[np.arange(len(cases)), answers]
        return float(PENALTY / 2 * (weights**2).sum() - log_likelihood.mean())

    solved = minimize(loss, np.ones(len(kinds)), method="L-BFGS-B", bounds=[(0, None)] * len(kinds)).x / scales
    return {kind: round(float(b), 4) for kind, b in zip(kinds, solved, strict=True)}
