"""The convolution as torch sees it: forward over the distinct words of a batch, backward only where a window won.

The same kernels serve training and prediction, so a trained network and the `ConvolutionEncoder` made from it agree to
the last bits of float32. Fixed word vectors receive no gradient.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from manymetrics.encode.encoders import ConvolutionEncoder
from manymetrics.encode.kernels import pool_windows, spread_to_windows
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
    """Filters over windows of fixed word vectors, being trained."""

    def __init__(self, table: Floats, *, window: int, width: int, rng: np.random.Generator) -> None:
        dimensions = table.shape[1]
        size = float(np.sqrt(np.mean(np.square(table, dtype=np.float64))))  # the root mean square of a vector's entries
        spread = 1 / (size * np.sqrt(window * dimensions))  # responses start with variance one
        start = rng.normal(0, spread, (dimensions, window * width)).astype(np.float32)
        self.table, self.window, self.width = table, window, width
        self.taps = torch.from_numpy(start).requires_grad_()  # (dimensions, window * width)
        self.bias = torch.zeros(width, requires_grad=True)  # (width,)

    @property
    def parameters(self) -> list[Tensor]:
        """What training may change."""
        return [self.taps, self.bias]

    def forward(self, tokens: Tokens, *, lost_words: float = 0.0, rng: np.random.Generator | None = None) -> Tensor:
        """The ramp of each filter's largest response: (texts, width). A share of the words may be made to vanish."""
        words, places = tokens.words.distinct, tokens.words.places  # (distinct,), (tokens,)
        rows = torch.from_numpy(self.table[words])  # (distinct, dimensions)
        if lost_words and rng is not None:
            rows = torch.cat([rows, torch.zeros(1, rows.shape[1])])
            places = np.where(rng.random(len(places)) < lost_words, np.int32(len(words)), places)
        projected = (rows @ self.taps).view(len(rows), self.window, self.width)
        pooled: Tensor = _PooledWindows.apply(projected, places, tokens.starts)  # type: ignore[no-untyped-call]
        return torch.relu(pooled + self.bias)

    def encoder(self) -> ConvolutionEncoder:
        """What was learned, for use without torch."""
        filters = self.taps.detach().view(self.table.shape[1], self.window, self.width).permute(1, 0, 2).numpy().copy()
        return ConvolutionEncoder(self.table, filters, self.bias.detach().numpy().copy())


def drop_units(features: Tensor, share: float, rng: np.random.Generator) -> Tensor:
    """Dropout: a share of the features set to zero, the others raised to keep the sum."""
    if not share:
        return features
    kept = rng.random(features.shape, dtype=np.float32) >= share
    return features * torch.from_numpy(kept.astype(np.float32) / (1 - share))
