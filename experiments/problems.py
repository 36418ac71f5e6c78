"""Few-shot problems drawn from tasks of the bank, folds of its sources, and the setting that answers problems best.

A problem has the shape of the targets: where all tasks share their labels, five shots of each; elsewhere, as in the
paper's intents, one of each label and twenty of any. It keeps the source of its task, so that a method that learned
from the bank can be asked without what it learned from that source.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from experiments.methods import answer_targets, blind
from manymetrics.episodes import draw_episode, draw_episodes
from manymetrics.evaluation.baselines import Method
from manymetrics.evaluation.scoring import Answered
from manymetrics.evaluation.targets import label_numbers
from manymetrics.values import Episode, Task, TaskBank

SHOTS, FURTHER = 5, 20
DRAWS = 3  # problems of each task
QUERIES = 100  # texts of each, at most
TUNING_TASKS, MOST_SHOTS = 20, 200  # of the bank, and in each of their problems

Value = TypeVar("Value")


def source_of(task: Task) -> str:
    """The product, corpus or repository that a task comes from: the first word of its source."""
    return task.source.partition(" ")[0]


def assign_to_folds(bank: TaskBank, folds: int, *, seed: int) -> list[list[str]]:
    """The tasks of each fold: sources are assigned at random, and there are no more folds than sources."""
    keys = {name: hashlib.sha256(f"{seed} {name}".encode()).digest() for name in map(source_of, bank)}
    sources = sorted(keys, key=lambda name: keys[name])
    own = [set(sources[number::folds]) for number in range(min(folds, len(sources)))]
    return [[task.name for task in bank if source_of(task) in fold] for fold in own]


def draw_problems(bank: TaskBank, names: Iterable[str], *, seed: int, draws: int = DRAWS,
                  queries: int = QUERIES) -> TaskBank:  # fmt: skip
    """So many problems of each named task that has texts to spare; the same for a seed, whatever the other names."""
    shots, further = (SHOTS, 0) if bank.shared_labels else (1, FURTHER)
    problems = []
    for task in (bank[name] for name in names):
        for number in range(draws):
            rng = np.random.default_rng(list(hashlib.sha256(f"{seed} {number} {task.fingerprint}".encode()).digest()))
            episode = draw_episode(task, shots, further, rng, queries=queries)
            problems.append(as_task(f"{task.name} {number}", episode, source=task.source))
    return TaskBank(tuple(problem for problem in problems if len(problem.test)))


def tuning_problems(bank: TaskBank) -> TaskBank:
    """Problems of many shapes, drawn from some tasks of the bank, to choose the penalty of a baseline on."""
    every = [bank.names[place] for place in np.random.default_rng(0).permutation(len(bank))]
    episodes = draw_episodes(bank, every[:TUNING_TASKS], shots=SHOTS, seed=0)
    return TaskBank(
        tuple(as_task(f"{place}", one) for place, one in enumerate(episodes) if len(one.support) <= MOST_SHOTS)
    )


def as_task(name: str, episode: Episode, *, source: str = "") -> Task:
    """An episode as a task: its support to learn from, its queries as test."""
    return Task(name, episode.support, test=episode.query, source=source)


def answer_problems(method: Method, problems: TaskBank) -> list[Answered]:
    """What a method answers, the right answers hidden from it."""
    found = answer_targets(method, blind(problems))
    return [
        Answered(one.task, one.answers, label_numbers(task, task.test.labels))
        for one, task in zip(found, problems, strict=True)
    ]


def choose(values: Sequence[Value], make: Callable[[Value], Method], problems: TaskBank) -> Value:
    """The value under which a method answers the problems best; of equals, or without problems, the first."""
    if not len(problems):
        return values[0]

    def mean_accuracy(value: Value) -> float:
        return float(np.mean([one.accuracy for one in answer_problems(make(value), problems)]))

    return max(values, key=mean_accuracy)
