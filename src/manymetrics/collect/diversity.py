"""Tasks -> how diverse they are, before anything is learned: how far they fall into groups by what labels are called.

Two tasks are as similar as the words of their label names: the cosine of the two sets of words. The groups are those
of the highest modularity, found by joining the pair of groups that raises it most until none does:

    Q  =  sum over groups g of   e_g / e  -  (d_g / 2e)^2     e: all similarity, e_g: within g, d_g: of g's tasks

Q is 0 where tasks share as much with one another as with anybody, and near 1 where they share something within many
groups and nothing between them. Few words make groups by chance; so the labels are also dealt out to the tasks at
random, and what Q is then stands beside it. Texts are not asked: by their words all banks we tried are about alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from manymetrics.values import Floats, Ints, Task

SEVERAL, ONE, UNCLEAR = "several", "one", "unclear"  # how many metrics can be expected to pay
FEWEST = 20  # tasks; of fewer nothing is expected
MOST = 400  # tasks that are looked at; of more every so many-th
HIGH, LOW = 0.4, 0.25  # Q from which several metrics may pay, and below which one will do
ABOVE_CHANCE = 0.1  # of Q over that of labels dealt at random
ALONE = 1 / 3  # of the tasks that may be in no group, or nothing is expected
DEALS = 5
FEWEST_SHARING = 8  # tasks with the same labels, among others, for metrics of their own: some are held out to choose on


@dataclass(frozen=True)
class Diversity:
    """How far what labels are called parts the tasks of a bank into groups."""

    tasks: int  # to learn from
    groups: tuple[tuple[str, ...], ...]  # names of tasks, the largest group first
    modularity: float  # Q of these groups
    by_chance: float  # the same, labels dealt to the tasks at random
    similar: float  # mean similarity of two tasks
    nearest: float  # and of a task to the one most similar to it
    shared_labels: bool  # whether all tasks have the same labels
    same_labels: tuple[tuple[str, ...], ...] = ()  # names of tasks that do, where not all do but many

    @property
    def alone(self) -> float:
        """The share of tasks that are in no group with another."""
        return sum(len(group) == 1 for group in self.groups) / max(1, sum(map(len, self.groups)))

    @property
    def expected(self) -> str:
        """Whether several metrics can be expected to pay: `several`, `one` or `unclear`."""
        if self.shared_labels or self.tasks < FEWEST or self.alone > ALONE:
            return UNCLEAR
        if self.modularity < LOW:
            return ONE
        return SEVERAL if self.modularity >= max(HIGH, self.by_chance + ABOVE_CHANCE) else UNCLEAR

    def __str__(self) -> str:
        many = [
            f" {len(names)} tasks have the same labels; they get metrics of their own." for names in self.same_labels
        ]
        return self._groups_told() + "".join(many)

    def _groups_told(self) -> str:
        if self.shared_labels:
            return (
                "All tasks have the same labels, so what these are called does not tell how diverse the tasks are: "
                "whether several metrics pay is seen only by learning."
            )
        told = f"by what labels are called, modularity {self.modularity:.2f} (dealt at random {self.by_chance:.2f})"
        if self.tasks < FEWEST:
            return f"The tasks to learn from are too few to say how diverse they are: {self.tasks} ({told})."
        if self.expected == SEVERAL:
            count = sum(len(group) > 1 for group in self.groups)
            return f"The tasks fall into {count} groups {told}: several metrics may pay."
        if self.expected == ONE:
            return f"The tasks hardly fall into groups {told}: one metric will probably do."
        return f"Whether the tasks fall into groups is unclear {told}: several metrics may pay or not."

    def as_dict(self) -> dict[str, Any]:
        """Everything, to be written as JSON."""
        named = {name: [list(part) for part in getattr(self, name)] for name in ("groups", "same_labels")}
        return {**vars(self), **named, "expected": self.expected, "said": str(self)}


def measure_diversity(tasks: Sequence[Task]) -> Diversity:
    """How diverse the tasks are that will be learned from."""
    seen = sorted(tasks, key=lambda task: task.name)[:: -(-len(tasks) // MOST) or 1]
    labels, sizes = _label_words(seen), np.array([len(task.labels) for task in seen])
    similar = _similar(labels, sizes)
    groups = group_by_modularity(similar)
    rng = np.random.default_rng(0)
    dealt = [_similar(labels[rng.permutation(labels.shape[0])], sizes) for _ in range(DEALS)] if len(seen) else []
    others = similar[~np.eye(len(seen), dtype=bool)].reshape(len(seen), -1)  # (tasks, tasks - 1)
    return Diversity(
        len(tasks),
        _named(groups, seen),
        round(modularity(similar, groups), 4),
        round(float(np.mean([modularity(one, group_by_modularity(one)) for one in dealt])) if dealt else 0.0, 4),
        round(float(others.mean()) if others.size else 0.0, 4),
        round(float(others.max(axis=1).mean()) if others.size else 0.0, 4),
        len(seen) > 1 and len({task.labels for task in seen}) == 1,
        tuple(tuple(task.name for task in part) for part in sharing_labels(tasks)),
    )


def sharing_labels(tasks: Sequence[Task]) -> list[list[Task]]:
    """Those of the tasks, enough of them, that have the same labels; none where all tasks do."""
    found: dict[tuple[str, ...], list[Task]] = {}
    for task in tasks:
        found.setdefault(task.labels, []).append(task)
    return [part for part in found.values() if FEWEST_SHARING <= len(part) < len(tasks)]


def group_by_modularity(similar: Floats) -> Ints:
    """The number of each task's group: the pair of groups whose union has the highest modularity is joined, over."""
    joint = similar - np.diag(np.diag(similar))  # (n, n)
    total = joint.sum()
    groups = np.arange(len(joint))
    if not total:
        return groups
    gain = joint / total  # (n, n): what two groups share, less what they would by chance
    share = gain.sum(axis=1)
    gain -= np.outer(share, share)
    np.fill_diagonal(gain, -np.inf)
    while True:
        one, other = divmod(int(gain.argmax()), len(gain))
        if not gain[one, other] > 0:
            return np.unique(groups, return_inverse=True)[1]
        gain[one] += gain[other]
        gain[:, one] = gain[one]
        gain[one, one] = -np.inf
        gain[other], gain[:, other] = -np.inf, -np.inf
        groups[groups == other] = one


