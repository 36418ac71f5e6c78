"""The convolution as torch sees it: forward over the distinct words of a batch, backward only where a window won.

The same kernels serve training and prediction, so a trained network and the `ConvolutionEncoder` made from it agree to
the last bits of float32. Fixed word vectors receive no gradient. Where word vectors are learned, a step touches only
the rows that occurred in its batch.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from manymetrics.encode.encoders import ConvolutionEncoder, moved_words
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


class ConvolutionNetwork:
    """Filters over windows of word vectors, being trained; the vectors stay fixed unless `learn_words`."""

    def __init__(self, table: Floats, convolution: Convolution, rng: np.random.Generator) -> None:
        window, width, dimensions = convolution.window, convolution.width, table.shape[1]
        size = float(np.sqrt(np.mean(np.square(table, dtype=np.float64))))  # the root mean square of a vector's entries
        spread = 1 / (size * np.sqrt(window * dimensions))  # responses start with variance one
        start = rng.normal(0, spread, (dimensions, window * width)).astype(np.float32)
        self.window, self.width, self.given = window, width, table
        self.taps = torch.from_numpy(start).requires_grad_()  # (dimensions, window * width)
        self.bias = torch.zeros(width, requires_grad=True)  # (width,)
        self.table = table.copy() if convolution.learn_words else table  # (vocabulary, dimensions)
        self._moments = np.zeros((2, *table.shape), np.float32) if convolution.learn_words else None
        self._used: list[tuple[Ints, Tensor]] = []  # words of this step, and their rows with the slopes they receive
        self._step = 0

    @property
    def parameters(self) -> list[Tensor]:
        """What the optimizer changes."""
        return [self.taps, self.bias]

    @property
    def learned_table(self) -> list[Tensor]:
        """The word vectors where they are learned, sharing memory with the table; else nothing."""
        return [] if self._moments is None else [torch.from_numpy(self.table)]

    def forward(self, tokens: Tokens, *, lost_words: float = 0.0, rng: np.random.Generator | None = None) -> Tensor:
        """The ramp of each filter's largest response: (texts, width). A share of the words may be made to vanish."""
        words, places = tokens.words.distinct, tokens.words.places  # (distinct,), (tokens,)
        rows = torch.from_numpy(self.table[words])  # (distinct, dimensions)
        if self._moments is not None and torch.is_grad_enabled():
            rows.requires_grad_()
            self._used.append((words, rows))
        if lost_words and rng is not None:
            rows = torch.cat([rows, torch.zeros(1, rows.shape[1])])
            places = np.where(rng.random(len(places)) < lost_words, np.int32(len(words)), places)
        projected = (rows @ self.taps).view(len(rows), self.window, self.width)
        pooled: Tensor = _PooledWindows.apply(projected, places, tokens.starts)  # type: ignore[no-untyped-call]
        return torch.relu(pooled + self.bias)

    def move_words(self, rate: float) -> None:
        """Move the word vectors that were used since the last call, where they are learned."""
        self._step += 1
        pace = np.array([rate, 1 - 0.9**self._step, 1 - 0.999**self._step])
        for words, rows in self._used:
            if rows.grad is not None and self._moments is not None:
                move_rows(self.table, self._moments, words, rows.grad.numpy(), pace)
        self._used.clear()

    def encoder(self) -> ConvolutionEncoder:
        """What was learned, for use without torch; moved words are rounded to half precision, as they are saved."""
        filters = self.taps.detach().view(self.table.shape[1], self.window, self.width).permute(1, 0, 2).numpy().copy()
        table = self.given
        if self._moments is not None:
            moved = moved_words(self.table, self.given)
            table = self.given.copy()
            table[moved] = self.table[moved].astype(np.float16)
        return ConvolutionEncoder(table, filters, self.bias.detach().numpy().copy())


def drop_units(features: Tensor, share: float, rng: np.random.Generator) -> Tensor:
    """Dropout: a share of the features set to zero, the others raised to keep the sum."""
    if not share:
        return features
    kept = rng.random(features.shape, dtype=np.float32) >= share
    return features * torch.from_numpy(kept.astype(np.float32) / (1 - share))
