"""Examples -> fewer examples: support sets, training episodes, and splits, all drawn at random.

Paper: the support set *S* and the batch *B* of section 2, and the two few-shot settings of section 4: `draw_support`
(the same number of shots for every label, as on Amazon) and `draw_one_plus` (one for every label and a handful of
further ones, as on the intents). Chance comes only from the generator given; the same generator, the same draw.
"""

from dataclasses import dataclass

import numpy as np

from manymetrics.errors import DataError, NotEnoughExamples
from manymetrics.values import Examples, Ints

SHARES = (0.64, 0.16, 0.20)


@dataclass(frozen=True, eq=False)
class Support:
    """The rows drawn as shots, and all the others."""

    rows: Ints  # (shots,)
    rest: Ints  # (others,), ascending


@dataclass(frozen=True, eq=False)
class Episode:
    """A small task inside a task: rows to compare with, rows to classify, and the labels among which to choose."""

    support_rows: Ints  # (support,), label by label in the order of `labels`
    query_rows: Ints  # (queries,), disjoint from the support
    labels: Ints  # (ways,)


@dataclass(frozen=True)
class Split:
    """Examples parted in three."""

    train: Examples
    valid: Examples
    test: Examples


def draw_support(examples: Examples, shots: int, *, rng: np.random.Generator) -> Support:
    """Draw `shots` examples of every label."""
    _at_least(1, shots=shots)
    drawn = []
    for label, rows in _rows_by_label(examples).items():
        if len(rows) < shots:
            raise NotEnoughExamples(
                f"Found {_count(len(rows))} of {label!r}, a {shots}-shot support set needs {shots}. "
                f"Ask for shots={len(rows)}, or add examples."
            )
        drawn.append(rng.choice(rows, shots, replace=False))
    return _support(np.concatenate(drawn), len(examples))


def draw_one_plus(examples: Examples, extra: int, *, rng: np.random.Generator) -> Support:
    """Draw one example of every label, and `extra` further ones of whatever label."""
    _at_least(0, extra=extra)
    first = np.array([rng.choice(rows) for rows in _rows_by_label(examples).values()], dtype=np.int64)  # (labels,)
    others = _support(first, len(examples)).rest
    if len(others) < extra:
        raise NotEnoughExamples(
            f"Found {_count(len(others))} beyond the first of each label, but {extra} further ones were asked for. "
            f"Ask for extra={len(others)}, or add examples."
        )
    return _support(np.concatenate([first, rng.choice(others, extra, replace=False)]), len(examples))


def split_examples(
    examples: Examples, shares: tuple[float, float, float] = SHARES, *, rng: np.random.Generator
) -> Split:
    """Part examples into train, valid and test, each label by itself; a label with few examples fills train first.

    Rows keep their order within each part.
    """
    if len(shares) != 3 or min(shares) < 0 or abs(sum(shares) - 1) > 1e-9:
        raise DataError(f"The shares are {shares}, expected three that add up to 1. Try {SHARES}.")
    parts: tuple[list[int], list[int], list[int]] = ([], [], [])
    for rows in _rows_by_label(examples).values():
        mixed = rng.permutation(rows).tolist()
        test = min(round(shares[2] * len(mixed)), len(mixed) - 1)
        valid = min(round(shares[1] * len(mixed)), len(mixed) - 1 - test)
        train = len(mixed) - valid - test
        for part, taken in zip(
            parts, (mixed[:train], mixed[train : train + valid], mixed[train + valid :]), strict=True
        ):
            part.extend(taken)
    return Split(*(examples.take(sorted(part)) for part in parts))


class EpisodeDrawer:
    """Draws episodes from the labels of one task; made once, so that a draw costs little."""

    def __init__(self, labels: Ints) -> None:
        labels = np.asarray(labels)
        values, places = np.unique(labels, return_inverse=True)
        order = np.argsort(places, kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(places, minlength=len(values)))[:-1]) if len(values) else []
        kept = [(value, rows) for value, rows in zip(values, groups, strict=True) if len(rows) >= 2]
        if len(kept) < 2:
            raise NotEnoughExamples(
                f"Found {len(kept)} label{'' if len(kept) == 1 else 's'} with two examples or more, "
                "an episode needs two such labels. Add examples, or leave the task out of training."
            )
        self._labels = np.array([value for value, _ in kept])  # (labels with two examples or more,)
        self._rows = [rows for _, rows in kept]

    def draw(self, *, ways: int, shots: int, queries: int, rng: np.random.Generator) -> Episode:
        """Draw up to `ways` labels, up to `shots` support rows of each, and up to `queries` query rows in all.

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
        return Episode(np.concatenate(support), np.concatenate(query)[first], self._labels[chosen])


def draw_episode(labels: Ints, *, ways: int, shots: int, queries: int, rng: np.random.Generator) -> Episode:
    """Draw one episode; who draws many from the same labels makes an `EpisodeDrawer`."""
    return EpisodeDrawer(labels).draw(ways=ways, shots=shots, queries=queries, rng=rng)


def _rows_by_label(examples: Examples) -> dict[str, Ints]:
    if not len(examples):
        raise NotEnoughExamples("Found no examples to draw from. Give at least one example of each label.")
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(examples.labels):
        rows.setdefault(label, []).append(row)
    return {label: np.array(rows[label], dtype=np.int64) for label in sorted(rows)}


def _support(rows: Ints, total: int) -> Support:
    return Support(rows, np.setdiff1d(np.arange(total), rows, assume_unique=True))


def _at_least(least: int, **numbers: int) -> None:
    for name, number in numbers.items():
        if number < least:
            raise DataError(f"Found {name}={number}, expected {least} or more. Ask for {name}={least}.")


def _count(number: int) -> str:
    return f"{number} example{'' if number == 1 else 's'}"
