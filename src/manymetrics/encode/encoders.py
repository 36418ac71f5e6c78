"""Text -> vectors, without torch: the three encoders that prediction and adaptation use.

    ConvolutionEncoder   f_k of the paper: a convolution over word vectors, the largest response of each filter, a ramp
    MeanEncoder          the mean of the text's word vectors, as they are given or moved for the bank's tasks
    LexicalEncoder       no vectors: the text's letter runs, weighted by how rare the bank found them

All give rows of length one, so an inner product of two rows is a cosine.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from manymetrics.encode.loops import LANES, loops_for
from manymetrics.encode.tokens import Tokens
from manymetrics.errors import DataError
from manymetrics.values import Floats, Ints

TEXTS_AT_ONCE = 65_536  # bounds the memory of what is made of texts
PROJECTED_AT_ONCE = 2**20  # numbers of the projected table; a larger one is made in parts, which stay in the cache
LETTERS_AT_ONCE = 4096  # texts whose letter runs are held at a time


def unit_rows(rows: Floats) -> Floats:
    """Rows scaled to length one; a row of zeros stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)  # (n, 1)
    return rows / np.where(lengths > 0, lengths, 1)


def moved_words(table: Floats, given: Floats) -> Ints:
    """The rows in which an encoder's own table differs from the vectors it started from."""
    return (
        np.flatnonzero((table != given).any(axis=1)).astype(np.int32) if table is not given else np.zeros(0, np.int32)
    )


