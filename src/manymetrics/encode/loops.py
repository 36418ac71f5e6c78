"""The loops that touch every token, in numpy: for the first few texts of a process, and to say what each loop means.

`kernels` holds the same loops compiled. They are many times as fast, but to load a compiler takes longer than a few
examples and a text do here, and to compile takes longer still. Both give the same bits, so it does not matter which
ones a text met.
"""

import sys
from typing import Any

import numpy as np

from manymetrics.values import Bools, Floats, Ints

LANES = 16  # filters that the compiled loops handle at once: a line of the cache
BASIS, PRIME, SPREAD = 14695981039346656037, 1099511628211, 0x9E3779B97F4A7C15  # of hashes: FNV-1a, the golden ratio
FEW = 100_000  # tokens or letters that numpy is done with before the compiled loops are loaded
SPACE = 32
COMPILED = "manymetrics.encode.kernels"


class _Choice:
    """Numpy's loops for the first tokens or letters of a process; the compiled ones once they are worth loading."""

    def __init__(self, few: int) -> None:
        self._left = few

    def __call__(self, count: int) -> Any:
        """The loops to use for so many tokens or letters: this module's, or those of `kernels`."""
        self._left -= count
        if self._left >= 0 and COMPILED not in sys.modules:
            return sys.modules[__name__]
        from manymetrics.encode import kernels  # slow to load

        return kernels


loops_for = _Choice(FEW)


def largest_responses(projected: Floats, words: Ints, starts: Ints, best: Floats, column: int) -> None:
    """The ramp of the largest response of each filter over each text: added to the bias in `best`, from a column on.

    projected (words + 1, groups, window, LANES) float32, the last tap of a word first, the last word zeros;
    best (texts, all filters) float32.
    """
    outside, window = len(projected) - 1, projected.shape[2]
    first, end = _bounds(starts)
    rows = []
    for tap in range(window):
        at = np.arange(len(words)) + tap - window // 2
        inside = (first <= at) & (at < end)
        rows.append(projected[np.where(inside, words[np.where(inside, at, 0)], outside), :, window - 1 - tap])
    pairs = [rows[0] + rows[1], rows[2] + rows[3], rows[4]] if window == 5 else rows  # as the compiled loop adds them
    responses = sum(pairs[1:], start=pairs[0])  # (tokens, groups, LANES)
    filled = np.diff(starts) > 0
    largest = np.full((len(filled), projected[0, :, 0].size), -np.inf, dtype=np.float32)
    if filled.any():
        most = np.maximum.reduceat(responses, starts[:-1][filled], axis=0)  # (texts with tokens, groups, LANES)
        largest[filled] = most.reshape(len(most), -1)
    ours = best[:, column : column + largest.shape[1]]
    ours[:] = np.maximum(largest + ours, 0)


def average_rows(table: Floats, words: Ints, starts: Ints) -> Floats:
    """The mean of each text's rows of the table: (texts, dimensions) float32."""
    lengths = np.diff(starts)
    means = np.zeros((len(lengths), table.shape[1]), dtype=np.float32)
    for place in range(lengths.max(initial=0)):  # one after the other, as the compiled loop adds them
        longer = np.flatnonzero(lengths > place)
        means[longer] += table[words[starts[longer] + place]]
    return means * (1 / np.maximum(1, lengths)).astype(np.float32)[:, None]


def hash_grams(letters: Ints, starts: Ints, shortest: int, longest: int, buckets: int) -> tuple[Ints, Ints]:
    """The hash of every run of `shortest` to `longest` letters within words: buckets, and the runs' text boundaries.

    letters (all,) code points with 32 (a space) around every word; runs hold a space only at their ends.
    """
    codes, inside = _hash_from_each(letters, starts, longest)  # (letters, longest)
    for length in range(2, longest):
        at = np.minimum(np.arange(len(letters)) + length - 1, len(letters) - 1)
        inside[:, length] &= inside[:, length - 1] & (letters[at] != SPACE)
    inside[:, : shortest - 1] = False
    return (codes[inside] % np.uint64(buckets)).astype(np.int32), _count_up(inside, starts)


def hash_runs(ids: Ints, starts: Ints, longest: int, buckets: int) -> tuple[Ints, Ints]:
    """The hash of every run of 1 to `longest` tokens: buckets (runs,), and the texts' boundaries (texts + 1,)."""
    codes, inside = _hash_from_each(ids, starts, longest)  # (tokens, longest)
    spread = codes[inside] * np.uint64(SPREAD) >> np.uint64(20)
    return (spread % np.uint64(buckets)).astype(np.int32), _count_up(inside, starts)


def _hash_from_each(items: Ints, starts: Ints, longest: int) -> tuple[Ints, Bools]:
    """The hash of the runs of every length from every place, and which of them lie within a text."""
    places, end = np.arange(len(items)), _bounds(starts)[1]
    codes = np.empty((len(items), longest), dtype=np.uint64)
    inside = places[:, None] + np.arange(longest) < end[:, None]
    code = np.full(len(items), BASIS, dtype=np.uint64)
    for length in range(longest):
        code = (code ^ items[np.minimum(places + length, len(items) - 1)].astype(np.uint64)) * np.uint64(PRIME)
        codes[:, length] = code ^ (code >> np.uint64(29))
    return codes, inside


def _bounds(starts: Ints) -> tuple[Ints, Ints]:
    """The first place and the end of the text that each token is in: (tokens,), (tokens,)."""
    lengths = np.diff(starts)
    return np.repeat(starts[:-1], lengths), np.repeat(starts[1:], lengths)


def _count_up(inside: Bools, starts: Ints) -> Ints:
    """Where the runs of each text begin and end: (texts + 1,)."""
    return np.concatenate([[0], np.cumsum(inside.sum(axis=1))])[starts].astype(np.int64)
