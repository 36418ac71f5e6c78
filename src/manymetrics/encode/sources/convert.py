"""An ONNX graph that torch exported of a BERT -> its weights by their Hugging Face names, int8 scaled back to floats.

In such a graph a matrix is named after the node that multiplies with it: /encoder/layer.0/output/dense/MatMul_quant.
"""

from typing import Any

import numpy as np

from manymetrics.encode.runtime.bert import WORDS
from manymetrics.errors import InputError
from manymetrics.values import Floats

PRODUCTS = ("MatMul", "MatMulInteger")
QUANTIZED, SCALE, ZERO_POINT = "_quantized", "_scale", "_zero_point"  # ends of names
PREFIXES = ("embeddings.", "encoder.")


def bert_weights(graph: bytes) -> dict[str, Floats]:
    """The weights of a BERT, matrices as (out, in)."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load_from_string(graph).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.initializer}
    names = [name for name in stored if not name.endswith((SCALE, ZERO_POINT))]
    floats = {name.removesuffix(QUANTIZED): _to_floats(name, stored) for name in names}
    weights = {name: values for name, values in floats.items() if name.startswith(PREFIXES)}
    for node in model.node:
        if node.op_type in PRODUCTS and node.input[1] in stored:
            matrix = floats[node.input[1].removesuffix(QUANTIZED)]
            weights[_module_of(node.name) + ".weight"] = np.ascontiguousarray(matrix.T)
    if WORDS not in weights or not any(name.endswith(".intermediate.dense.weight") for name in weights):
        raise InputError("The graph of this encoder is not that of a BERT whose weights have names.")
    return weights


def _to_floats(name: str, stored: dict[str, Any]) -> Floats:
    if not name.endswith(QUANTIZED):
        return stored[name]  # type: ignore[no-any-return]
    base = name.removesuffix(QUANTIZED)
    values = stored[name].astype(np.float32) - stored[base + ZERO_POINT].astype(np.float32)
    return values * stored[base + SCALE]  # type: ignore[no-any-return]


def _module_of(node: str) -> str:
    return ".".join(node.strip("/").split("/")[:-1])