@dataclass(frozen=True, eq=False)
class ConvolutionEncoder:
    """*f_k*: filters over windows of word vectors, each giving its largest response over the text."""

    table: Floats  # (vocabulary, dimensions) float32: the word vectors, or a copy in which some have moved
    filters: Floats  # (window, dimensions, width) float32
    bias: Floats  # (width,) float32

    def __post_init__(self) -> None:
        window, dimensions, width = self.filters.shape
        if dimensions != self.table.shape[1] or self.bias.shape != (width,) or window % 2 == 0:
            raise DataError(
                f"Filters of shape {self.filters.shape} with bias {self.bias.shape} do not fit word vectors of "
                f"{self.table.shape[1]} dimensions. Load the encoder with the vectors it was trained on."
            )

    @property
    def width(self) -> int:
        """How many numbers a text becomes."""
        return len(self.bias)

    def responses(self, tokens: Tokens) -> Floats:
        """The ramp of each filter's largest response: (texts, width) float32, not scaled."""
        parts = [self._respond(part) for part in portions(tokens, TEXTS_AT_ONCE)]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.zeros((0, self.width), np.float32)

    def encode(self, tokens: Tokens) -> Floats:
        """*f(x)* for each text, scaled to length one: (texts, width) float32."""
        return unit_rows(self.responses(tokens))

    @cached_property
    def _taps(self) -> tuple[Floats, Floats]:
        """Filters and bias in groups, as the loops want them, the last tap first; what fills the last group is zero.

        (dimensions, groups, window, LANES), (groups * LANES,).
        """
        window, dimensions, width = self.filters.shape
        groups = -(-width // LANES)
        taps = np.zeros((dimensions, window, groups * LANES), dtype=np.float32)
        taps[:, :, :width] = self.filters[::-1].transpose(1, 0, 2)
        grouped = np.ascontiguousarray(taps.reshape(dimensions, window, groups, LANES).swapaxes(1, 2))
        return grouped, np.pad(self.bias, (0, groups * LANES - width))

    def _respond(self, tokens: Tokens) -> Floats:
        """Project the words that occur and look their rows up, for as many groups of filters at a time as have room."""
        words, vectors, (taps, bias) = tokens.words, self.table[tokens.words.distinct], self._taps
        together = min(taps.shape[1], max(1, PROJECTED_AT_ONCE // (len(vectors) * taps[0, 0].size)))
        best, loops = np.empty((len(tokens), len(bias)), dtype=np.float32), loops_for(len(tokens.ids))
        best[:] = bias
        for first in range(0, taps.shape[1], together):
            some = taps[:, first : first + together]
            projected = _in_line((len(vectors) + 1, some[0].size))
            np.matmul(vectors, some.reshape(len(taps), -1), out=projected[:-1])
            projected[-1] = 0  # outside a text
            shaped = projected.reshape(-1, *some.shape[1:])
            loops.largest_responses(shaped, words.places, tokens.starts, best, first * LANES)
        return best[:, : self.width]


def _in_line(shape: tuple[int, int]) -> Floats:
    """Room for numbers, the first of which starts a line of the cache."""
    raw = np.empty(shape[0] * shape[1] + LANES, dtype=np.float32)
    start = -(raw.ctypes.data // raw.itemsize) % LANES
    return raw[start : start + shape[0] * shape[1]].reshape(shape)


@dataclass(frozen=True, eq=False)
class MeanEncoder:
    """The mean of a text's word vectors."""

    table: Floats  # (vocabulary, dimensions) float32: the word vectors, or a copy in which some have moved

    def encode(self, tokens: Tokens) -> Floats:
        """The mean vector of each text, scaled to length one: (texts, dimensions) float32."""
        return unit_rows(loops_for(len(tokens.ids)).average_rows(self.table, tokens.ids, tokens.starts))


def encoder_tensors(encoder: ConvolutionEncoder | MeanEncoder, given: Floats) -> dict[str, Any]:
    """All it takes to make the encoder again, beside the vectors it started from."""
    moved = moved_words(encoder.table, given)
    tensors = {}
    if isinstance(encoder, ConvolutionEncoder):
        tensors = {"filters": encoder.filters, "bias": encoder.bias}
    return tensors | {"moved": moved, "moved_to": encoder.table[moved].astype(np.float16)} if len(moved) else tensors


def open_encoder(tensors: Mapping[str, Any], given: Floats) -> ConvolutionEncoder:
    """The convolution that `encoder_tensors` described."""
    return ConvolutionEncoder(_with_moved(tensors, given), tensors["filters"], tensors["bias"])


def open_mean_encoder(tensors: Mapping[str, Any], given: Floats) -> MeanEncoder:
    """The mean that `encoder_tensors` described."""
    return MeanEncoder(_with_moved(tensors, given))


def _with_moved(tensors: Mapping[str, Any], given: Floats) -> Floats:
    if "moved" not in tensors:
        return given
    table = given.copy()
    table[tensors["moved"]] = tensors["moved_to"]
    return table


@dataclass(frozen=True, eq=False)
class LexicalEncoder:
    """Runs of two to five letters within words, hashed, damped by the logarithm and weighted by rarity."""

    rarity: Floats  # (buckets,) float32: inverse document frequency in the bank

    @classmethod
    def from_bank(cls, tokens: Tokens, *, buckets: int = 2**18) -> "LexicalEncoder":
        """Learn from a bank's texts which letter runs are rare and therefore telling."""
        from manymetrics.encode.kernels import count_texts

        found = np.zeros(buckets, dtype=np.int64)
        for part in portions(tokens, LETTERS_AT_ONCE):
            count_texts(*_grams(part.texts, buckets), found)
        return cls((1 + np.log((1 + len(tokens)) / (1 + found))).astype(np.float32))

    @cached_property
    def buckets(self) -> int:
        """How many different hashes there are."""
        return len(self.rarity)

    def encode(self, tokens: Tokens) -> sparse.csr_array:
        """Each text's weighted letter runs, scaled to length one: (texts, buckets) sparse float32."""
        grams = (_grams(part.texts, self.buckets) for part in portions(tokens, LETTERS_AT_ONCE))
        return weighted_rows(grams, self.rarity)


def weighted_rows(runs: Iterable[tuple[Ints, Ints]], rarity: Floats) -> sparse.csr_array:
    """Hashed runs -> how often each text has them, damped, times their rarity, scaled to length one.

    Each part of `runs` gives buckets and the boundaries of its texts. Rows are (texts, buckets) sparse float32; what
    has no rarity is left out.
    """
    parts = [_weigh(buckets, bounds, rarity) for buckets, bounds in runs]
    return sparse.vstack(parts, format="csr") if parts else sparse.csr_array((0, len(rarity)), dtype=np.float32)


def _weigh(buckets: Ints, bounds: Ints, rarity: Floats) -> sparse.csr_array:
    texts = len(bounds) - 1
    ones = np.ones(len(buckets), dtype=np.float32)
    counts = sparse.csr_array((ones, buckets, bounds), shape=(texts, len(rarity)))
    counts.sum_duplicates()
    counts.data = (1 + np.log(counts.data)) * rarity[counts.indices]
    owners = np.repeat(np.arange(texts), np.diff(counts.indptr))
    lengths = np.sqrt(np.bincount(owners, weights=counts.data**2, minlength=texts))
    counts.data = (counts.data / np.maximum(lengths, 1e-9)[owners]).astype(np.float32)
    counts.eliminate_zeros()
    return counts


def portions(tokens: Tokens, size: int) -> Iterator[Tokens]:
    """The texts, some at a time, which bounds the memory of what is made of them."""
    if len(tokens) <= size:
        yield from [tokens] if len(tokens) else []
        return
    for at in range(0, len(tokens), size):
        yield tokens.take(np.arange(at, min(at + size, len(tokens))))


def _grams(texts: tuple[str, ...], buckets: int) -> tuple[Ints, Ints]:
    spaced = [f" {' '.join(text.lower().split())} " for text in texts]
    starts = np.cumsum([0, *(len(text) for text in spaced)]).astype(np.int64)
    letters = np.frombuffer("".join(spaced).encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.int64)
    return loops_for(len(letters)).hash_grams(letters, starts, 2, 5, buckets)  # type: ignore[no-any-return]
