"""Meta-validation: few-shot problems drawn from tasks of the bank, and the value of a setting that answers them best.

A problem has the shape of the targets: where all tasks share their labels, five shots of each; elsewhere, as in the
paper's intents, one of each label and twenty of any. It keeps the source of its task, so that a method that learned
from the bank can be asked without what it learned from that source.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from experiments.methods import answer_targets, blind
from manymetrics.evaluation.baselines import Method
from manymetrics.evaluation.scoring import Answered
from manymetrics.evaluation.targets import label_numbers
from manymetrics.values import Examples, Task, TaskBank

SHOTS, FURTHER = 5, 20
DRAWS = 3  # problems of each task
QUERIES = 100  # texts of each, at most

Value = TypeVar("Value")


def draw_problems(bank: TaskBank, names: Iterable[str], *, seed: int, draws: int = DRAWS,
                  queries: int = QUERIES) -> TaskBank:  # fmt: skip
    """So many problems of each named task that has texts to spare; the same for a seed, whatever the other names."""
    each, further = (SHOTS, 0) if bank.shared_labels else (1, FURTHER)
    drawn = [_draw(bank[name], number, each, further, queries, seed=seed) for name in names for number in range(draws)]
    return TaskBank(tuple(problem for problem in drawn if len(problem.test)))


def _draw(task: Task, number: int, each: int, further: int, queries: int, *, seed: int) -> Task:
    rng = np.random.default_rng(list(hashlib.sha256(f"{seed} {number} {task.fingerprint}".encode()).digest()))
    examples = Examples.join([task.train, task.valid])
    labels = np.array(examples.labels)
    chosen = [rng.permutation(np.flatnonzero(labels == label)) for label in task.labels]
    shots = np.concatenate([rows[: max(1, min(each, len(rows) - 1))] for rows in chosen])
    others = rng.permutation(np.setdiff1d(np.arange(len(labels)), shots))
    more = min(further, len(others) // 2)  # half of them at least are left to be answered
    train = examples.take(np.concatenate([shots, others[:more]]))
    asked = examples.take(others[more : more + queries])
    return Task(f"{task.name} {number}", train, test=asked, source=task.source)


def answer_problems(method: Method, problems: TaskBank) -> list[Answered]:
    """What a method answers, the right answers hidden from it."""
    found = answer_targets(method, blind(problems))
    return [
        Answered(one.task, one.answers, label_numbers(task, task.test.labels))
        for one, task in zip(found, problems, strict=True)
    ]


def mean_accuracy(method: Method, problems: TaskBank) -> float:
    """The accuracy of a method, averaged over problems."""
    return float(np.mean([one.accuracy for one in answer_problems(method, problems)]))


def choose(values: Sequence[Value], make: Callable[[Value], Method], problems: TaskBank) -> Value:
    """The value under which a method answers the problems best; of equals, or without problems, the first."""
    if not len(problems):
        return values[0]
    return max(values, key=lambda value: mean_accuracy(make(value), problems))
