"""What torch trains: a convolution over word vectors, and their plain sum.

    ConvolutionNetwork   forward over the distinct words of a batch, backward only where a window won
    AveragingNetwork     nothing but the words, which are learned

The same kernels serve training and prediction, so a trained network and the `ConvolutionEncoder` made from it agree to
the last bits of float32. Fixed word vectors receive no gradient. Where word vectors are learned, a step touches only
the rows that occurred in its batch.
"""

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from manymetrics.encode.encoders import ConvolutionEncoder, MeanEncoder, moved_words
from manymetrics.encode.kernels import move_rows, pool_windows, spread_to_windows
from manymetrics.encode.settings import Convolution
from manymetrics.encode.tokens import Tokens
from manymetrics.values import Floats, Ints


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
    def learned_table(self) -> list[Tensor]:
        """The word vectors where they are learned, sharing memory with the table; else nothing."""

    def forward(self, tokens: Tokens, *, lost_words: float = 0.0, rng: np.random.Generator | None = None) -> Tensor:
        """The features of each text: (texts, width). A share of the words may be made to vanish."""

    def move_words(self, rate: float) -> None:
        """Move the word vectors that were used since the last call, where they are learned."""


class _Words:
    """Word vectors, fixed or learned: a copy that Adam moves, row by row."""

    def __init__(self, given: Floats, *, learn: bool) -> None:
        self.given = given
        self.table = given.copy() if learn else given  # (vocabulary, dimensions)
        self._moments = np.zeros((2, *given.shape), np.float32) if learn else None
        self.used: list[tuple[Ints, Tensor]] = []  # words of this step, and their rows with the slopes they receive
        self._step = 0

    @property
    def learned(self) -> list[Tensor]:
        return [] if self._moments is None else [torch.from_numpy(self.table)]

    def rows(self, words: Ints) -> Tensor:
        """The vectors of some words: (words, dimensions)."""
        rows = torch.from_numpy(self.table[words])
        if self._moments is not None and torch.is_grad_enabled():
            rows.requires_grad_()
            self.used.append((words, rows))
        return rows

    def move(self, rate: float) -> None:
        self._step += 1
        pace = np.array([rate, 1 - 0.9**self._step, 1 - 0.999**self._step])
        for words, rows in self.used:
            if rows.grad is not None and self._moments is not None:
                move_rows(self.table, self._moments, words, rows.grad.numpy(), pace)
        self.used.clear()

    def rounded(self) -> Floats:
        """The table for use: moved words in half precision, as they are saved."""
        moved = moved_words(self.table, self.given)
        if not len(moved):
            return self.given
        table = self.given.copy()
        table[moved] = self.table[moved].astype(np.float16)
        return table


class ConvolutionNetwork:
    """Filters over windows of word vectors, being trained; the vectors stay fixed unless `learn_words`."""

    def __init__(self, table: Floats, convolution: Convolution, rng: np.random.Generator) -> None:
        window, width, dimensions = convolution.window, convolution.width, table.shape[1]
        size = float(np.sqrt(np.mean(np.square(table, dtype=np.float64))))  # the root mean square of a vector's entries
        spread = 1 / (size * np.sqrt(window * dimensions))  # responses start with variance one
        start = rng.normal(0, spread, (dimensions, window * width)).astype(np.float32)
        self.window, self.width = window, width
        self.taps = torch.from_numpy(start).requires_grad_()  # (dimensions, window * width)
        self.bias = torch.zeros(width, requires_grad=True)  # (width,)
        self.words = _Words(table, learn=convolution.learn_words)

    @property
    def parameters(self) -> list[Tensor]:
        """What the optimizer changes."""
        return [self.taps, self.bias]

    @property
    def learned_table(self) -> list[Tensor]:
        """The word vectors where they are learned, sharing memory with the table; else nothing."""
        return self.words.learned

    def forward(self, tokens: Tokens, *, lost_words: float = 0.0, rng: np.random.Generator | None = None) -> Tensor:
        """The ramp of each filter's largest response: (texts, width). A share of the words may be made to vanish."""
        words, places = tokens.words.distinct, tokens.words.places  # (distinct,), (tokens,)
        rows = self.words.rows(words)  # (distinct, dimensions)
        if lost_words and rng is not None:
            rows = torch.cat([rows, torch.zeros(1, rows.shape[1])])
            places = np.where(rng.random(len(places)) < lost_words, np.int32(len(words)), places)
        projected = (rows @ self.taps).view(len(rows), self.window, self.width)
        pooled: Tensor = _PooledWindows.apply(projected, places, tokens.starts)  # type: ignore[no-untyped-call]
        return torch.relu(pooled + self.bias)

    def move_words(self, rate: float) -> None:
        """Move the word vectors that were used since the last call, where they are learned."""
        self.words.move(rate)

    def encoder(self) -> ConvolutionEncoder:
        """What was learned, for use without torch."""
        dimensions = len(self.taps)
        filters = self.taps.detach().view(dimensions, self.window, self.width).permute(1, 0, 2).numpy().copy()
        return ConvolutionEncoder(self.words.rounded(), filters, self.bias.detach().numpy().copy())


class AveragingNetwork:
    """The sum of a text's word vectors, which are learned; scaled to length one it is their mean."""

    def __init__(self, table: Floats) -> None:
        self.words = _Words(table, learn=True)

    @property
    def parameters(self) -> list[Tensor]:
        """The optimizer has nothing to change."""
        return []

    @property
    def learned_table(self) -> list[Tensor]:
        """The word vectors, sharing memory with the table."""
        return self.words.learned

    def forward(self, tokens: Tokens, *, lost_words: float = 0.0, rng: np.random.Generator | None = None) -> Tensor:
        """The sum of each text's word vectors: (texts, dimensions). A share of the words may be made to vanish."""
        rows = self.words.rows(tokens.words.distinct)  # (distinct, dimensions)
        places = tokens.words.places.astype(np.int64)  # (tokens,)
        kept = np.ones(len(places), dtype=np.float32)
        if lost_words and rng is not None:
            kept = (rng.random(len(places)) >= lost_words).astype(np.float32)
        return torch.nn.functional.embedding_bag(
            torch.from_numpy(places),
            rows,
            torch.from_numpy(tokens.starts[:-1].astype(np.int64)),
            mode="sum",
            per_sample_weights=torch.from_numpy(kept),
        )

    def move_words(self, rate: float) -> None:
        """Move the word vectors that were used since the last call."""
        self.words.move(rate)

    def encoder(self) -> MeanEncoder:
        """What was learned, for use without torch."""
        return MeanEncoder(self.words.rounded())


def drop_units(features: Tensor, share: float, rng: np.random.Generator) -> Tensor:
    """Dropout: a share of the features set to zero, the others raised to keep the sum."""
    if not share:
        return features
    kept = rng.random(features.shape, dtype=np.float32) >= share
    return features * torch.from_numpy(kept.astype(np.float32) / (1 - share))
