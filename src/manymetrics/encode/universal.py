"""The weights of the universal sentence encoder for 16 languages -> the ONNX graph that onnxruntime runs.

The graph takes the ids of a text's pieces and gives one row: the vectors of the pieces beside what convolutions over
2, 3 and 5 of them make of those, summed and divided by the root of their number, then four layers. The names of tensors
are those of the file that the weights come in.

The vectors are kept in bytes, as they come: in so many shares as there are scales, piece by piece in turn.
"""

from collections.abc import Mapping

import numpy as np

from manymetrics.encode.graph_file import FLOAT, GraphFile
from manymetrics.values import Floats

ORDERS = {2: 0, 3: 1, 5: 2}  # how many pieces a convolution sees -> how many of them stand before its own


def universal_graph(weights: Mapping[str, Floats]) -> bytes:
    """The ONNX file of the encoder: input_ids (texts, pieces) -> last_hidden_state (texts, 1, width)."""
    graph = GraphFile(_by_layer(weights), tiny=float(weights["eps"]))
    pieces = _look_up(graph, weights)
    heard = [_convolve(graph, pieces, order) for order in ORDERS]
    every = graph.norm(graph.add("Concat", pieces, *heard, axis=-1), "every.norm")
    row = _layers(graph, _sum(graph, every))
    return graph.file(row, name="universal", width=weights["d3"].shape[1])


def _by_layer(weights: Mapping[str, Floats]) -> dict[str, Floats]:
    """The weights, and those of layers by the names that `GraphFile` gives them, matrices as (out, in)."""
    named = {"every.norm.weight": weights["ln_g"], "every.norm.bias": weights["ln_b"]}
    named |= {"sum.weight": weights["cnn_W"].T, "sum.bias": weights["cnn_b"]}
    for order in ORDERS:
        named |= {f"{order}.weight": weights[f"proj{order}"].T, f"{order}.bias": weights[f"proj_b{order}"]}
        named |= {f"{order}.norm.weight": weights[f"ln_g{order}"], f"{order}.norm.bias": weights[f"ln_b{order}"]}
    return {**weights, **named}


def _look_up(graph: GraphFile, weights: Mapping[str, Floats]) -> str:
    """The vectors of a text's pieces, scaled back from bytes."""
    shares = len(weights["scale"])
    table = np.stack([weights[f"q{share + 1}"] for share in range(shares)], axis=1)  # (rows, shares, width)
    kept = graph.keep("table", table.reshape(-1, table.shape[-1]))
    share = graph.add("Mod", "input_ids", graph.keep("shares", np.array(shares)))
    scale, low = (
        graph.add("Gather", graph.keep(name, weights[name].reshape(-1, 1)), share) for name in ("scale", "lo")
    )
    found = graph.add("Cast", graph.add("Gather", kept, "input_ids"), to=FLOAT)
    return graph.add("Add", graph.add("Mul", found, scale), low)


def _convolve(graph: GraphFile, pieces: str, order: int) -> str:
    """Two convolutions over so many pieces made narrower, each added to what it was made of."""
    before = ORDERS[order]
    narrow = graph.norm(graph.linear(pieces, f"{order}"), f"{order}.norm")
    told = graph.add("Transpose", narrow, perm=[0, 2, 1])  # (texts, width, pieces)
    for layer in ("1", "2"):
        bias = graph.weights[f"b{layer}_{order}"]
        matrix = graph.weights[f"w{layer}_{order}"].reshape(order, -1, len(bias))  # (pieces, in, out)
        kept = graph.keep(f"w{layer}_{order}", matrix.transpose(2, 1, 0))
        moved = graph.add("Conv", told, kept, graph.keep(f"b{layer}_{order}", bias), pads=[before, order - 1 - before])
        told = graph.add("Add", graph.add("Relu", moved), told)
    return graph.add("Transpose", told, perm=[0, 2, 1])


def _sum(graph: GraphFile, rows: str) -> str:
    """The rows of the pieces moved and summed, divided by the root of how many there are."""
    mean = graph.add("ReduceMean", rows, graph.keep("pieces", np.array([1])), keepdims=1)
    count = graph.add("Cast", graph.add("Shape", "input_ids", start=1, end=2), to=FLOAT)
    return graph.add("Mul", graph.linear(mean, "sum"), graph.add("Sqrt", count))


def _layers(graph: GraphFile, row: str) -> str:
    """Four layers, the second and the fourth with what went in before; a row of length one."""

    def times(rows: str, name: str) -> str:
        return graph.times(rows, name, graph.weights[name])

    narrow = times(graph.add("Relu", times(row, "d0")), "d1")
    first = graph.add("Relu", graph.add("Add", narrow, times(row, "p1")))
    wide = times(graph.add("Relu", times(first, "d2")), "d3")
    last = graph.add("Tanh", graph.add("Add", wide, times(first, "p3")))
    return graph.add("LpNormalization", last, axis=-1, p=2)
