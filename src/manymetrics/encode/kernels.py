"""The loops that touch every token, compiled.

With fixed word vectors a convolution over a text is a sum of looked-up rows: each distinct word is projected once
through every tap of the window (`projected[word, tap]` are `width` numbers, the taps of one word side by side), and a
window's response is the sum of one row per tap. Positions outside the text add nothing, and only windows centred on a
token of the text compete in the maximum, so a text's vector never depends on the batch it is in.
"""

from typing import Any

import numba
import numpy as np

from manymetrics.values import Floats, Ints


@numba.njit(cache=True, nogil=True, fastmath={"contract", "nsz", "nnan"})
def largest_responses(projected: Floats, words: Ints, starts: Ints) -> Any:  # pragma: no cover - compiled
    """The largest response of each filter over each text: (texts, width) float32.

    projected (words + 1, window, width) float32 whose last row is zeros: what stands outside a text. For the usual
    window of five the rows of neighbouring windows are handed along and the five sums are one loop without a branch;
    that loop is all the time there is.
    """
    texts, window, width = len(starts) - 1, projected.shape[1], projected.shape[2]
    outside, half = len(projected) - 1, window // 2
    best = np.full((texts, width), -np.inf, dtype=np.float32)
    around = np.empty(window, dtype=np.int64)
    total = np.empty(width, dtype=np.float32)
    for text in range(texts):
        start, end = starts[text], starts[text + 1]
        highest = best[text]
        for tap in range(window - 1):
            at = start + tap - half
            around[tap + 1] = words[at] if start <= at < end else outside
        for centre in range(start, end):
            for tap in range(window - 1):
                around[tap] = around[tap + 1]
            around[window - 1] = words[centre + half] if centre + half < end else outside
            if window == 5:
                first, second, third = projected[around[0], 0], projected[around[1], 1], projected[around[2], 2]
                fourth, fifth = projected[around[3], 3], projected[around[4], 4]
                for unit in range(width):
                    response = (first[unit] + second[unit]) + (third[unit] + fourth[unit]) + fifth[unit]
                    highest[unit] = max(highest[unit], response)
            else:
                total[:] = np.float32(0)
                for tap in range(window):
                    row = projected[around[tap], tap]
                    for unit in range(width):
                        total[unit] += row[unit]
                for unit in range(width):
                    highest[unit] = max(highest[unit], total[unit])
    return best


@numba.njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
def pool_windows(projected: Floats, words: Ints, starts: Ints) -> tuple[Any, Any]:  # pragma: no cover - compiled
    """The largest response of each filter over each text, and the place of the window that gave it, for training.

    projected (words, window, width) float32, words (tokens,) rows of it, starts (texts + 1,).
    """
    texts, window, width = len(starts) - 1, projected.shape[1], projected.shape[2]
    half = window // 2
    best = np.full((texts, width), -np.inf, dtype=np.float32)
    where = np.zeros((texts, width), dtype=np.int32)
    response = np.empty(width, dtype=np.float32)
    for text in range(texts):
        start, end = starts[text], starts[text + 1]
        highest, place = best[text], where[text]
        for centre in range(start, end):
            response[:] = np.float32(0)
            for tap in range(window):
                at = centre + tap - half
                if start <= at < end:
                    row = projected[words[at], tap]
                    for unit in range(width):
                        response[unit] += row[unit]
            for unit in range(width):
                if response[unit] > highest[unit]:
                    highest[unit] = response[unit]
                    place[unit] = centre
    return best, where


