"""Texts -> the largest responses of filters: *f_k* of the paper, without torch."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from manymetrics.encode.encoder import Encoder, State
from manymetrics.encode.tokens import Tokens
from manymetrics.encode.vectors import TunedWords, Words, WordVectors
from manymetrics.errors import DataError
from manymetrics.values import Floats, Ints, Texts

TEXTS_AT_ONCE = 65_536  # bounds the memory of what is made of texts
FEW = 100_000  # tokens that numpy is done with before the compiled loop is loaded
PROJECTED_AT_ONCE = 2**24  # numbers of the projected table, 64 MiB; a larger one is made in parts
CACHE_LINE = 16  # numbers


@dataclass(frozen=True, eq=False)
class ConvolutionEncoder(Encoder, kind="convolution"):
    """*f_k*: filters over windows of word vectors, each giving the ramp of its largest response over the text."""

    words: Words
    filters: Floats  # (window, dimensions, width) float32
    bias: Floats  # (width,) float32

    def __post_init__(self) -> None:
        fits = self.filters.ndim == 3 and self.filters.shape[1] == self.words.dimensions
        fits = fits and self.bias.shape == self.filters.shape[2:] and 0 not in self.filters.shape
        if not fits or len(self.filters) % 2 == 0:
            raise DataError(
                f"Filters of shape {self.filters.shape} with bias {self.bias.shape} do not fit word vectors of "
                f"{self.words.dimensions} dimensions. Load the encoder with the vectors it was trained on."
            )

    @property
    def width(self) -> int:
        """How many numbers a text becomes."""
        return len(self.bias)

    def encode(self, texts: Texts) -> Floats:
        """*f(x)* for each text: (texts, width) float32."""
        parts = [self._respond(part) for part in self.words.tokens(texts).portions(TEXTS_AT_ONCE)]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.zeros((0, self.width), np.float32)

    def lengths(self, texts: Texts) -> Ints:
        """How many tokens of each text are read: (texts,)."""
        return self.words.lengths(texts)

    def state(self) -> State:
        """The filters, and the words they look at."""
        return State({"filters": self.filters, "bias": self.bias}, {}, {"words": self.words})

    @classmethod
    def from_state(cls, state: State) -> "ConvolutionEncoder":
        """The encoder that `state` described."""
        words = state.parts["words"]
        if not isinstance(words, WordVectors | TunedWords):
            raise DataError("a convolution stands on something else than word vectors")
        return cls(words, state.tensors["filters"], state.tensors["bias"])

    @cached_property
    def _taps(self) -> Floats:
        """The filters as words are multiplied with them, the last tap first: (dimensions, window, width).

        Windows that pass over a word need its last tap first, so memory is read forwards.
        """
        return np.ascontiguousarray(self.filters[::-1].transpose(1, 0, 2))

    def _respond(self, tokens: Tokens) -> Floats:
        """Project the words that occur and look their rows up, for as many filters at a time as have room."""
        words, vectors, taps = tokens.words, self.words.rows(tokens.words.distinct), self._taps
        parts = -(-len(vectors) * self.filters[:, 0].size // PROJECTED_AT_ONCE)
        together = -(-self.width // (parts * CACHE_LINE)) * CACHE_LINE  # filters in a part, of whole lines of the cache
        best, respond = np.empty((len(tokens), self.width), dtype=np.float32), _loop_for(len(tokens.ids))
        best[:] = self.bias
        for first in range(0, self.width, together):
            some = taps[:, :, first : first + together]  # (dimensions, window, some filters)
            projected = _in_line((len(vectors) + 1, some[0].size))
            np.matmul(vectors, some.reshape(len(taps), -1), out=projected[:-1])
            projected[-1] = 0  # outside a text
            respond(projected.reshape(-1, *some.shape[1:]), words.places, tokens.starts, best, first)
        return best


def _in_line(shape: tuple[int, int]) -> Floats:
    """Room for numbers, the first of which starts a line of the cache."""
    raw = np.empty(shape[0] * shape[1] + CACHE_LINE, dtype=np.float32)
    start = -(raw.ctypes.data // raw.itemsize) % CACHE_LINE
    return raw[start : start + shape[0] * shape[1]].reshape(shape)


class _Choice:
    """Numpy's loop for the first tokens of a process; the compiled one once it is worth the second it takes to load."""

    def __init__(self, few: int) -> None:
        self._left = few

    def __call__(self, tokens: int) -> Callable[..., None]:
        """The loop to use for so many tokens."""
        self._left -= tokens
        if self._left >= 0 and "manymetrics.encode.kernels" not in sys.modules:
            return largest_responses
        from manymetrics.encode import kernels

        return kernels.largest_responses


_loop_for = _Choice(FEW)


def largest_responses(projected: Floats, words: Ints, starts: Ints, best: Floats, column: int) -> None:
    """The ramp of the largest response of each filter over each text: added to the bias in `best`, from a column on.

    projected (words + 1, window, filters) float32, the last tap of a word first, the last word zeros;
    best (texts, all filters) float32.
    """
    outside, window = len(projected) - 1, projected.shape[1]
    lengths = np.diff(starts)
    first, end = np.repeat(starts[:-1], lengths), np.repeat(starts[1:], lengths)  # (tokens,) each: of the token's text
    rows = []
    for tap in range(window):
        at = np.arange(len(words)) + tap - window // 2
        inside = (first <= at) & (at < end)
        rows.append(projected[np.where(inside, words[np.where(inside, at, 0)], outside), window - 1 - tap])
    pairs = [rows[0] + rows[1], rows[2] + rows[3], rows[4]] if window == 5 else rows  # as the compiled loop adds them
    responses = sum(pairs[1:], start=pairs[0])  # (tokens, filters)
    filled = np.diff(starts) > 0
    largest = np.full((len(filled), projected.shape[2]), -np.inf, dtype=np.float32)
    if filled.any():
        largest[filled] = np.maximum.reduceat(responses, starts[:-1][filled], axis=0)
    ours = best[:, column : column + largest.shape[1]]
    ours[:] = np.maximum(largest + ours, 0)
