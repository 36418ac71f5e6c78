"""Token ids -> embeddings with onnxruntime, on one thread: the number of threads changes the bits.

BertSession    a `Bert`, in padded batches cut by their number of tokens
GraphSession   any other ONNX graph, text by text: quantized graphs often use one scale for a batch
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from manymetrics.encode.runtime.bert import CLS, MIN_TOKENS, Bert
from manymetrics.errors import ModelError
from manymetrics.values import Floats, Ints

BATCH_TOKENS = 256  # of a batch with its padding; long texts are faster one by one
INPUTS = ("input_ids", "attention_mask", "token_type_ids")  # that a text gives to an exported graph
TokenIds = Sequence[int]


class Session(Protocol):
    """Something that embeds token ids."""

    def batches(self, lengths: Sequence[int]) -> list[list[int]]:
        """The numbers of the texts that go into each batch."""

    def run(self, batch: Sequence[TokenIds], factors: Mapping[str, Floats]) -> Floats:
        """One embedding for each text of a batch: (texts, width) float32."""


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    """An ONNX file that gives a row for each token of a text."""

    content: Ints  # (bytes,) uint8


Model = Bert | OnnxGraph


def open_session(model: Model, *, name: str, pooling: str) -> Session:
    """Make a model ready to run; `name` is for messages."""
    if isinstance(model, Bert):
        return BertSession(_onnxruntime_session(model.graph(pooling), name))
    return GraphSession(_onnxruntime_session(model.content.tobytes(), name), name, pooling)


class BertSession:
    """The graph of a BERT, in batches; no embedding depends on the batch it is computed in."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def batches(self, lengths: Sequence[int]) -> list[list[int]]:
        """Texts of similar length together, at most `BATCH_TOKENS` tokens a batch unless a text alone is longer."""
        batches: list[list[int]] = []
        for text in np.argsort(lengths, kind="stable").tolist():
            if batches and (len(batches[-1]) + 1) * lengths[text] <= BATCH_TOKENS:
                batches[-1].append(text)
            else:
                batches.append([text])
        return batches

    def run(self, batch: Sequence[TokenIds], factors: Mapping[str, Floats]) -> Floats:
        """One embedding for each text of a batch: (texts, width) float32."""
        longest = max(MIN_TOKENS, *map(len, batch))
        ids, mask = np.zeros((len(batch), longest), np.int64), np.zeros((len(batch), longest), np.int32)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)], mask[row, : len(tokens)] = tokens, 1
        embeddings: Floats = self._session.run(None, {"input_ids": ids, "mask": mask, **factors})[0]
        return embeddings


class GraphSession:
    """Any other ONNX graph: one text at a time, its token rows pooled here."""

    def __init__(self, session: Any, name: str, pooling: str) -> None:
        self._session, self._name, self._pooling = session, name, pooling

    def batches(self, lengths: Sequence[int]) -> list[list[int]]:
        """Each text alone."""
        return [[text] for text in range(len(lengths))]

    def run(self, batch: Sequence[TokenIds], factors: Mapping[str, Floats]) -> Floats:
        """The embedding of the one text of a batch: (1, width) float32."""
        ids = np.array([batch[0]], dtype=np.int64)  # (1, tokens)
        inputs = dict(zip(INPUTS, (ids, np.ones_like(ids), np.zeros_like(ids)), strict=True))
        rows = self._session.run(None, {name: inputs[name] for name in self._inputs})[0][0]  # (tokens, width)
        if rows.ndim != 2:
            raise ModelError(
                f"The first output of {self._name!r} is not a row for each token. Export it without pooling."
            )
        pooled = rows[0] if self._pooling == CLS else rows.mean(axis=0)
        return pooled[None]  # type: ignore[no-any-return]

    @cached_property
    def _inputs(self) -> tuple[str, ...]:
        names = tuple(item.name for item in self._session.get_inputs())
        if unknown := set(names) - set(INPUTS):
            raise ModelError(f"The graph of {self._name!r} wants {sorted(unknown)}, which a text does not give.")
        return names


def _onnxruntime_session(graph: bytes, name: str) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as problem:  # of many kinds
        first = str(problem).splitlines()[0]
        raise ModelError(f"The graph of {name!r} cannot be run: {first}. Fetch it again.") from problem
