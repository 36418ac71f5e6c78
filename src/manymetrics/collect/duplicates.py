"""Texts -> groups of texts that are the same but for case, spaces, width of characters and punctuation at the ends."""

import unicodedata
from collections.abc import Iterable

from manymetrics.values import Task


def normal_form(text: str) -> str:
    """What is left of a text when all that does not make it another one is taken off: "  Yes!" and "yes" are alike."""
    plain = text.casefold()
    if not plain.isascii():
        plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    plain = " ".join(plain.split())
    start, end = 0, len(plain)
    while start < end and _is_punctuation(plain[start]):
        start += 1
    while start < end and _is_punctuation(plain[end - 1]):
        end -= 1
    return plain[start:end] or plain  # a text of nothing but punctuation is what it is


def rows_alike(texts: Iterable[str]) -> list[list[int]]:
    """The rows of the texts, those of alike texts together, in the order of their first."""
    groups: dict[str, list[int]] = {}
    for row, text in enumerate(texts):
        groups.setdefault(normal_form(text), []).append(row)
    return list(groups.values())


def count_duplicates(task: Task) -> int:
    """How many examples of a task have a text that another one before them has."""
    texts = [text for part in (task.train, task.valid, task.test) for text in part.texts]
    return len(texts) - len(set(map(normal_form, texts)))


def count_shared(task: Task) -> int:
    """How many examples of valid and test have a text that is in train too."""
    known = set(map(normal_form, task.train.texts))
    return sum(normal_form(text) in known for part in (task.valid, task.test) for text in part.texts)


def _is_punctuation(character: str) -> bool:
    return character == " " or unicodedata.category(character).startswith("P")
