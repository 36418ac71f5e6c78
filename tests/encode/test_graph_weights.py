"""The weights of a graph: read back as they were written, in numbers or in bytes, and from another program."""

import numpy as np
import pytest

from manymetrics.encode import SentenceEncoder
from manymetrics.encode.graph_weights import bert_weights
from manymetrics.encode.graphs import bert_graph
from manymetrics.errors import InputError
from manymetrics.values import Texts
from tiny_sentence import VOCABULARY, bert_encoder, random_bert, write_folder

WEIGHTS = random_bert(words=8, width=4, wide=8)
TEXTS = Texts(["where is my parcel", "refund please", "my my my", "parcel"])


def same_but_places(found):
    return {name for name in WEIGHTS if "position" not in name and "token_type" not in name} <= set(found)


def test_weights_are_read_back_as_they_were_written():
    found = bert_weights(bert_graph(WEIGHTS, heads=2, tiny=1e-12))
    assert same_but_places(found)
    for name in set(WEIGHTS) - {name for name in WEIGHTS if "position" in name or "token_type" in name}:
        np.testing.assert_array_equal(found[name], WEIGHTS[name])
    both = WEIGHTS["embeddings.position_embeddings.weight"] + WEIGHTS["embeddings.token_type_embeddings.weight"][0]
    places, kinds = (found[f"embeddings.{kind}_embeddings.weight"] for kind in ("position", "token_type"))
    np.testing.assert_array_equal(places + kinds[0], both)


def test_what_is_kept_in_bytes_comes_back_within_half_a_step_of_its_column():
    found = bert_weights(bert_graph(WEIGHTS, heads=2, tiny=1e-12, whole=True))
    for name, given in WEIGHTS.items():
        if name.endswith("dense.weight"):
            step = np.abs(given).max(axis=1, keepdims=True) / 127  # files keep matrices the other way round
            assert (np.abs(found[name] - given) <= 0.5001 * step).all()
        elif name.endswith(".bias"):
            np.testing.assert_array_equal(found[name], given)


def test_a_graph_in_whole_numbers_gives_nearly_the_same_rows_and_is_smaller():
    exact = bert_encoder(VOCABULARY, width=32)
    graph = bert_graph(bert_weights(exact.graph.tobytes()), heads=2, tiny=1e-12, whole=True)
    rounded = SentenceEncoder("rounded", np.frombuffer(graph, np.uint8), exact.tokenizer, "cls", 32)
    one, other = (encoder.encode(TEXTS) for encoder in (exact, rounded))
    cosines = (one * other).sum(axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
    assert cosines.mean() > 0.97
    assert (one != other).any()
    assert len(graph) < 0.6 * len(exact.graph)


def test_matrices_of_a_graph_from_elsewhere_go_by_the_names_of_their_nodes():
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
    model = onnx.load_from_string(bert_graph(WEIGHTS, heads=2, tiny=1e-12))
    renamed = {}
    for node in model.graph.node:
        if node.op_type == "MatMul" and node.input[1].startswith("encoder."):
            node.name = "/" + node.input[1].removesuffix(".weight").replace(".", "/") + "/MatMul"
            node.name = node.name.replace("/layer/0", "/layer.0").replace("/layer/1", "/layer.1")
            renamed[node.input[1]] = node.input[1] = f"onnx::MatMul_{len(renamed)}"
    for tensor in model.graph.initializer:
        tensor.name = renamed.get(tensor.name, tensor.name)
    assert len(renamed) == 12
    found = bert_weights(model.SerializeToString())
    for name in WEIGHTS:
        if name.startswith("encoder."):
            np.testing.assert_array_equal(found[name], WEIGHTS[name])


def test_a_graph_that_is_no_bert_is_refused_in_a_sentence(tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
    other = SentenceEncoder.from_folder(write_folder(tmp_path / "tiny"))
    with pytest.raises(InputError, match=r"not that of a BERT whose weights have names, so it cannot be tuned\."):
        bert_weights(other.graph.tobytes())
