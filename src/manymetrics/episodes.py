"""Every way to draw a few-shot problem, and which tasks and texts are held out. Targets are never used."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from manymetrics.values import Clusters, Episode, Examples, Ints, Task, TaskBank, fold_text, random_key, rng_for

MIN_TO_SPLIT = 4  # tasks a cluster must have before one of them is held out
N_FURTHER = 20  # examples of any label beside one of each, in an episode as people pose them
MANY_SHOTS = (10, 20, 50)  # examples of each label, in episodes of tasks that have as many
MAX_EXAMPLES = 1200  # in an episode
MANY_LABELS = (50, 150)  # in episodes of several joined tasks
QUERIES = 150  # texts to answer in an episode, at most
MAX_ASKED = 500  # texts of a few-shot task to be answered


def hold_out(bank: TaskBank, share: float, *, seed: int, clusters: Clusters | None = None) -> tuple[str, ...]:
    """The tasks that are not trained on: a share of each cluster, or of all tasks where there are no clusters yet.

    Training stops on them, scope and calibration are learned on them. A source none of whose tasks has a query is not
    held out: nothing could be validated on it.
    """
    contents = defaultdict(list)
    for task in bank:
        contents[task.source].append(task.content)
    sources = {task.name: " ".join(sorted(contents[task.source])) for task in bank}  # what is drawn needs no names
    with_query = {sources[task.name] for task in bank if has_query(task)}
    groups = clusters or Clusters(bank.names, np.zeros(len(bank), dtype=np.int64))
    usable = np.array([sources[name] in with_query for name in groups.names], dtype=bool)
    names = tuple(name for name, is_usable in zip(groups.names, usable, strict=True) if is_usable)
    numbers = np.unique(groups.labels[usable], return_inverse=True)[1]
    return hold_out_tasks(Clusters(names, numbers), sources, share, seed=seed)


def hold_out_tasks(clusters: Clusters, sources: Mapping[str, str], share: float, *, seed: int) -> tuple[str, ...]:
    """A share of the tasks of every cluster that has tasks to spare.

    Tasks of one source are held out together (`sources` names each task's): what is chosen on them is meant for sources
    not seen before. Each source has a random key made from its name, so adding a task does not redraw the others.
    """
    sizes = {number: len(group) for number, group in enumerate(clusters)}
    spare = Counter({
        number: min(max(1, round(share * size)), size - 1)
        for number, size in sizes.items()
        if size >= MIN_TO_SPLIT and share > 0
    })  # fmt: skip
    groups = defaultdict(list)
    for name, cluster in zip(clusters.names, clusters.labels.tolist(), strict=True):
        groups[sources[name]].append((name, cluster))
    held: set[str] = set()
    for source in sorted(groups, key=lambda name: random_key(seed, name)):
        taken = Counter(cluster for _, cluster in groups[source])
        if taken <= spare:
            held |= {name for name, _ in groups[source]}
            spare -= taken
    return tuple(name for name in clusters.names if name in held)


def has_query(task: Task) -> bool:
    """Whether an episode of the task leaves texts to answer: valid ones, or a label's second train example."""
    return bool(len(task.valid)) or bool((np.bincount(task.train.numbers) > 1).any())


def hold_out_texts(examples: Examples, share: float, rng: np.random.Generator) -> tuple[Examples, Examples]:
    """Hold out a share of the examples of every label; a label always keeps one that is not held out."""
    groups = _shuffled_by_label(examples, rng)
    held = np.concatenate([rows[: min(round(share * len(rows)), len(rows) - 1)] for rows in groups])
    return examples.take(np.setdiff1d(np.arange(len(examples)), held)), examples.take(np.sort(held))


def _shuffled_by_label(examples: Examples, rng: np.random.Generator) -> list[Ints]:
    """The indices of the examples of each label, in random order."""
    return [rng.permutation(np.flatnonzero(examples.numbers == label)) for label in np.unique(examples.numbers)]


@dataclass(frozen=True, eq=False)
class EpisodeIndices:
    """A training episode by the indices of its texts."""

    classes: Ints  # (classes,): which groups of texts take part
    support: Ints  # (shots,)
    labels: Ints  # (shots,): indices into `classes`
    query: Ints  # (texts,)
    answers: Ints  # (texts,): indices into `classes`


def groups_by_label(labels: Ints) -> list[Ints]:
    """The indices of the texts of each label that has two of them at least."""
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    return [group for group in groups if len(group) > 1]


def draw_indices(groups: Sequence[Ints], ways: int, shots: int, queries: int,
                 rng: np.random.Generator) -> EpisodeIndices:  # fmt: skip
    """Draw an n-way k-shot episode from groups of texts that share a label; each group keeps a text to be answered."""
    classes = rng.permutation(len(groups))[:ways]
    share = max(1, queries // len(classes))
    rows = [rng.permutation(groups[group]) for group in classes]
    counts = [min(shots, len(group) - 1) for group in rows]
    support = [group[:count] for group, count in zip(rows, counts, strict=True)]
    query = [group[count : count + share] for group, count in zip(rows, counts, strict=True)]
    labels, answers = (np.repeat(np.arange(len(classes)), [len(part) for part in parts]) for parts in (support, query))
    return EpisodeIndices(classes, np.concatenate(support), labels, np.concatenate(query), answers)


def validation_episode(task: Task, *, shots: int, queries: int, seed: int) -> Episode | None:
    """Some train examples of each label, and valid texts to answer (half of train where there are none).

    Always the same for a task and a seed; None where no text is left to answer.
    """
    if not has_query(task):
        return None
    rng = np.random.default_rng([seed, *task.content.encode()])
    train, texts = (task.train, task.valid) if len(task.valid) else hold_out_texts(task.train, 0.5, rng)
    support = np.concatenate([rows[:shots] for rows in _shuffled_by_label(train, rng)])
    query = texts.take(rng.permutation(len(texts))[:queries])
    return Episode(task.name, train.take(support), query, task.label_names)


def draw_episodes(bank: TaskBank, held_out: Sequence[str], *, shots: int, seed: int) -> list[Episode]:
    """Episodes of every held-out task: with all the shots, with fewer, and as people pose them.

    People give one example of a rare label and many of a common one; the paper's intent targets are made so. Scope and
    calibration depend on the shots and on the number of labels: episodes have 1 to 50 examples a label and, where
    several tasks are joined, up to 150 labels.
    """
    episodes = []
    for task in (bank[name] for name in held_out):
        rng = rng_for(seed, task.content)
        counts = np.bincount(np.concatenate([task.train.numbers, task.valid.numbers]))
        sizes = [(shots, 0), (max(1, shots - 2), 0), (1, N_FURTHER), (1, 0)]
        sizes += [(many, 0) for many in MANY_SHOTS if np.median(counts) > many and many * len(counts) <= MAX_EXAMPLES]
        episodes += [draw_episode(task, size, further, rng) for size, further in sizes]
    if bank.shared_labels is None:
        for task in _join_tasks([bank[name] for name in held_out], seed):
            rng = rng_for(seed, task.content)
            episodes += [draw_episode(task, size, 0, rng) for size in (1, shots)]
    return [episode for episode in episodes if len(episode.query)]


def _join_tasks(tasks: Sequence[Task], seed: int) -> list[Task]:
    """Tasks with more labels than one of these has; labels of one name are one label."""
    joined = []
    for max_labels in MANY_LABELS:
        members: list[Task] = []
        labels: set[str] = set()
        for task in sorted(tasks, key=lambda task: random_key(seed, str(max_labels), task.content)):
            if len(labels.union(task.labels)) <= max_labels:
                members.append(task)
                labels.update(task.labels)
        if len(members) > 1 and len(labels) >= max_labels / 2:
            examples = Examples.join([part for member in members for part in (member.train, member.valid)])
            joined.append(Task(members[0].name, examples))
    return joined


def draw_episode(task: Task, shots: int, further: int, rng: np.random.Generator, *, queries: int = QUERIES) -> Episode:
    """Some examples of each label and so many further ones, and other texts to be answered."""
    examples = Examples.join([task.train, task.valid])
    groups = _shuffled_by_label(examples, rng)
    support = np.concatenate([group[: max(1, min(shots, len(group) - 1))] for group in groups])
    others = rng.permutation(np.setdiff1d(np.arange(len(examples)), support))
    more = min(further, len(others) // 2)  # at least half of them are left to be answered
    support, query = np.concatenate([support, others[:more]]), others[more : more + queries]
    return Episode(task.name, examples.take(support), examples.take(query), task.label_names)


def draw_few_shots(task: Task, shots: int, *, seed: int) -> Task:
    """Some train examples of each label, and other texts to be answered: the test texts, else what is left.

    A text that equals an example, apart from case and spaces, is not asked.
    """
    rng = rng_for(seed, task.fingerprint)
    chosen = np.concatenate([group[:shots] for group in _shuffled_by_label(task.train, rng)])
    few, others = task.train.take(chosen), task.test
    if not len(others):
        rest = task.train.take(np.setdiff1d(np.arange(len(task.train)), chosen))
        others = Examples.join([rest, task.valid])
    known = set(map(fold_text, few.texts))
    asked = [row for row in rng.permutation(len(others)).tolist() if fold_text(others.texts[row]) not in known]
    return Task(task.name, few, Examples(), others.take(asked[:MAX_ASKED]), task.source)
