"""Clusterings of a bank's tasks: found, known by families, drawn at random, and of S as it was measured."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import adjusted_rand_score

from manymetrics.measure import Evidence, combine_evidence
from manymetrics.measure.evidence import average_directions, standardise
from manymetrics.partition import choose_p1, cluster_tasks, complete_similarity, filter_pairs
from manymetrics.partition.clusters import number_by_first
from manymetrics.recipe import Recipe
from manymetrics.values import Clusters, Floats, SharedData, Similarity, TransferMatrix

NONE, ONE, FOUND, KNOWN, RANDOM = "no metric", "one metric", "clusters found", "clusters known", "drawn at random"
FEWEST = 3  # tasks to learn from that a known cluster must have; smaller ones are taken together
MAX_CLUSTERS = 30


@dataclass(frozen=True, eq=False)
class Clustering:
    """The cluster of each task, those of held-out tasks among them."""

    name: str
    cluster_of: Mapping[str, int]

    def groups(self, names: Iterable[str]) -> dict[int, list[str]]:
        """The named tasks of each cluster."""
        groups: dict[int, list[str]] = {}
        for name in sorted(names):
            groups.setdefault(self.cluster_of[name], []).append(name)
        return dict(sorted(groups.items()))


def family_clustering(families: Mapping[str, str], past: Sequence[str]) -> Clustering:
    """The families; those of which there are too few tasks to learn from are one cluster."""
    counts = {family: sum(families[name] == family for name in past) for family in families.values()}
    kinds = sorted(family for family, count in counts.items() if count >= FEWEST)
    numbers = {family: number for number, family in enumerate(kinds)}
    return Clustering(KNOWN, {name: numbers.get(family, len(kinds)) for name, family in families.items()})


def random_clustering(known: Clustering, seed: int, draw: int) -> Clustering:
    """The tasks assigned at random to clusters of the same sizes."""
    names = sorted(known.cluster_of)
    numbers = np.random.default_rng([seed, draw]).permutation([known.cluster_of[name] for name in names])
    return Clustering(f"{RANDOM} {draw}", dict(zip(names, numbers.tolist(), strict=True)))


def find_clustering(shared_data: SharedData, transfer: TransferMatrix, recipe: Recipe,
                    past: Sequence[str]) -> Clustering:  # fmt: skip
    """The clusters of past tasks, found without the others; each of these is of the cluster it is nearest to."""
    bank, base = shared_data.bank, shared_data.base
    places = [transfer.names.index(name) for name in past]
    some = TransferMatrix(tuple(past), transfer.scores[np.ix_(places, places)], transfer.score)
    similarity = _similarity(combine_evidence(some, bank.only(list(past)), base), recipe)
    clusters = cluster_tasks(similarity, n_clusters=recipe.clusters, max_clusters=recipe.most_clusters)
    cluster_of = dict(zip(clusters.names, clusters.labels.tolist(), strict=True))
    evidence = combine_evidence(transfer, bank, base).joined.scores  # (tasks, tasks)
    members = [[transfer.names.index(name) for name in group] for group in clusters]
    for place, name in enumerate(transfer.names):
        if name not in cluster_of:
            cluster_of[name] = int(np.argmax([_mean_known(evidence[place, group]) for group in members]))
    return Clustering(FOUND, cluster_of)


def _similarity(evidence: Evidence, recipe: Recipe) -> Similarity:
    p1 = choose_p1(*evidence.parts) if recipe.p1 is None else recipe.p1
    return complete_similarity(filter_pairs(evidence.joined, p1=p1, p2=recipe.p2), sparsity=recipe.sparsity)


def _mean_known(scores: Floats) -> float:
    known = scores[np.isfinite(scores)]
    return float(known.mean()) if len(known) else -np.inf


def transfer_alone(transfer: TransferMatrix) -> TransferMatrix:
    """The measured transfer, standardised, the two directions of a pair averaged."""
    return TransferMatrix(transfer.names, average_directions(standardise(transfer.scores)), transfer.score)


def agreement(transfer: TransferMatrix, shared_data: SharedData, recipe: Recipe,
              families: Mapping[str, str]) -> dict[str, float]:  # fmt: skip
    """The adjusted Rand index of the clusters of all tasks with the families, by transfer alone and by all evidence."""
    own = [families[name] for name in transfer.names]
    bank = shared_data.bank.only(list(transfer.names))
    kinds = {
        "transfer": Evidence(transfer_alone(transfer), (transfer,)),
        "all evidence": combine_evidence(transfer, bank, shared_data.base),
    }
    found = {}
    for kind, evidence in kinds.items():
        similarity = _similarity(evidence, recipe)
        found[kind] = rand_index(similarity, own)
        found[f"{kind}, families counted"] = rand_index(similarity, own, len(set(own)))
    return found


def rand_index(similarity: Similarity, families: Sequence[str], clusters: int | None = None) -> float:
    """The adjusted Rand index of the clusters of a similarity with the families of its tasks."""
    found = cluster_tasks(similarity, n_clusters=clusters, max_clusters=MAX_CLUSTERS)
    return float(adjusted_rand_score(families, found.labels))


def everything_in_one(names: Sequence[str]) -> Clusters:
    """One cluster of all tasks."""
    return Clusters(tuple(names), np.zeros(len(names), dtype=np.int64))


def raw_clusters(transfer: TransferMatrix, clusters: int) -> Clusters:
    """Spectral clustering of S as measured: the mean of both directions, brought to the range from 0 to 1.

    A pair that was not measured counts as the middle of the range.
    """
    n = len(transfer.names)
    both = np.stack([transfer.scores, transfer.scores.T])  # (2, n, n)
    known = np.isfinite(both)
    mean = np.where(known, both, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)  # (n, n)
    apart = ~np.eye(n, dtype=bool) & known.any(axis=0)
    low, high = (mean[apart].min(), mean[apart].max()) if apart.any() else (0.0, 1.0)
    similar = np.where(apart, (mean - low) / max(high - low, 1e-12), 0.5)
    np.fill_diagonal(similar, 1.0)
    raw = Similarity(transfer.names, similar, np.zeros((n, n)), sparsity=0.0, steps=0, gap=0.0)
    return cluster_tasks(raw, n_clusters=clusters)


def random_clusters(clusters: Clusters, *, seed: int) -> Clusters:
    """The tasks assigned at random to clusters of the same sizes."""
    return Clusters(clusters.names, number_by_first(np.random.default_rng(seed).permutation(clusters.labels)))