def modularity(similar: Floats, groups: Ints) -> float:
    """*Q* of a grouping; 0 where no two tasks are similar at all."""
    joint = similar - np.diag(np.diag(similar))
    total = joint.sum()
    if not total:
        return 0.0
    degrees = joint.sum(axis=1)  # (n,)
    together = np.equal.outer(groups, groups)
    return float((joint * together).sum() / total - (np.outer(degrees, degrees) * together).sum() / total**2)


def _label_words(tasks: Sequence[Task]) -> sparse.csr_array:
    """Which words every label's name has: (labels of all tasks, words)."""
    names = [set(name.casefold().split()) for task in tasks for name in task.label_names]
    places = {word: place for place, word in enumerate(sorted(set().union(*names)))}
    columns = [places[word] for name in names for word in sorted(name)]
    bounds = np.cumsum([0, *map(len, names)])
    return sparse.csr_array((np.ones(len(columns)), columns, bounds), shape=(len(names), max(len(places), 1)))


def _similar(labels: sparse.csr_array, sizes: Ints) -> Floats:
    """The cosine of the sets of words that two tasks' labels are called by: (tasks, tasks)."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    member = sparse.csr_array((np.ones(len(owner)), (owner, np.arange(len(owner)))), shape=(len(sizes), len(owner)))
    words = ((member @ labels) > 0).astype(np.float64)  # (tasks, words)
    shared = (words @ words.T).toarray()
    length = np.sqrt(np.maximum(shared.diagonal(), 1))
    return shared / np.outer(length, length)  # type: ignore[no-any-return]


def _named(groups: Ints, tasks: Sequence[Task]) -> tuple[tuple[str, ...], ...]:
    found = [tuple(tasks[place].name for place in np.flatnonzero(groups == one).tolist()) for one in np.unique(groups)]
    return tuple(sorted(found, key=lambda names: (-len(names), names)))
