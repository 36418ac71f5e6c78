"""The ONNX graph of a BERT -> its weights, by the names of Hugging Face, bytes scaled back to what they stand for.

The inverse of `graphs`, and a reader of graphs that torch exported: there a matrix goes by the name of the node that
multiplies with it. Only what those need is read: see `graph_file` for the format.
"""

from typing import Any

import numpy as np

from manymetrics.encode.graph_file import MIDDLE, QUANTIZED, SCALE
from manymetrics.encode.graphs import WORDS
from manymetrics.encode.messages import Message, fields, numbers, text
from manymetrics.errors import InputError
from manymetrics.values import Floats

KINDS = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64}
PRODUCTS = ("MatMul", "MatMulInteger")
PLACES, KIND_OF_SENTENCE = "embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight"


def bert_weights(graph: bytes) -> dict[str, Floats]:
    """The weights of a BERT, matrices as Hugging Face keeps them: (out, in)."""
    tensors, products = _read(memoryview(graph))
    kept = {name: _whole(name, tensors) for name in tensors if not name.endswith((SCALE, MIDDLE))}
    weights = {name.removesuffix(QUANTIZED): one for name, one in kept.items()
               if name.startswith(("embeddings.", "encoder."))}  # fmt: skip
    if "places" in kept:  # of both sorts of places, added up
        weights[PLACES], weights[KIND_OF_SENTENCE] = kept["places"], np.zeros_like(kept["places"][:1])
    for node, matrix in products:
        if matrix in kept:
            own = matrix.removesuffix(QUANTIZED)
            name = own if own.startswith("encoder.") else _path(node) + ".weight"
            weights[name] = np.ascontiguousarray(kept[matrix].T)
    if WORDS not in weights or not any(name.endswith(".intermediate.dense.weight") for name in weights):
        raise InputError(
            "The graph of this encoder is not that of a BERT whose weights have names, so it cannot be tuned."
        )
    return weights


def _path(node: str) -> str:
    """The name of a module from that of its product: /encoder/layer.0/output/dense/MatMul_quant."""
    return ".".join(node.strip("/").split("/")[:-1])


def _whole(name: str, tensors: dict[str, Floats]) -> Floats:
    """A tensor in numbers, whatever it is kept in."""
    own, found = name.removesuffix(QUANTIZED), tensors[name]
    if not name.endswith(QUANTIZED):
        return found
    middle = tensors[own + MIDDLE].astype(np.float32)
    return (found.astype(np.float32) - middle) * tensors[own + SCALE]


def _read(model: Message) -> tuple[dict[str, Floats], list[tuple[str, str]]]:
    """The constants of a graph by name, and of every product the name of the node and of what it multiplies with."""
    tensors, products = {}, []
    for number, content in fields(next(content for number, content in fields(model) if number == 7)):
        if number == 5:
            name, values = _tensor(content)
            tensors[name] = values
        elif number == 1:
            told = list(fields(content))
            operator = next(text(one) for field, one in told if field == 4)
            inputs = [text(one) for field, one in told if field == 1]
            if operator in PRODUCTS:
                products.append((next((text(one) for field, one in told if field == 3), ""), inputs[1]))
    return tensors, products


def _tensor(message: Message) -> tuple[str, Floats]:
    """The name of a constant and its values, which lie there as in memory, or small ones number by number."""
    told: dict[int, Any] = {}
    for number, value in fields(message):
        if number in (1, 5):
            values = [value] if isinstance(value, int) else list(numbers(value))
            told[number] = [*told.get(number, []), *values]
        else:
            told[number] = value
    shape, kind = told.get(1, []), KINDS.get(told.get(2, 1), np.uint8)
    if 5 in told:
        return text(told[8]), np.array(told[5]).astype(kind).reshape(shape)
    found = np.frombuffer(told.get(9, told.get(4, b"")), kind)
    return text(told[8]), found.reshape(shape if found.size == np.prod(shape, dtype=int) else -1)
