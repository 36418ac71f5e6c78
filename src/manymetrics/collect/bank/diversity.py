"""Tasks -> Diversity: how far label names divide a bank into groups, before anything is learned.

The similarity of two tasks is the cosine of the sets of words in their label names. The groups maximise modularity
greedily: the two groups whose union increases it most are joined, until none does.

    Q  =  sum over groups g of   e_g / e  -  (d_g / 2e)^2     e: all similarity, e_g: within g, d_g: of g's tasks

Q is 0 if tasks are as similar across groups as within them, and near 1 for many groups that share nothing. Since few
words make groups by chance, Q is also computed with labels permuted over the tasks. Texts are not used: by their words
all banks that were tried are about equally diverse.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manymetrics.values import Floats, Ints, Task

SEVERAL, ONE, UNCLEAR = "several", "one", "unclear"  # how many metrics are expected to pay
MIN_TASKS = 20  # below which nothing is expected
MAX_TASKS = 400  # of more tasks an evenly spaced sample is used
HIGH_MODULARITY, LOW_MODULARITY = 0.4, 0.25  # from which several metrics may pay; below which one is enough
MIN_ABOVE_CHANCE = 0.1  # of Q over that of permuted labels
MAX_UNGROUPED = 1 / 3  # share of tasks without a group, above which nothing is expected
N_PERMUTATIONS = 5
MIN_SHARING = 8  # tasks with the same labels, among others, that get metrics of their own: some of them are held out


@dataclass(frozen=True)
class Diversity:
    """How far label names divide the tasks of a bank into groups."""

    tasks: int  # to learn from
    groups: tuple[tuple[str, ...], ...]  # names of tasks, the largest group first
    modularity: float  # Q of these groups
    by_chance: float  # the same with labels permuted over the tasks
    shared_labels: bool  # whether all tasks have the same labels
    same_labels: tuple[tuple[str, ...], ...] = ()  # names of tasks that do, if not all but many do

    @property
    def ungrouped(self) -> float:
        """The share of tasks that are in no group with another."""
        return sum(len(group) == 1 for group in self.groups) / max(1, sum(map(len, self.groups)))

    @property
    def expected(self) -> str:
        """Whether several metrics are expected to pay: `several`, `one` or `unclear`."""
        if self.shared_labels or self.tasks < MIN_TASKS or self.ungrouped > MAX_UNGROUPED:
            return UNCLEAR
        if self.modularity < LOW_MODULARITY:
            return ONE
        needed = max(HIGH_MODULARITY, self.by_chance + MIN_ABOVE_CHANCE)
        return SEVERAL if self.modularity >= needed else UNCLEAR

    def __str__(self) -> str:
        basis = f"by their label names, modularity {self.modularity:.2f} (at random {self.by_chance:.2f})"
        if self.shared_labels:
            groups = "All tasks have the same labels. Only learning shows whether several metrics pay."
        elif self.tasks < MIN_TASKS:
            groups = f"The tasks to learn from are too few to say how diverse they are: {self.tasks} ({basis})."
        elif self.expected == SEVERAL:
            n_groups = sum(len(group) > 1 for group in self.groups)
            groups = f"The tasks form {n_groups} groups {basis}: several metrics may pay."
        elif self.expected == ONE:
            groups = f"The tasks hardly form groups {basis}: one metric is probably enough."
        else:
            groups = f"It is unclear whether the tasks form groups {basis}: several metrics may pay or not."
        sharing = (f" {len(names)} tasks have the same labels and get their own metrics." for names in self.same_labels)
        return groups + "".join(sharing)

    def as_dict(self) -> dict[str, Any]:
        """All values, ready for JSON."""
        lists = {name: [list(names) for names in getattr(self, name)] for name in ("groups", "same_labels")}
        return {**vars(self), **lists, "expected": self.expected, "summary": str(self)}


def measure_diversity(tasks: Sequence[Task]) -> Diversity:
    """How diverse the tasks to learn from are."""
    sample = sorted(tasks, key=lambda task: task.name)[:: -(-len(tasks) // MAX_TASKS) or 1]
    words = [set(name.casefold().split()) for task in sample for name in task.label_names]  # of each label
    ends = np.cumsum([len(task.labels) for task in sample])[:-1]
    groups, modularity = group_by_modularity(_similarity(np.split(np.arange(len(words)), ends), words))
    rng = np.random.default_rng(0)
    permuted = [np.split(rng.permutation(len(words)), ends) for _ in range(N_PERMUTATIONS)]
    by_chance = [group_by_modularity(_similarity(labels, words))[1] for labels in permuted]
    names = [tuple(sample[index].name for index in np.flatnonzero(groups == group)) for group in np.unique(groups)]
    return Diversity(
        len(tasks),
        tuple(sorted(names, key=lambda group: (-len(group), group))),
        round(modularity, 4),
        round(float(np.mean(by_chance)), 4),
        len(sample) > 1 and len({task.labels for task in sample}) == 1,
        tuple(tuple(task.name for task in group) for group in sharing_labels(tasks)),
    )


def sharing_labels(tasks: Sequence[Task]) -> list[list[Task]]:
    """Groups of at least `MIN_SHARING` tasks with the same labels; none if all tasks have the same."""
    groups: dict[tuple[str, ...], list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.labels, []).append(task)
    return [group for group in groups.values() if MIN_SHARING <= len(group) < len(tasks)]


def group_by_modularity(similarity: Floats) -> tuple[Ints, float]:
    """The group of each task, and *Q* of the groups; every task is a group, and Q is 0, if no two are similar."""
    between = similarity - np.diag(np.diag(similarity))  # (n, n)
    groups = np.arange(len(between))
    if not between.any():
        return groups, 0.0
    gain = between / between.sum()  # (n, n): similarity of two groups minus that expected by chance
    share = gain.sum(axis=1)
    gain -= np.outer(share, share)
    modularity = float(gain.diagonal().sum())
    np.fill_diagonal(gain, -np.inf)
    while True:
        first, second = divmod(int(gain.argmax()), len(gain))
        if not gain[first, second] > 0:
            return np.unique(groups, return_inverse=True)[1], modularity
        modularity += 2 * float(gain[first, second])
        gain[first] += gain[second]
        gain[:, first] = gain[first]
        gain[first, first] = -np.inf
        gain[second], gain[:, second] = -np.inf, -np.inf
        groups[groups == second] = first


def _similarity(labels_of: Sequence[Ints], words: Sequence[set[str]]) -> Floats:
    """The cosine of the sets of words of two tasks, given the labels of each task: (tasks, tasks)."""
    columns = {word: column for column, word in enumerate(sorted(set().union(*words)))}
    has_word = np.zeros((len(labels_of), len(columns)))
    for row, labels in zip(has_word, labels_of, strict=True):
        row[[columns[word] for label in labels for word in words[label]]] = 1
    shared = has_word @ has_word.T
    length = np.sqrt(np.maximum(shared.diagonal(), 1))
    return shared / np.outer(length, length)  # type: ignore[no-any-return]
