"""Texts -> the largest responses of filters: *f_k* of the paper, without torch.

With fixed word vectors a convolution over a text is a sum of looked-up rows: each distinct word is multiplied once with
every tap of the window, and the response of a window is the sum of one row per tap. Positions outside the text add
nothing, and only windows centred on a token of the text compete in the maximum, so that a text's embedding does not
depend on the texts beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from manymetrics.encode.encoder import Encoder, State, row_products
from manymetrics.encode.tokens import Tokens
from manymetrics.encode.vectors import WordVectors
from manymetrics.errors import DataError
from manymetrics.values import Floats, Ints

TEXTS_AT_ONCE = 256  # whose words are multiplied with the filters at once; bounds memory


@dataclass(frozen=True, eq=False, repr=False)
class ConvolutionEncoder(Encoder, kind="convolution"):
    """*f_k*: filters over windows of word vectors, each giving the ramp of its largest response over the text."""

    words: WordVectors
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

    def encode(self, texts: Sequence[str]) -> Floats:
        """*f(x)* for each text: (texts, width) float32."""
        tokens = self.words.tokens(texts)
        rows = np.split(np.arange(len(tokens)), range(TEXTS_AT_ONCE, len(tokens), TEXTS_AT_ONCE))
        return np.concatenate([self._respond(tokens.take(some)) for some in rows])

    def state(self) -> State:
        """The filters, and the word vectors they are applied to."""
        return State({"filters": self.filters, "bias": self.bias}, {}, {"words": self.words})

    @classmethod
    def from_state(cls, state: State) -> "ConvolutionEncoder":
        """The encoder that `state` described."""
        words = cast(WordVectors, state.parts["words"])
        if words.kind != WordVectors.kind:
            raise DataError(f"a convolution is over word vectors, and here over an encoder of the kind {words.kind!r}")
        return cls(words, state.tensors["filters"], state.tensors["bias"])

    @cached_property
    def _taps(self) -> Floats:
        """The filters as words are multiplied with them: (dimensions, window * width)."""
        return np.ascontiguousarray(self.filters.transpose(1, 0, 2)).reshape(self.filters.shape[1], -1)

    def _respond(self, tokens: Tokens) -> Floats:
        """The ramp of the largest response of each filter over each text: (texts, width)."""
        vectors, window = self.words.table[tokens.distinct[0]], len(self.filters)
        products = np.zeros((len(vectors) * window + 1, self.width), np.float32)  # the last row: outside of the text
        products[:-1] = row_products(vectors, self._taps).reshape(-1, self.width)
        rows = window_rows(tokens, window)  # (tokens, window)
        responses = products[rows[:, 0]]  # (tokens, width)
        for tap in range(1, window):
            responses += products[rows[:, tap]]
        return np.maximum(np.maximum.reduceat(responses, tokens.starts[:-1], axis=0) + self.bias, 0)


def window_rows(tokens: Tokens, window: int) -> Ints:
    """Where the products of a window's words are: (tokens, window).

    The product of distinct word w with tap t is row w * window + t; the row after the last is outside of the text.
    """
    (distinct, places), lengths = tokens.distinct, np.diff(tokens.starts)
    first, end = np.repeat(tokens.starts[:-1], lengths), np.repeat(tokens.starts[1:], lengths)  # of the token's text
    taps = np.arange(window)
    at = np.arange(len(places))[:, None] + taps - window // 2  # (tokens, window)
    inside = (first[:, None] <= at) & (at < end[:, None])
    outside = len(distinct) * window
    return np.where(inside, places[np.where(inside, at, 0)].astype(np.int64) * window + taps, outside)
