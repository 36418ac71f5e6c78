"""The loops over every token of a convolution, compiled.

With fixed word vectors a convolution over a text is a sum of looked-up rows: each distinct word is projected once
through every tap of the window (the taps of one word stand side by side), and a window's response is the sum of one
row per tap. Positions outside the text add nothing, and only windows centred on a token of the text compete in the
maximum, so a text's vector never depends on the batch it is in.
"""

from typing import Any

import numba
import numpy as np

from manymetrics.encode.convolution import LANES
from manymetrics.values import Floats, Ints


@numba.njit(cache=True, nogil=True, fastmath={"contract", "nsz", "nnan"})
def largest_responses(
    projected: Floats, words: Ints, starts: Ints, best: Floats, column: int
) -> None:  # pragma: no cover - compiled
    """What `convolution.largest_responses` gives, to the bit.

    One group of filters after the other goes over all texts: what it needs of a frequent word is a few lines of the
    cache, and thousands of such words stay near. The rows of a window of five move on by one from token to token.
    """
    outside, groups, window, half = len(projected) - 1, projected.shape[1], projected.shape[2], projected.shape[2] // 2
    total, highest = np.empty(LANES, dtype=np.float32), np.empty(LANES, dtype=np.float32)
    for group in range(groups):
        for text in range(len(starts) - 1):
            start, end = starts[text], starts[text + 1]
            highest[:] = -np.inf
            if window == 5:
                first, second = outside, outside
                third = words[start] if start < end else outside
                fourth = words[start + 1] if start + 1 < end else outside
                for centre in range(start, end):
                    fifth = words[centre + 2] if centre + 2 < end else outside
                    one, two, three = (
                        projected[first, group, 4],
                        projected[second, group, 3],
                        projected[third, group, 2],
                    )
                    four, five = projected[fourth, group, 1], projected[fifth, group, 0]
                    for lane in range(LANES):
                        response = ((one[lane] + two[lane]) + (three[lane] + four[lane])) + five[lane]
                        highest[lane] = max(highest[lane], response)
                    first, second, third, fourth = second, third, fourth, fifth
            else:
                for centre in range(start, end):
                    total[:] = np.float32(0)
                    for at in range(max(start, centre - half), min(end, centre + half + 1)):
                        total += projected[words[at], group, window - 1 - (at - centre + half)]
                    highest[:] = np.maximum(highest, total)
            for lane in range(LANES):
                place = column + group * LANES + lane
                best[text, place] = max(highest[lane] + best[text, place], np.float32(0))


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
