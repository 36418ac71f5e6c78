"""A task under other label names: numbers, the names shuffled, or the names in German (german.txt)."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from manymetrics.values import Examples, Task

NUMBERED, SHUFFLED, GERMAN = "numbered", "shuffled", "in German"
MOST_UNKNOWN = 0.1  # share of the words of a bank's names that may stay as they are


def rename(task: Task, how: str) -> Task:
    """The same task under label names that say nothing, the wrong thing, or the right one in another language."""
    if how == NUMBERED:
        new = {label: f"label_{place}" for place, label in enumerate(task.labels)}
    elif how == GERMAN:
        known = german_words()  # word by word; those that are not known stay as they are
        names = [" ".join(known.get(word, word) for word in name.lower().split()) for name in task.label_names]
        new = {label: name if names.count(name) == 1 else label for label, name in zip(task.labels, names, strict=True)}
    else:
        rng = np.random.default_rng(len(task.labels))
        new = dict(zip(task.labels, rng.permutation(task.labels).tolist(), strict=True))

    def renamed(examples: Examples) -> Examples:
        return Examples(examples.texts, tuple(new[label] for label in examples.labels))

    return replace(task, train=renamed(task.train), valid=renamed(task.valid), test=renamed(task.test))


@cache
def german_words() -> dict[str, str]:
    """English words of label names, and the German ones."""
    lines = Path(__file__).with_name("german.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split() for line in lines)


def can_be_german(names: Iterable[str]) -> bool:
    """Whether enough of the words are known."""
    words = [word for name in names for word in name.lower().split()]
    return sum(word not in german_words() for word in words) <= MOST_UNKNOWN * len(words)
