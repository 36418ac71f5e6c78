"""Examples -> fewer examples: training episodes and splits, drawn at random.

Paper: the support set *S* and the batch *B* of section 2. Randomness comes only from the generator given.
"""

from dataclasses import dataclass

import numpy as np

from manymetrics.collect.duplicates import rows_alike
from manymetrics.errors import DataError, NotEnoughExamples
from manymetrics.values import Examples, Ints

SHARES = (0.64, 0.16, 0.20)


@dataclass(frozen=True)
class Split:
    """Examples split in three."""

    train: Examples
    valid: Examples
    test: Examples


def split_examples(
    examples: Examples, shares: tuple[float, float, float] = SHARES, *, rng: np.random.Generator
) -> Split:
    """Split examples into train, valid and test, each label by itself; a label with few examples fills train first.

    Texts that are the same but for case, spaces and punctuation at the ends stay together, so that none of train is
    asked for again in test: the shares are shares of distinct texts. Those found most often, and those found under
    several labels, go to train. Rows keep their order within each part.
    """
    if len(shares) != 3 or min(shares) < 0 or abs(sum(shares) - 1) > 1e-9:
        raise DataError(f"The shares are {shares}, expected three that add up to 1. Try {SHARES}.")
    parts: tuple[list[int], list[int], list[int]] = ([], [], [])
    groups, disputed = _groups_by_label(examples)
    for label, own in sorted(groups.items()):
        mixed = [own[place] for place in rng.permutation(len(own))]
        mixed.sort(key=len, reverse=True)
        total = len(own) + len(disputed[label])
        test = min(round(shares[2] * total), total - 1)
        valid = min(round(shares[1] * total), total - 1 - test)
        first = max(0, total - valid - test - len(disputed[label]))
        last = max(first, len(own) - test)
        for part, taken in zip(parts, (mixed[:first], mixed[first:last], mixed[last:]), strict=True):
            part.extend(row for rows in taken for row in rows)
    parts[0].extend(set().union(*(rows for found in disputed.values() for rows in found)))
    return Split(*(examples.take(sorted(part)) for part in parts))


class EpisodeSampler:
    """Draws episodes from the labels of one task; made once, so that a draw costs little."""

    def __init__(self, labels: Ints) -> None:
        labels = np.asarray(labels)
        values, places = np.unique(labels, return_inverse=True)
        order = np.argsort(places, kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(places, minlength=len(values)))[:-1]) if len(values) else []
        kept = [rows for rows in groups if len(rows) >= 2]
        if len(kept) < 2:
            raise NotEnoughExamples(
                f"Found {len(kept)} label{'' if len(kept) == 1 else 's'} with two examples or more, "
                "an episode needs two such labels. Add examples, or leave the task out of training."
            )
        self._rows = kept

    def sample(self, *, ways: int, shots: int, queries: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """The rows of an episode: up to `shots` support rows of up to `ways` labels, up to `queries` query rows in all.

        Every label keeps at least one row that could be a query. The queries are spread evenly over the labels: a
        row's turn is its place within its label, and rows with the same turn come in random order.
        """
        _at_least(2, ways=ways)
        _at_least(1, shots=shots, queries=queries)
        chosen = rng.permutation(len(self._rows))[:ways]
        support, query, turns = [], [], []
        for label in chosen:
            rows = self._rows[label]
            drawn = rows[rng.choice(len(rows), min(len(rows), shots + queries), replace=False)]
            kept = min(shots, len(rows) - 1)
            support.append(drawn[:kept])
            query.append(drawn[kept:])
            turns.append(np.arange(len(drawn) - kept))
        turn = np.concatenate(turns)
        first = np.argsort(turn + rng.random(len(turn)))[:queries]
        return np.concatenate(support), np.concatenate(query)[first]


def _groups_by_label(examples: Examples) -> tuple[dict[str, list[list[int]]], dict[str, list[list[int]]]]:
    """Rows of alike texts by label: those of one label, and those that several labels claim."""
    if not len(examples):
        raise NotEnoughExamples("Found no examples to draw from. Give at least one example of each label.")
    own: dict[str, list[list[int]]] = {label: [] for label in examples.labels}
    disputed: dict[str, list[list[int]]] = {label: [] for label in examples.labels}
    for rows in rows_alike(examples.texts):
        labels = {examples.labels[row] for row in rows}
        for label in labels:
            (own if len(labels) == 1 else disputed)[label].append(rows)
    return own, disputed


def _at_least(least: int, **numbers: int) -> None:
    for name, number in numbers.items():
        if number < least:
            raise DataError(f"Found {name}={number}, expected {least} or more. Ask for {name}={least}.")
