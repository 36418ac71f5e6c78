"""A bank's tasks -> folds of its sources, and clusters of its tasks: known, found, and drawn at random."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.families import rand
from experiments.intervals import source_of
from manymetrics.errors import InputError
from manymetrics.measure import Evidence, combine_evidence
from manymetrics.measure.evidence import average_directions, standardise
from manymetrics.partition import choose_p1, cluster_tasks, complete_similarity, filter_pairs
from manymetrics.recipe import Recipe
from manymetrics.values import Clusters, Floats, SharedData, Similarity, TaskBank, TransferMatrix

NONE, ONE, FOUND, KNOWN, RANDOM = "no metric", "one metric", "clusters found", "clusters known", "drawn at random"
FEWEST = 3  # tasks to learn from that a known cluster must have; smaller ones are taken together


@dataclass(frozen=True, eq=False)
class Parting:
    """Clusters: whose each task is, those of the fold among them."""

    name: str
    own: Mapping[str, int]

    def among(self, names: Iterable[str]) -> dict[int, list[str]]:
        """The tasks of each cluster that are among some."""
        groups: dict[int, list[str]] = {}
        for name in sorted(names):
            groups.setdefault(self.own[name], []).append(name)
        return dict(sorted(groups.items()))


def deal(bank: TaskBank, folds: int, seed: int) -> list[list[str]]:
    """The tasks of each fold: sources are assigned at random."""
    lots = {name: hashlib.sha256(f"{seed} {name}".encode()).digest() for name in map(source_of, bank)}
    sources = sorted(lots, key=lambda name: lots[name])
    if len(sources) < folds:
        raise InputError(f"Found {len(sources)} sources to deal to {folds} folds. Ask for fewer folds.")
    drawn_folds = [set(sources[number::folds]) for number in range(folds)]
    return [[task.name for task in bank if source_of(task) in own] for own in drawn_folds]


def part_by_family(families: Mapping[str, str], past: Sequence[str]) -> Parting:
    """The families; those of which there are too few tasks to learn from are one cluster."""
    counts = {family: sum(families[name] == family for name in past) for family in families.values()}
    kinds = sorted(family for family, count in counts.items() if count >= FEWEST)
    numbers = {family: number for number, family in enumerate(kinds)}
    return Parting(KNOWN, {name: numbers.get(family, len(kinds)) for name, family in families.items()})


def shuffle(known: Parting, seed: int, draw: int) -> Parting:
    """The tasks assigned to clusters of the same sizes."""
    names = sorted(known.own)
    numbers = np.random.default_rng([seed, draw]).permutation([known.own[name] for name in names])
    return Parting(f"{RANDOM} {draw}", dict(zip(names, numbers.tolist(), strict=True)))


def find_parting(shared_data: SharedData, transfer: TransferMatrix, recipe: Recipe, past: Sequence[str]) -> Parting:
    """The clusters of some tasks, found without the others; each of these is of the cluster it is nearest to."""
    bank, base = shared_data.bank, shared_data.base
    places = [transfer.names.index(name) for name in past]
    some = TransferMatrix(tuple(past), transfer.scores[np.ix_(places, places)], transfer.score)
    clusters = cluster(combine_evidence(some, bank.only(list(past)), base), recipe)[1]
    own = dict(zip(clusters.names, clusters.labels.tolist(), strict=True))
    evidence = combine_evidence(transfer, bank, base).joined.scores  # (tasks, tasks)
    members = [[transfer.names.index(name) for name in group] for group in clusters]
    for place, name in enumerate(transfer.names):
        if name not in own:
            own[name] = int(np.argmax([_mean_known(evidence[place, group]) for group in members]))
    return Parting(FOUND, own)


def cluster(evidence: Evidence, recipe: Recipe) -> tuple[Similarity, Clusters]:
    """The clusters of some evidence, as the package finds them."""
    p1 = choose_p1(*evidence.parts) if recipe.p1 is None else recipe.p1
    pairs = filter_pairs(evidence.joined, p1=p1, p2=recipe.p2)
    similarity = complete_similarity(pairs, sparsity=recipe.sparsity)
    return similarity, cluster_tasks(similarity, n_clusters=recipe.clusters, max_clusters=recipe.most_clusters)


def agreement(shared_data: SharedData, transfer: TransferMatrix, recipe: Recipe,
              families: Mapping[str, str]) -> dict[str, float]:  # fmt: skip
    """The adjusted Rand index of the clusters of all tasks with the families, by transfer alone and by all evidence."""
    own = [families[name] for name in transfer.names]
    bank = shared_data.bank.only(list(transfer.names))
    alone = TransferMatrix(transfer.names, average_directions(standardise(transfer.scores)), transfer.score)
    every = combine_evidence(transfer, bank, shared_data.base)
    found = {}
    for kind, evidence in (("transfer", Evidence(alone, (transfer,))), ("all evidence", every)):
        similarity, _ = cluster(evidence, recipe)
        found[kind] = rand(similarity, own, None)
        found[f"{kind}, families counted"] = rand(similarity, own, len(set(own)))
    return found


def _mean_known(scores: Floats) -> float:
    known = scores[np.isfinite(scores)]
    return float(known.mean()) if len(known) else -np.inf
