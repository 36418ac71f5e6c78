"""Every way to draw a few-shot problem, and which tasks and texts are held out.

    hold_out, hold_out_tasks    tasks that are not trained on: training stops on them, scope and calibration use them
    hold_out_texts              texts of a task that are not trained on
    draw_indices                an n-way k-shot training episode of one task, by the indices of its texts
    validation_episode          the one episode on which a task is scored, or training stops
    draw_episodes               episodes of several sizes from held-out tasks, to learn scope and calibration on
    draw_few_shots              a task reduced to a few examples, with other texts to be answered

The targets of any evaluation are never used.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from manymetrics.values import Clusters, Episode, Examples, Ints, Task, TaskBank, random_key, rng_for

MIN_TO_SPLIT = 4  # tasks a cluster must have before one of them is held out
N_FURTHER = 20  # examples of any label beside one of each, in an episode as people pose them
MANY_SHOTS = (10, 20, 50)  # examples of each label, in episodes of tasks that have as many
MAX_EXAMPLES = 1200  # in an episode
MANY_LABELS = (50, 150)  # in episodes of several joined tasks
QUERIES = 150  # texts to answer in an episode, at most
MAX_ASKED = 500  # texts of a few-shot task to be answered


def hold_out(bank: TaskBank, share: float, *, seed: int, clusters: Clusters | None = None) -> tuple[str, ...]:
    """The tasks that are not trained on: a share of each cluster, or of all tasks where there are no clusters yet.

    A source none of whose tasks has a query is not held out: nothing could be validated on it.
    """
    sources = {task.name: _content_of_source(bank, task.source) for task in bank}
    validate = {sources[task.name] for task in bank if has_query(task)}
    groups = clusters or Clusters(bank.names, np.zeros(len(bank), dtype=np.int64))
    usable = np.array([sources[name] in validate for name in groups.names], dtype=bool)
    names = tuple(name for name, is_usable in zip(groups.names, usable, strict=True) if is_usable)
    numbers = np.unique(groups.labels[usable], return_inverse=True)[1]
    return hold_out_tasks(Clusters(names, numbers), sources, share, seed=seed)


def _content_of_source(bank: TaskBank, source: str) -> str:
    """A source as the content of its tasks, so that what is drawn does not depend on names."""
    return " ".join(sorted(task.content for task in bank if task.source == source))


def hold_out_tasks(clusters: Clusters, sources: Mapping[str, str], share: float, *, seed: int) -> tuple[str, ...]:
    """A share of the tasks of every cluster that has tasks to spare.

    Tasks of one source are held out together (`sources` names each task's): what is chosen on them is meant for sources
    not seen before. Each source has a random key made from its name, so adding a task does not redraw the others.
    """
    spare = {number: _max_held_out(len(group), share) for number, group in enumerate(clusters)}
    groups: dict[str, list[tuple[str, int]]] = {}
    for name, cluster in zip(clusters.names, clusters.labels.tolist(), strict=True):
        groups.setdefault(sources[name], []).append((name, cluster))
    held: list[str] = []
    for source in sorted(groups, key=lambda name: random_key(seed, name)):
        taken = Counter(cluster for _, cluster in groups[source])
        if all(spare[cluster] >= count for cluster, count in taken.items()):
            held += [name for name, _ in groups[source]]
            spare = {cluster: left - taken[cluster] for cluster, left in spare.items()}
    return tuple(name for name in clusters.names if name in held)


def _max_held_out(size: int, share: float) -> int:
    """How many tasks of a cluster can be spared."""
    if size < MIN_TO_SPLIT or share == 0:
        return 0
    return min(max(1, round(share * size)), size - 1)


def has_query(task: Task) -> bool:
    """Whether an episode of the task leaves texts to answer: valid ones, or a label's second train example."""
    return bool(len(task.valid)) or bool((np.bincount(task.train.numbers) > 1).any())


def hold_out_texts(examples: Examples, share: float, rng: np.random.Generator) -> tuple[Examples, Examples]:
    """Hold out a share of the examples of every label; a label always keeps one that is not held out."""
    held: list[int] = []
    for label in np.unique(examples.numbers):
        rows = rng.permutation(np.flatnonzero(examples.numbers == label))
        held += rows[: min(round(share * len(rows)), len(rows) - 1)].tolist()
    rest = np.setdiff1d(np.arange(len(examples)), held)
    return examples.take(rest), examples.take(np.sort(np.array(held, dtype=np.int64)))


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
    """Draw an episode from groups of texts that share a label; each group keeps a text to be answered."""
    classes = rng.permutation(len(groups))[:ways]
    share = max(1, queries // len(classes))
    support, query = [], []
    for group in classes:
        rows = rng.permutation(groups[group])
        count = min(shots, len(rows) - 1)
        support.append(rows[:count])
        query.append(rows[count : count + share])
    numbers = np.arange(len(classes))
    labels, answers = (np.repeat(numbers, [len(rows) for rows in parts]) for parts in (support, query))
    return EpisodeIndices(classes, np.concatenate(support), labels, np.concatenate(query), answers)


def validation_episode(task: Task, *, shots: int, queries: int, seed: int) -> Episode | None:
    """Some train examples of each label, and valid texts to answer (half of train where there are none).

    Always the same for a task and a seed; None where no text is left to answer.
    """
    if not has_query(task):
        return None
    rng = np.random.default_rng([seed, *task.content.encode()])
    train, texts = task.train, task.valid
    if not len(texts):
        train, texts = hold_out_texts(train, 0.5, rng)
    support = [rng.permutation(np.flatnonzero(train.numbers == label))[:shots] for label in np.unique(train.numbers)]
    query = texts.take(rng.permutation(len(texts))[:queries])
    return Episode(task.name, train.take(np.concatenate(support)), query, task.label_names)


def draw_episodes(bank: TaskBank, held_out: Sequence[str], *, shots: int, seed: int) -> list[Episode]:
    """Episodes of every held-out task: with all the shots, with fewer, and as people pose them.

    People give one example of a rare label and many of a common one; the paper's intent targets are made so. Scope and
    calibration depend on the shots and on the number of labels: episodes have 1 to 50 examples a label and, where
    several tasks are joined, up to 150 labels.
    """
    episodes = []
    for name in held_out:
        task = bank[name]
        rng = rng_for(seed, task.content)
        sizes = [(shots, 0), (max(1, shots - 2), 0), (1, N_FURTHER), (1, 0)]
        sizes += [(many, 0) for many in MANY_SHOTS if _has_shots(task, many)]
        episodes += [draw_episode(task, size, further, rng) for size, further in sizes]
    if bank.shared_labels is None:
        episodes += _draw_many_labels([bank[name] for name in held_out], shots, seed)
    return [episode for episode in episodes if len(episode.query)]


def _has_shots(task: Task, shots: int) -> bool:
    counts = np.bincount(np.concatenate([task.train.numbers, task.valid.numbers]))
    return float(np.median(counts)) > shots and shots * len(counts) <= MAX_EXAMPLES


def _draw_many_labels(tasks: Sequence[Task], shots: int, seed: int) -> list[Episode]:
    """Episodes with more labels than one task has; labels of one name are one label."""
    episodes: list[Episode] = []
    for max_labels in MANY_LABELS:
        joined: list[Task] = []
        for task in sorted(tasks, key=lambda task: random_key(seed, str(max_labels), task.content)):
            if len({label for member in (*joined, task) for label in member.labels}) <= max_labels:
                joined.append(task)
        if len(joined) < 2 or len({label for member in joined for label in member.labels}) < max_labels / 2:
            continue
        task = Task(joined[0].name, Examples.join([part for member in joined for part in (member.train, member.valid)]))
        rng = rng_for(seed, task.content)
        episodes += [draw_episode(task, size, 0, rng) for size in (1, shots)]
    return episodes


def draw_episode(task: Task, shots: int, further: int, rng: np.random.Generator, *, queries: int = QUERIES) -> Episode:
    """Some examples of each label and so many further ones, and other texts to be answered."""
    examples = Examples.join([task.train, task.valid])
    rows = [rng.permutation(np.flatnonzero(examples.numbers == label)) for label in range(len(task.labels))]
    support = np.concatenate([group[: max(1, min(shots, len(group) - 1))] for group in rows])
    others = rng.permutation(np.setdiff1d(np.arange(len(examples)), support))
    more = min(further, len(others) // 2)  # at least half of them are left to be answered
    return Episode(
        task.name,
        examples.take(np.concatenate([support, others[:more]])),
        examples.take(others[more : more + queries]),
        task.label_names,
    )


def draw_few_shots(task: Task, shots: int, *, seed: int) -> Task:
    """Some train examples of each label, and other texts to be answered: the test texts, else what is left.

    A text that equals an example, apart from case and spaces, is not asked.
    """
    rng = rng_for(seed, task.fingerprint)
    groups = [rng.permutation(np.flatnonzero(task.train.numbers == label)) for label in range(len(task.labels))]
    chosen = np.concatenate([group[:shots] for group in groups])
    few = task.train.take(chosen)
    others = task.test
    if not len(others):
        rest = task.train.take(np.setdiff1d(np.arange(len(task.train)), chosen))
        others = Examples.join([rest, task.valid])
    known = set(map(_folded, few.texts))
    asked = [row for row in rng.permutation(len(others)).tolist() if _folded(others.texts[row]) not in known]
    return Task(task.name, few, Examples(), others.take(asked[:MAX_ASKED]), task.source)


def _folded(text: str) -> str:
    return " ".join(text.lower().split())
