"""The loops that touch every token, compiled; `loops` says in numpy what those that prediction needs must give.

With fixed word vectors a convolution over a text is a sum of looked-up rows: each distinct word is projected once
through every tap of the window (the taps of one word stand side by side), and a window's response is the sum of one
row per tap. Positions outside the text add nothing, and only windows centred on a token of the text compete in the
maximum, so a text's vector never depends on the batch it is in.
"""

from typing import Any, cast

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from manymetrics.encode.loops import BASIS, LANES, PRIME, SPACE, SPREAD
from manymetrics.values import Floats, Ints


@intrinsic
def _largest_sum(_typing: Any, best: Any, table: Any, words: Any, _places: Any) -> Any:
    """The ramp of the largest sum of five rows over one text, for LANES filters; the sums never leave a register.

    `best`, flat, holds the bias where the answer goes; `table`, flat, five rows of every word for these filters. The
    `_places` are where the first word's rows begin, how far the words are apart and where the rows of what is outside
    begin; the text's first token and its end; and where the answer goes. Written for LLVM by hand: of a loop over
    arrays the compiler cannot know that they do not overlap, and it would ask at every window, which takes as long as
    the sums.
    """
    vector, room = ir.VectorType(ir.FloatType(), LANES), cast(Any, cgutils.alloca_once_value)

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        answer, source, tokens = (
            context.make_array(signature.args[at])(context, builder, given[at]).data for at in range(3)
        )
        begin, apart, outside, start, end, to = (builder.extract_value(given[3], at) for at in range(6))
        number = begin.type

        def lanes(at: Any, tap: int = 0) -> Any:
            return builder.bitcast(builder.gep(at, [number(tap * LANES)]), vector.as_pointer())

        def rows(token: Any) -> Any:
            inside = builder.icmp_signed("<", token, end)
            word = builder.sext(builder.load(builder.gep(tokens, [builder.select(inside, token, start)])), number)
            place = builder.add(begin, builder.mul(word, apart))
            return builder.gep(source, [builder.select(inside, place, outside)])

        def larger(one: Any, other: Any) -> Any:
            return builder.select(builder.fcmp_ordered(">", one, other), one, other)

        nothing = builder.gep(source, [outside])
        seen = [nothing, nothing, rows(start), rows(builder.add(start, number(1)))]
        slots = [room(builder, row) for row in seen]
        highest = room(builder, ir.Constant(vector, [-np.inf] * LANES))
        with cgutils.for_range(builder, builder.sub(end, start)) as loop:
            five = [*map(builder.load, slots), rows(builder.add(builder.add(start, loop.index), number(2)))]
            first, second, third, fourth, fifth = (
                builder.load(lanes(row, 4 - tap), align=4) for tap, row in enumerate(five)
            )
            response = builder.fadd(builder.fadd(builder.fadd(first, second), builder.fadd(third, fourth)), fifth)
            builder.store(larger(response, builder.load(highest)), highest)
            for row, slot in zip(five[1:], slots, strict=True):
                builder.store(row, slot)
        place = lanes(builder.gep(answer, [to]))
        lifted = builder.fadd(builder.load(highest), builder.load(place, align=4))
        builder.store(larger(lifted, ir.Constant(vector, [0.0] * LANES)), place, align=4)
        return context.get_dummy_value()

    places = types.UniTuple(types.int64, 6)  # type: ignore[no-untyped-call]
    return types.void(best, table, words, places), generate


@numba.njit(cache=True, nogil=True, fastmath={"contract", "nsz", "nnan"})
def largest_responses(
    projected: Floats, words: Ints, starts: Ints, best: Floats, column: int
) -> None:  # pragma: no cover - compiled
    """The ramp of the largest response of each filter over each text: added to the bias in `best`, from a column on.

    projected (words + 1, groups, window, LANES) float32: the filters are in groups, and the last word is zeros: what
    stands outside a text. The taps of a word stand in the order in which the windows that pass over it need them, the
    last tap first, so that memory is read forwards. One group after the other goes over all texts: what it needs of a
    frequent word is a few lines of the cache, and thousands of such words stay near. best (texts, all filters)
    float32 has room for the groups' filters from `column` on.
    """
    outside, groups, window, half = len(projected) - 1, projected.shape[1], projected.shape[2], projected.shape[2] // 2
    apart = groups * window * LANES
    flat, answers = projected.reshape(-1), best.reshape(-1)
    total, highest = np.empty(LANES, dtype=np.float32), np.empty(LANES, dtype=np.float32)
    for group in range(groups):
        begin = group * window * LANES
        for text in range(len(starts) - 1):
            start, end, to = starts[text], starts[text + 1], text * best.shape[1] + column + group * LANES
            if window == 5 and start < end:
                places = (begin, apart, begin + outside * apart, start, end, to)
                _largest_sum(answers, flat, words, places)  # type: ignore[call-arg]
                continue
            highest[:] = -np.inf
            for centre in range(start, end):
                total[:] = np.float32(0)
                for at in range(max(start, centre - half), min(end, centre + half + 1)):
                    total += projected[words[at], group, window - 1 - (at - centre + half)]
                highest[:] = np.maximum(highest, total)
            answers[to : to + LANES] = np.maximum(highest + answers[to : to + LANES], np.float32(0))


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
            code = np.uint64(BASIS)
            for length in range(1, longest + 1):
                at = first + length - 1
                if at >= end:
                    break
                code = (code ^ np.uint64(letters[at])) * np.uint64(PRIME)
                if length >= shortest:
                    mixed = code ^ (code >> np.uint64(29))
                    grams[count] = np.int32(mixed % np.uint64(buckets))
                    count += 1
                if length > 1 and letters[at] == SPACE:
                    break
        bounds[text + 1] = count
    return grams[:count], bounds


@numba.njit(cache=True, nogil=True)
def hash_runs(ids: Ints, starts: Ints, longest: int, buckets: int) -> Any:  # pragma: no cover - compiled
    """The hash of every run of 1 to `longest` tokens: buckets (runs,), and the texts' boundaries (texts + 1,)."""
    texts = len(starts) - 1
    runs = np.empty(len(ids) * longest, dtype=np.int32)
    bounds = np.zeros(texts + 1, dtype=np.int64)
    count = 0
    for text in range(texts):
        end = starts[text + 1]
        for first in range(starts[text], end):
            code = np.uint64(BASIS)
            for at in range(first, min(first + longest, end)):
                code = (code ^ np.uint64(ids[at])) * np.uint64(PRIME)
                mixed = code ^ (code >> np.uint64(29))
                runs[count] = np.int32((mixed * np.uint64(SPREAD) >> np.uint64(20)) % np.uint64(buckets))
                count += 1
        bounds[text + 1] = count
    return runs[:count], bounds


@numba.njit(cache=True, nogil=True)
def count_texts(grams: Ints, bounds: Ints, found: Ints) -> None:  # pragma: no cover - compiled
    """Add to `found`, in place, the number of texts each bucket occurs in; text i: grams[bounds[i]:bounds[i + 1]]."""
    last = np.full(len(found), -1, dtype=np.int64)
    for text in range(len(bounds) - 1):
        for at in range(bounds[text], bounds[text + 1]):
            if last[grams[at]] != text:
                last[grams[at]] = text
                found[grams[at]] += 1
