"""The weights of a BERT -> the ONNX graph that onnxruntime runs.

A graph is a protocol-buffer message of few kinds of fields, so it is written here directly: neither torch nor the onnx
package is needed. The graph takes token ids, reads all of them, and gives a row for each: one text at a time needs no
mask. Field numbers are those of onnx.proto, the names of tensors those of Hugging Face.

In whole numbers, matrices are kept in a byte a weight, every column at a scale of its own, and rows are rounded to
bytes before they are multiplied: a quarter of the size, and faster.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from manymetrics.values import Floats

OPSET, IR_VERSION = 20, 9  # the first with Gelu, and the format of that time
FLOAT, INT, INTS = 1, 2, 7  # kinds of attributes
NUMBERS = {"float32": 1, "int8": 3, "int64": 7}  # kinds of tensors
WORDS = "embeddings.word_embeddings.weight"
QUANTIZED, SCALE, MIDDLE = "_quantized", "_scale", "_zero_point"  # ends of the names of what is kept in bytes
LARGEST_BYTE = 127


def bert_graph(weights: Mapping[str, Floats], *, heads: int, tiny: float, whole: bool = False) -> bytes:
    """The ONNX file of a BERT: input_ids (texts, tokens) -> last_hidden_state (texts, tokens, width).

    `heads` is config.json's num_attention_heads, `tiny` its layer_norm_eps; `whole`: in whole numbers.
    """
    graph = _Graph(weights, tiny=tiny, whole=whole)
    rows = _embed(graph)
    for layer in range(sum(name.endswith(".intermediate.dense.weight") for name in weights)):
        at = f"encoder.layer.{layer}"
        told = _attend(graph, rows, at=f"{at}.attention", heads=heads)
        rows = graph.norm(graph.add("Add", rows, told), f"{at}.attention.output.LayerNorm")
        wide = graph.add("Gelu", graph.linear(rows, f"{at}.intermediate.dense"))
        rows = graph.norm(graph.add("Add", rows, graph.linear(wide, f"{at}.output.dense")), f"{at}.output.LayerNorm")
    return graph.file(rows)


def _embed(graph: "_Graph") -> str:
    """What the layers start from: words and their places, as if all were of the first of two sentences."""
    first = graph.weights["embeddings.token_type_embeddings.weight"][0]
    places = graph.keep("places", graph.weights["embeddings.position_embeddings.weight"] + first)
    words = graph.look_up(WORDS, "input_ids")
    length = graph.add("Shape", "input_ids", start=1, end=2)  # (1,): tokens
    here = graph.add("Slice", places, graph.keep("zero", np.zeros(1, np.int64)), length)
    return graph.norm(graph.add("Add", words, here), "embeddings.LayerNorm")


def _attend(graph: "_Graph", rows: str, *, at: str, heads: int) -> str:
    """What every token hears from all."""
    width = graph.weights[WORDS].shape[1]
    apart = graph.keep("apart", np.array([0, 0, heads, width // heads]))
    together = graph.keep("together", np.array([0, 0, width]))

    def per_head(name: str, axes: list[int]) -> str:
        split = graph.add("Reshape", graph.linear(rows, f"{at}.self.{name}"), apart)
        return graph.add("Transpose", split, perm=axes)

    scale = graph.keep("scale", np.array((width / heads) ** -0.5, np.float32))
    scores = graph.add("MatMul", per_head("query", [0, 2, 1, 3]), per_head("key", [0, 2, 3, 1]))
    shares = graph.add("Softmax", graph.add("Mul", scores, scale), axis=-1)  # (texts, heads, tokens, tokens)
    heard = graph.add("MatMul", shares, per_head("value", [0, 2, 1, 3]))
    back = graph.add("Reshape", graph.add("Transpose", heard, perm=[0, 2, 1, 3]), together)
    return graph.linear(back, f"{at}.output.dense")


class _Graph:
    """Nodes and constants, as they are added, in the bytes they will have."""

    def __init__(self, weights: Mapping[str, Floats], *, tiny: float, whole: bool) -> None:
        self.weights, self.tiny, self.whole = weights, tiny, whole
        self.nodes: list[bytes] = []
        self.kept: dict[str, bytes] = {}
        self._rounded: dict[str, tuple[str, ...]] = {}

    def keep(self, name: str, values: Any) -> str:
        """A constant of the graph; gives its name."""
        dims = b"".join(_field(1, size) for size in values.shape)
        kind = _field(2, NUMBERS[values.dtype.name])
        self.kept[name] = dims + kind + _field(8, name) + _field(9, np.ascontiguousarray(values).tobytes())
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """One more node; gives the name of what comes out of it."""
        return self.add_with_outputs(1, operator, *inputs, **attributes)[0]

    def add_with_outputs(self, count: int, operator: str, *inputs: str, **attributes: Any) -> tuple[str, ...]:
        """One more node, of which several things come out."""
        out = tuple(f"node-{len(self.nodes)}" + f"-{place}" * (count > 1) for place in range(count))
        ends = b"".join(_field(1, name) for name in inputs) + b"".join(_field(2, name) for name in out)
        told = b"".join(_field(5, _attribute(*pair)) for pair in attributes.items())
        self.nodes.append(ends + _field(4, operator) + told)
        return out

    def linear(self, rows: str, name: str) -> str:
        """Rows times a matrix plus a vector; files keep the matrix the other way round."""
        product = self._times_bytes if self.whole else self._times
        moved = product(rows, f"{name}.weight", self.weights[f"{name}.weight"].T)
        return self.add("Add", moved, self.keep(f"{name}.bias", self.weights[f"{name}.bias"]))

    def _times(self, rows: str, name: str, matrix: Floats) -> str:
        return self.add("MatMul", rows, self.keep(name, matrix))

    def _times_bytes(self, rows: str, name: str, matrix: Floats) -> str:
        """The same with rows and matrix rounded to bytes, multiplied as whole numbers and scaled back."""
        if rows not in self._rounded:  # three matrices see the same rows
            self._rounded[rows] = self.add_with_outputs(3, "DynamicQuantizeLinear", rows)
        rounded, scale, middle = self._rounded[rows]
        kept, own_middle, scales = self._keep_bytes(name, matrix)
        product = self.add("MatMulInteger", rounded, kept, middle, own_middle)
        return self.add("Mul", self.add("Mul", self.add("Cast", product, to=FLOAT), scale), scales)

    def _keep_bytes(self, name: str, matrix: Floats) -> tuple[str, str, str]:
        """A matrix in bytes, the byte that stands for 0, and the scale of every column."""
        scales = np.maximum(np.abs(matrix).max(axis=0), 1e-12) / LARGEST_BYTE  # (columns,)
        kept = self.keep(name + QUANTIZED, np.round(matrix / scales).astype(np.int8))
        middle = self.keep(name + MIDDLE, np.array(0, np.int8))
        return kept, middle, self.keep(name + SCALE, scales.astype(np.float32))

    def look_up(self, name: str, places: str) -> str:
        """The rows of a table at some places."""
        table = self.weights[name]
        if not self.whole:
            return self.add("Gather", self.keep(name, table), places)
        kept, _, scales = self._keep_bytes(name, table)
        return self.add("Mul", self.add("Cast", self.add("Gather", kept, places), to=FLOAT), scales)

    def norm(self, rows: str, name: str) -> str:
        """Rows of mean 0 and variance 1, scaled and moved."""
        scale, shift = (self.keep(f"{name}.{part}", self.weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.add("LayerNormalization", rows, scale, shift, axis=-1, epsilon=self.tiny)

    def file(self, rows: str) -> bytes:
        """The graph as the content of a file; `rows` is what it gives."""
        self.nodes.append(_field(1, rows) + _field(2, "last_hidden_state") + _field(4, "Identity"))
        width = self.weights[WORDS].shape[1]
        graph = b"".join(_field(1, node) for node in self.nodes) + _field(2, "bert")
        graph += b"".join(_field(5, tensor) for tensor in self.kept.values())
        graph += _field(11, _port("input_ids", "int64", ["texts", "tokens"]))
        graph += _field(12, _port("last_hidden_state", "float32", ["texts", "tokens", width]))
        return _field(1, IR_VERSION) + _field(7, graph) + _field(8, _field(2, OPSET))


def _port(name: str, kind: str, shape: list[Any]) -> bytes:
    """What goes in or comes out: its name, kind and shape, sizes that vary by name."""
    dims = b"".join(_field(1, _field(2 if isinstance(size, str) else 1, size)) for size in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, NUMBERS[kind]) + _field(2, dims)))


def _attribute(name: str, value: Any) -> bytes:
    if isinstance(value, list):
        return _field(1, name) + b"".join(_field(8, one) for one in value) + _field(20, INTS)
    if isinstance(value, float):
        return _field(1, name) + b"\x15" + np.float32(value).tobytes() + _field(20, FLOAT)  # field 2, of 4 bytes
    return _field(1, name) + _field(3, value) + _field(20, INT)


def _field(number: int, value: int | str | bytes) -> bytes:
    """A field of a message: its number, then a whole number, or the length of something and that."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value % 2**64)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth says whether more follow."""
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + _varint(rest) if rest else bytes([low])
