"""The loops over every token of a convolution, compiled.

With fixed word vectors a convolution over a text is a sum of looked-up rows: each distinct word is projected once
through every tap of the window (the taps of one word stand side by side), and a window's response is the sum of one
row per tap. Positions outside the text add nothing, and only windows centred on a token of the text compete in the
maximum, so a text's vector never depends on the batch it is in.
"""

from typing import Any

import numba
import numpy as np

from manymetrics.values import Floats, Ints


@numba.njit(cache=True, nogil=True, fastmath={"contract", "nsz", "nnan"})
def largest_responses(
    projected: Floats, words: Ints, starts: Ints, best: Floats, column: int
) -> None:  # pragma: no cover - compiled
    """What `convolution.largest_responses` gives, to the bit.

    All filters of a window are added up before the next one. Whether arrays overlap the compiled loop has to ask at
    every window: with a few filters at a time that would take as long as the sums.
    """
    outside, window, filters = len(projected) - 1, projected.shape[1], projected.shape[2]
    half = window // 2
    total, highest = np.empty(filters, dtype=np.float32), np.empty(filters, dtype=np.float32)
    for text in range(len(starts) - 1):
        start, end = starts[text], starts[text + 1]
        highest[:] = -np.inf
        for centre in range(start, end):
            if window == 5:
                one = projected[words[centre - 2] if centre - 2 >= start else outside, 4]
                two = projected[words[centre - 1] if centre - 1 >= start else outside, 3]
                three = projected[words[centre], 2]
                four = projected[words[centre + 1] if centre + 1 < end else outside, 1]
                five = projected[words[centre + 2] if centre + 2 < end else outside, 0]
                for unit in range(filters):
                    response = ((one[unit] + two[unit]) + (three[unit] + four[unit])) + five[unit]
                    highest[unit] = max(highest[unit], response)
            else:
                total[:] = np.float32(0)
                for at in range(max(start, centre - half), min(end, centre + half + 1)):
                    total += projected[words[at], window - 1 - (at - centre + half)]
                highest[:] = np.maximum(highest, total)
        for unit in range(filters):
            best[text, column + unit] = max(highest[unit] + best[text, column + unit], np.float32(0))


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
