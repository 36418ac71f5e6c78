"""What torch trains: a convolution over word vectors, and their plain sum.

    ConvolutionNetwork   forward over the distinct words of a batch, backward only where a window won
    AveragingNetwork     nothing but the words, which are learned

Training and prediction use different kernels, which agree to the last bits of float32. Fixed word vectors receive no
gradient. Where word vectors are learned, a step touches only the rows that occurred in its batch.
"""

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from manymetrics.encode.convolution import ConvolutionEncoder
from manymetrics.encode.kernels import pool_windows, spread_to_windows
from manymetrics.encode.settings import Convolution
from manymetrics.encode.vectors import Words, WordVectors, tuned_words
from manymetrics.values import Ints, Texts


class _PooledWindows(torch.autograd.Function):
    """`pool_windows` with its gradient."""

    @staticmethod
    def forward(ctx: Any, projected: Tensor, words: Ints, starts: Ints) -> Tensor:
        best, where = pool_windows(projected.detach().numpy(), words, starts)
        ctx.undo = (where, words, starts, tuple(projected.shape))
        return torch.from_numpy(best)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None, None]:
        where, words, starts, shape = ctx.undo
        return (
            torch.from_numpy(spread_to_windows(slopes[0].contiguous().numpy(), where, words, starts, shape)),
            None,
            None,
        )


class Network(Protocol):
    """Texts in, features with gradients out."""

    @property
    def parameters(self) -> list[Tensor]:
        """What the optimizer changes."""

    @property
    def sparse_parameters(self) -> list[Tensor]:
        """What a step changes a few rows of: the word vectors, where they are learned."""

    def forward(self, texts: Texts, *, word_dropout: float = 0.0, rng: np.random.Generator | None = None) -> Tensor:
        """The features of each text: (texts, width). A share of the words may be hidden."""


class _Words:
    """Word vectors, fixed or learned: then a copy whose rows get sparse gradients."""

    def __init__(self, given: WordVectors, *, learn: bool) -> None:
        self.given = given
        self.table = torch.from_numpy(given.table.copy()).requires_grad_() if learn else None

    @property
    def parameters(self) -> list[Tensor]:
        return [] if self.table is None else [self.table]

    def rows(self, words: Ints) -> Tensor:
        """The vectors of some words: (words, dimensions)."""
        if self.table is None:
            return torch.from_numpy(self.given.table[words])
        places = torch.from_numpy(words.astype(np.int64))
        return torch.nn.functional.embedding(places, self.table, sparse=True)

    def trained(self) -> Words:
        """The words for use without torch."""
        return self.given if self.table is None else tuned_words(self.given, self.table.detach().numpy())


class ConvolutionNetwork:
    """Filters over windows of word vectors, being trained; the vectors stay fixed unless `learn_words`."""

    def __init__(self, words: WordVectors, convolution: Convolution, rng: np.random.Generator) -> None:
        window, width, dimensions = convolution.window, convolution.width, words.dimensions
        size = float(
            np.sqrt(np.mean(np.square(words.table, dtype=np.float64)))
        )  # the root mean square of a vector's entries
        spread = 1 / (size * np.sqrt(window * dimensions))  # responses start with variance one
        start = rng.normal(0, spread, (dimensions, window * width)).astype(np.float32)
        self.window, self.width = window, width
        self.taps = torch.from_numpy(start).requires_grad_()  # (dimensions, window * width)
        self.bias = torch.zeros(width, requires_grad=True)  # (width,)
        self.words = _Words(words, learn=convolution.learn_words)

    @property
    def parameters(self) -> list[Tensor]:
        """What the optimizer changes."""
        return [self.taps, self.bias]

    @property
    def sparse_parameters(self) -> list[Tensor]:
        """The word vectors, where they are learned."""
        return self.words.parameters

    def forward(self, texts: Texts, *, word_dropout: float = 0.0, rng: np.random.Generator | None = None) -> Tensor:
        """The ramp of each filter's largest response: (texts, width). A share of the words may be hidden."""
        tokens = self.words.given.tokens(texts)
        words, places = tokens.words.distinct, tokens.words.places  # (distinct,), (tokens,)
        rows = self.words.rows(words)  # (distinct, dimensions)
        if word_dropout and rng is not None:
            rows = torch.cat([rows, torch.zeros(1, rows.shape[1])])
            places = np.where(rng.random(len(places)) < word_dropout, np.int32(len(words)), places)
        projected = (rows @ self.taps).view(len(rows), self.window, self.width)
        pooled: Tensor = _PooledWindows.apply(projected, places, tokens.starts)  # type: ignore[no-untyped-call]
        return torch.relu(pooled + self.bias)

    def encoder(self) -> ConvolutionEncoder:
        """What was learned, for use without torch."""
        dimensions = len(self.taps)
        filters = self.taps.detach().view(dimensions, self.window, self.width).permute(1, 0, 2).numpy().copy()
        return ConvolutionEncoder(self.words.trained(), filters, self.bias.detach().numpy().copy())


class AveragingNetwork:
    """The sum of a text's word vectors, which are learned; scaled to length one it is their mean."""

    def __init__(self, words: WordVectors) -> None:
        self.words = _Words(words, learn=True)

    @property
    def parameters(self) -> list[Tensor]:
        """The optimizer has nothing to change."""
        return []

    @property
    def sparse_parameters(self) -> list[Tensor]:
        """The word vectors."""
        return self.words.parameters

    def forward(self, texts: Texts, *, word_dropout: float = 0.0, rng: np.random.Generator | None = None) -> Tensor:
        """The sum of each text's word vectors: (texts, dimensions). A share of the words may be hidden."""
        tokens = self.words.given.tokens(texts)
        rows = self.words.rows(tokens.words.distinct)  # (distinct, dimensions)
        places = tokens.words.places.astype(np.int64)  # (tokens,)
        kept = np.ones(len(places), dtype=np.float32)
        if word_dropout and rng is not None:
            kept = (rng.random(len(places)) >= word_dropout).astype(np.float32)
        return torch.nn.functional.embedding_bag(
            torch.from_numpy(places),
            rows,
            torch.from_numpy(tokens.starts[:-1].astype(np.int64)),
            mode="sum",
            per_sample_weights=torch.from_numpy(kept),
        )

    def encoder(self) -> Words:
        """What was learned, for use without torch."""
        return self.words.trained()


def drop_units(features: Tensor, share: float, rng: np.random.Generator) -> Tensor:
    """Dropout: a share of the features set to zero, the others raised to keep the sum."""
    if not share:
        return features
    kept = rng.random(features.shape, dtype=np.float32) >= share
    return features * torch.from_numpy(kept.astype(np.float32) / (1 - share))
