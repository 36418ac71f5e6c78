"""The nodes and constants of an ONNX graph -> the file that onnxruntime runs.

A graph is a protocol-buffer message of few kinds of fields, so it is written here directly: neither torch nor the onnx
package is needed. Field numbers are those of onnx.proto.

In whole numbers, matrices are kept in a byte a weight, every column at a scale of its own, and rows are rounded to
bytes before they are multiplied: a quarter of the size, and faster.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from manymetrics.encode.messages import field
from manymetrics.values import Floats

OPSET, IR_VERSION = 20, 9  # the first with Gelu, and the format of that time
FLOAT, INT, INTS = 1, 2, 7  # kinds of attributes
NUMBERS = {"float32": 1, "uint8": 2, "int8": 3, "int64": 7}  # kinds of tensors
QUANTIZED, SCALE, MIDDLE = "_quantized", "_scale", "_zero_point"  # ends of the names of what is kept in bytes
LARGEST_BYTE = 127


class GraphFile:
    """Nodes and constants, as they are added, in the bytes they will have."""

    def __init__(self, weights: Mapping[str, Floats], *, tiny: float, whole: bool = False) -> None:
        self.weights, self.tiny, self.whole = weights, tiny, whole
        self.nodes: list[bytes] = []
        self.kept: dict[str, bytes] = {}
        self._rounded: dict[str, tuple[str, ...]] = {}

    def keep(self, name: str, values: Any) -> str:
        """A constant of the graph; gives its name."""
        dims = b"".join(field(1, size) for size in values.shape)
        kind = field(2, NUMBERS[values.dtype.name])
        self.kept[name] = dims + kind + field(8, name) + field(9, np.ascontiguousarray(values).tobytes())
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """One more node; gives the name of what comes out of it."""
        return self.add_with_outputs(1, operator, *inputs, **attributes)[0]

    def add_with_outputs(self, count: int, operator: str, *inputs: str, **attributes: Any) -> tuple[str, ...]:
        """One more node, of which several things come out."""
        out = tuple(f"node-{len(self.nodes)}" + f"-{place}" * (count > 1) for place in range(count))
        ends = b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in out)
        told = b"".join(field(5, _attribute(*pair)) for pair in attributes.items())
        self.nodes.append(ends + field(4, operator) + told)
        return out

    def linear(self, rows: str, name: str) -> str:
        """Rows times a matrix plus a vector; files keep the matrix the other way round."""
        moved = self.times(rows, f"{name}.weight", self.weights[f"{name}.weight"].T)
        return self.add("Add", moved, self.keep(f"{name}.bias", self.weights[f"{name}.bias"]))

    def times(self, rows: str, name: str, matrix: Floats) -> str:
        """Rows times a matrix, which is kept by that name."""
        if self.whole:
            return self._times_bytes(rows, name, matrix)
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

    def file(self, rows: str, *, name: str, width: int) -> bytes:
        """The graph as the content of a file; `rows` is what it gives, of so many numbers each."""
        self.nodes.append(field(1, rows) + field(2, "last_hidden_state") + field(4, "Identity"))
        graph = b"".join(field(1, node) for node in self.nodes) + field(2, name)
        graph += b"".join(field(5, tensor) for tensor in self.kept.values())
        graph += field(11, _port("input_ids", "int64", ["texts", "tokens"]))
        graph += field(12, _port("last_hidden_state", "float32", ["texts", "tokens", width]))
        return field(1, IR_VERSION) + field(7, graph) + field(8, field(2, OPSET))


def _port(name: str, kind: str, shape: list[Any]) -> bytes:
    """What goes in or comes out: its name, kind and shape, sizes that vary by name."""
    dims = b"".join(field(1, field(2 if isinstance(size, str) else 1, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, NUMBERS[kind]) + field(2, dims)))


def _attribute(name: str, value: Any) -> bytes:
    if isinstance(value, list):
        return field(1, name) + b"".join(field(8, one) for one in value) + field(20, INTS)
    if isinstance(value, float):
        return field(1, name) + b"\x15" + np.float32(value).tobytes() + field(20, FLOAT)  # field 2, of 4 bytes
    return field(1, name) + field(3, value) + field(20, INT)
