"""Token ids -> embeddings with onnxruntime, a graph on one thread: the number of threads changes the bits.

A `Bert` runs in padded batches cut by their number of tokens. Any other ONNX graph runs text by text, as quantized
graphs often use one scale for a batch, and its token rows are pooled here.
"""

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from manymetrics.encode.runtime.bert import CLS, INPUT_IDS, MASK, MIN_TOKENS, Bert
from manymetrics.errors import ModelError
from manymetrics.values import Floats, Ints

BATCH_TOKENS = 256  # of a batch with its padding; long texts are faster one by one
TEXTS_A_THREAD = 8  # at least: fewer are not worth a thread
INPUTS = (INPUT_IDS, MASK, "token_type_ids")  # that a text gives to a graph


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    """An ONNX file that gives a row for each token of a text."""

    content: Ints  # (bytes,) uint8
    n_positions: ClassVar[int] = 100_000  # tokens of a text that can be read, at most


Model = Bert | OnnxGraph


class Session:
    """A model that is ready to run."""

    def __init__(self, model: Model, *, name: str, pooling: str) -> None:
        """`name` is for messages."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.enable_mem_reuse = False  # planning it takes 0.3 s, and it changes neither speed nor memory
        graph = model.graph(pooling) if isinstance(model, Bert) else model.content.tobytes()
        try:
            self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        except Exception as problem:  # of many kinds
            first = str(problem).splitlines()[0]
            raise ModelError(f"The graph of {name!r} cannot be run: {first}. Fetch it again.") from problem
        self._is_bert, self._name, self._pooling = isinstance(model, Bert), name, pooling
        self._inputs = [item.name for item in self._session.get_inputs()]
        if unknown := set(self._inputs) - set(INPUTS):
            raise ModelError(f"The graph of {name!r} wants {sorted(unknown)}, which a text does not give.")

    def embed(self, token_ids: Sequence[Sequence[int]], factors: Mapping[str, Floats]) -> Floats:
        """One embedding for each text, on several threads where there are many: (texts, width) float16.

        A batch has texts of similar length, at most `BATCH_TOKENS` tokens, or one text.
        """
        lengths, batches = [len(ids) for ids in token_ids], list[list[int]]()
        for text in np.argsort(lengths, kind="stable").tolist():
            if self._is_bert and batches and (len(batches[-1]) + 1) * lengths[text] <= BATCH_TOKENS:
                batches[-1].append(text)
            else:
                batches.append([text])
        of_batches = ([token_ids[text] for text in batch] for batch in batches)
        run = partial(self.run, factors=factors)
        workers = min(len(token_ids) // TEXTS_A_THREAD, os.cpu_count() or 1)
        if workers > 1 and multiprocessing.parent_process() is None:
            with ThreadPoolExecutor(workers) as pool:
                parts = list(pool.map(run, of_batches))
        else:
            parts = list(map(run, of_batches))
        embeddings = np.empty((len(token_ids), parts[0].shape[1]), np.float16)
        for batch, part in zip(batches, parts, strict=True):
            embeddings[batch] = part
        return embeddings

    def run(self, batch: Sequence[Sequence[int]], factors: Mapping[str, Floats]) -> Floats:
        """One embedding for each text of a batch, whatever the batch: (texts, width) float32."""
        longest = max(MIN_TOKENS if self._is_bert else 0, *map(len, batch))
        ids = np.zeros((len(batch), longest), np.int64)
        mask = np.zeros_like(ids, np.int32 if self._is_bert else np.int64)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
        inputs = dict(zip(INPUTS, (ids, mask, np.zeros_like(ids)), strict=True))
        rows: Floats = self._session.run(None, {name: inputs[name] for name in self._inputs} | dict(factors))[0]
        if self._is_bert:
            return rows
        if rows.ndim != 3:
            raise ModelError(
                f"The first output of {self._name!r} is not a row for each token. Export it without pooling."
            )
        return rows[:, 0] if self._pooling == CLS else rows[0].mean(axis=0)[None]
