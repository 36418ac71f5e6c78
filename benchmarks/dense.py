"""Peer: the convolution as everybody writes it in torch, masked so that padding cannot win.

Batches are sorted by length, so that padding costs torch next to nothing.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from manymetrics.encode import ConvolutionEncoder
from manymetrics.encode.tokens import Tokens
from manymetrics.values import Floats, Ints

BATCH = 64


def padded(tokens: Tokens, rows: Ints, pad: int) -> Ints:
    """The given texts as a rectangle of token numbers: (texts, longest)."""
    lengths = tokens.starts[rows + 1] - tokens.starts[rows]
    ids = np.full((len(rows), int(lengths.max())), pad, dtype=np.int64)
    for at, row in enumerate(rows):
        ids[at, : lengths[at]] = tokens.ids[tokens.starts[row] : tokens.starts[row + 1]]
    return ids


def sorted_batches(tokens: Tokens, pad: int, size: int = BATCH) -> Iterator[tuple[Ints, Ints]]:
    """Batches of texts of nearly one length: (places, token numbers)."""
    order = np.argsort(np.diff(tokens.starts), kind="stable")
    for at in range(0, len(order), size):
        rows = order[at : at + size]
        yield rows, padded(tokens, rows, pad)


class DenseConvolution:
    """The same filters as a `ConvolutionEncoder`, through `torch.nn.functional.conv1d`."""

    def __init__(self, encoder: ConvolutionEncoder) -> None:
        import torch

        self._torch: Any = torch
        words = encoder.words.table
        table = np.vstack([words, np.zeros((1, words.shape[1]), np.float32)])
        self.table, self.pad = torch.from_numpy(table), len(words)
        self.weight = torch.from_numpy(
            np.ascontiguousarray(encoder.filters.transpose(2, 1, 0))
        )  # (width, dims, window)
        self.bias = torch.from_numpy(encoder.bias)

    def prepare(self, tokens: Tokens) -> list[tuple[Ints, Any]]:
        """Cut into batches beforehand: making rectangles in Python is not what is measured."""
        return [(rows, self._torch.from_numpy(ids)) for rows, ids in sorted_batches(tokens, self.pad)]

    def responses(self, batches: list[tuple[Ints, Any]]) -> Floats:
        """The ramp of each filter's largest response: (texts, width)."""
        torch = self._torch
        found = np.empty((sum(len(rows) for rows, _ in batches), len(self.bias)), dtype=np.float32)
        with torch.inference_mode():
            for rows, ids in batches:
                vectors = torch.nn.functional.embedding(ids, self.table).transpose(1, 2)  # (texts, dims, longest)
                windows = torch.nn.functional.conv1d(vectors, self.weight, self.bias, padding=self.weight.shape[2] // 2)
                windows.masked_fill_((ids == self.pad)[:, None], -torch.inf)
                found[rows] = torch.relu(windows.amax(dim=2)).numpy()
        return found
