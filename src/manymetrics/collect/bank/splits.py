"""Copies of texts and of labels, and examples -> train, valid and test, so that copies of a text stay in one of them.

Two texts are copies if they differ only in case, white space, width of characters, or punctuation at their ends. Labels
are similar if they differ only in case or white space: to a classifier `Positive` and `positive` are two labels.
"""

import hashlib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from manymetrics.errors import list_first
from manymetrics.values import Examples

SHARES = (0.64, 0.16, 0.20)  # of train, valid and test

SimilarLabels = dict[str, int]  # label -> number of its examples, the most frequent label first
RowGroups = dict[str, list[list[int]]]  # label -> groups of rows; the texts of a group are copies


def split_examples(examples: Examples) -> tuple[Examples, Examples, Examples]:
    """Split examples into train, valid and test, label by label; a label with few examples fills train first.

    Copies of a text stay together, so that no text of train is in test: the shares are shares of distinct texts. Texts
    with the most copies, and texts with several labels, go to train. Rows keep their order within each part. The seed
    is a hash of the examples.
    """
    content = "\0".join([*examples.texts, "", *examples.labels]).encode()
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(content).digest()))
    train, valid, test = set[int](), set[int](), set[int]()
    unique, ambiguous = _group_copies(examples)
    for label, groups in sorted(unique.items()):
        shuffled = [groups[index] for index in rng.permutation(len(groups))]
        shuffled.sort(key=len, reverse=True)
        total = len(groups) + len(ambiguous[label])
        n_test = min(round(SHARES[2] * total), total - 1)
        n_valid = min(round(SHARES[1] * total), total - 1 - n_test)
        n_train = max(0, total - n_valid - n_test - len(ambiguous[label]))
        last = max(n_train, len(groups) - n_test)
        train.update(*shuffled[:n_train], *ambiguous[label])
        valid.update(*shuffled[n_train:last])
        test.update(*shuffled[last:])
    return examples.take(sorted(train)), examples.take(sorted(valid)), examples.take(sorted(test))


def normal_form(text: str) -> str:
    """The form that all copies of a text share: "  Yes!" and "yes" are copies."""
    plain = text.casefold()
    if not plain.isascii():
        plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    plain = " ".join(plain.split())
    marks = {character for character in plain if unicodedata.category(character).startswith("P")}
    return plain.strip("".join({" ", *marks})) or plain  # a text of punctuation only is its own form


def without_copies(texts: Iterable[str]) -> tuple[str, ...]:
    """The texts without those that have a copy before them."""
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(normal_form(text), text)
    return tuple(first.values())


def _group_copies(examples: Examples) -> tuple[RowGroups, RowGroups]:
    """Groups of copies by label: those with one label, and those with several."""
    copies = defaultdict(list)
    for row, text in enumerate(examples.texts):
        copies[normal_form(text)].append(row)
    unique, ambiguous = (RowGroups({label: [] for label in examples.labels}) for _ in range(2))
    for rows in copies.values():
        labels = {examples.labels[row] for row in rows}
        for label in labels:
            (unique if len(labels) == 1 else ambiguous)[label].append(rows)
    return unique, ambiguous


def describe_similar_labels(groups: Mapping[str, tuple[SimilarLabels, ...]], *, joined: bool = False) -> str:
    """A sentence on the groups of similar labels of each task; empty if there are none."""
    listed = [
        f"{task}: " + ", ".join(f"{label!r} ({count:,})" for label, count in group.items())
        for task, of_task in groups.items()
        for group in of_task
    ]
    if not listed:
        return ""
    first = list_first(listed, "; ", "; and {:,} more groups")
    verb = "are joined, each group under its most frequent label" if joined else "count as different labels"
    cure = "" if joined else " `import --fold-labels` joins them."
    return f"Labels that differ only in case or white space {verb}: {first}.{cure}"


def similar_labels(*parts: Examples) -> tuple[SimilarLabels, ...]:
    """The groups of labels of a task's examples that differ only in case or white space."""
    counts = Counter(label for part in parts for label in part.labels)
    groups: defaultdict[str, SimilarLabels] = defaultdict(dict)
    for label, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        groups[" ".join(label.casefold().split())][label] = count
    return tuple(group for group in groups.values() if len(group) > 1)


def fold_labels(parts: Mapping[str, Examples]) -> tuple[dict[str, Examples], tuple[SimilarLabels, ...]]:
    """The parts of a task with one label for each group, its most frequent one; and the groups."""
    groups = similar_labels(*parts.values())
    folded = {label: next(iter(group)) for group in groups for label in group}
    return {
        name: Examples(part.texts, tuple(folded.get(label, label) for label in part.labels))
        for name, part in parts.items()
    }, groups
