"""The weights of a BERT -> the ONNX graph that onnxruntime runs.

The graph takes token ids, reads all of them, and gives a row for each: one text at a time needs no mask. The names of
tensors are those of Hugging Face.
"""

from collections.abc import Mapping

import numpy as np

from manymetrics.encode.graph_file import GraphFile
from manymetrics.values import Floats

WORDS = "embeddings.word_embeddings.weight"


def bert_graph(weights: Mapping[str, Floats], *, heads: int, tiny: float, whole: bool = False) -> bytes:
    """The ONNX file of a BERT: input_ids (texts, tokens) -> last_hidden_state (texts, tokens, width).

    `heads` is config.json's num_attention_heads, `tiny` its layer_norm_eps; `whole`: in whole numbers.
    """
    graph = GraphFile(weights, tiny=tiny, whole=whole)
    rows = _embed(graph)
    for layer in range(sum(name.endswith(".intermediate.dense.weight") for name in weights)):
        at = f"encoder.layer.{layer}"
        told = _attend(graph, rows, at=f"{at}.attention", heads=heads)
        rows = graph.norm(graph.add("Add", rows, told), f"{at}.attention.output.LayerNorm")
        wide = graph.add("Gelu", graph.linear(rows, f"{at}.intermediate.dense"))
        rows = graph.norm(graph.add("Add", rows, graph.linear(wide, f"{at}.output.dense")), f"{at}.output.LayerNorm")
    return graph.file(rows, name="bert", width=weights[WORDS].shape[1])


def _embed(graph: GraphFile) -> str:
    """What the layers start from: words and their places, as if all were of the first of two sentences."""
    first = graph.weights["embeddings.token_type_embeddings.weight"][0]
    places = graph.keep("places", graph.weights["embeddings.position_embeddings.weight"] + first)
    words = graph.look_up(WORDS, "input_ids")
    length = graph.add("Shape", "input_ids", start=1, end=2)  # (1,): tokens
    here = graph.add("Slice", places, graph.keep("zero", np.zeros(1, np.int64)), length)
    return graph.norm(graph.add("Add", words, here), "embeddings.LayerNorm")


def _attend(graph: GraphFile, rows: str, *, at: str, heads: int) -> str:
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