@numba.njit(cache=True, nogil=True)
def spread_to_windows(
    slopes: Floats, where: Ints, words: Ints, starts: Ints, shape: tuple[int, int, int]
) -> Any:  # pragma: no cover - compiled
    """The gradient of `pool_windows`: each filter's slope goes to the words of its winning window, and nowhere else."""
    window = shape[1]
    half = window // 2
    gradient = np.zeros(shape, dtype=np.float32)
    for text in range(slopes.shape[0]):
        start, end = starts[text], starts[text + 1]
        for unit in range(slopes.shape[1]):
            slope = slopes[text, unit]
            if slope != 0:
                centre = where[text, unit]
                for tap in range(window):
                    at = centre + tap - half
                    if start <= at < end:
                        gradient[words[at], tap, unit] += slope
    return gradient


@numba.njit(cache=True, nogil=True)
def move_rows(table: Floats, moments: Floats, words: Ints, slopes: Floats, pace: Floats) -> None:  # pragma: no cover
    """One step of Adam on the rows that occurred, in place; the others cost nothing and stay where they are.

    table (vocabulary, dimensions); moments (2, vocabulary, dimensions), running means of slopes and of their squares;
    pace (3,), the learning rate and how far the two means have warmed up.
    """
    rate, first, second = pace
    for place in range(len(words)):
        row = table[words[place]]
        mean, square, slope = moments[0, words[place]], moments[1, words[place]], slopes[place]
        for unit in range(len(row)):
            mean[unit] = np.float32(0.9) * mean[unit] + np.float32(0.1) * slope[unit]
            square[unit] = np.float32(0.999) * square[unit] + np.float32(0.001) * slope[unit] * slope[unit]
            row[unit] -= np.float32(rate * (mean[unit] / first) / (np.sqrt(square[unit] / second) + 1e-8))


@numba.njit(cache=True, nogil=True)
def average_rows(table: Floats, words: Ints, starts: Ints) -> Any:  # pragma: no cover - compiled
    """The mean of each text's rows of the table: (texts, dimensions) float32."""
    texts, dimensions = len(starts) - 1, table.shape[1]
    means = np.zeros((texts, dimensions), dtype=np.float32)
    for text in range(texts):
        total = means[text]
        for at in range(starts[text], starts[text + 1]):
            row = table[words[at]]
            for unit in range(dimensions):
                total[unit] += row[unit]
        share = np.float32(1 / max(1, starts[text + 1] - starts[text]))
        for unit in range(dimensions):
            total[unit] *= share
    return means


@numba.njit(cache=True, nogil=True)
def hash_grams(letters: Ints, starts: Ints, shortest: int, longest: int, buckets: int) -> Any:  # pragma: no cover
    """The hash of every run of `shortest` to `longest` letters within words: buckets, and the runs' text boundaries.

    letters (all,) code points with 32 (a space) around every word; runs hold a space only at their ends.
    """
    texts = len(starts) - 1
    grams = np.empty(len(letters) * (longest - shortest + 1), dtype=np.int32)
    bounds = np.zeros(texts + 1, dtype=np.int64)
    count = 0
    for text in range(texts):
        end = starts[text + 1]
        for first in range(starts[text], end):
            code = np.uint64(14695981039346656037)
            for length in range(1, longest + 1):
                at = first + length - 1
                if at >= end:
                    break
                code = (code ^ np.uint64(letters[at])) * np.uint64(1099511628211)
                if length >= shortest:
                    mixed = code ^ (code >> np.uint64(29))
                    grams[count] = np.int32(mixed % np.uint64(buckets))
                    count += 1
                if length > 1 and letters[at] == 32:
                    break
        bounds[text + 1] = count
    return grams[:count], bounds


@numba.njit(cache=True, nogil=True)
def count_texts(grams: Ints, bounds: Ints, found: Ints) -> None:  # pragma: no cover - compiled
    """Add to `found`, in place, the number of texts each bucket occurs in; text i: grams[bounds[i]:bounds[i + 1]]."""
    last = np.full(len(found), -1, dtype=np.int64)
    for text in range(len(bounds) - 1):
        for at in range(bounds[text], bounds[text + 1]):
            if last[grams[at]] != text:
                last[grams[at]] = text
                found[grams[at]] += 1
