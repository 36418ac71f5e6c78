"""Texts -> where they lie: the middle of a task's texts among the word vectors, to say which tasks are near."""

import numpy as np

from manymetrics.encode.encoders import MeanEncoder, unit_rows
from manymetrics.encode.reading import ReadBank
from manymetrics.encode.tokens import Tokens
from manymetrics.values import Floats


def task_centres(bank: ReadBank) -> Floats:
    """The centre of each task's train texts: (tasks, dimensions) float32, of length one."""
    return np.stack([centre(task.train.tokens, bank.vectors.table) for task in bank])


def centre(tokens: Tokens, table: Floats) -> Floats:
    """The mean of the texts' mean vectors, scaled to length one: (dimensions,) float32."""
    texts = MeanEncoder(table).encode(tokens)  # (texts, dimensions)
    return unit_rows(texts.mean(axis=0, keepdims=True))[0]  # type: ignore[no-any-return]
