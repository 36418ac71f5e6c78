"""The graph of the universal sentence encoder, against the same steps written out with numpy."""

import numpy as np
import pytest

from manymetrics.encode import SentenceEncoder
from manymetrics.encode.graph_weights import bert_weights
from manymetrics.encode.sentencepiece import unigram_tokenizer
from manymetrics.encode.universal import universal_graph
from manymetrics.errors import InputError
from manymetrics.values import Texts
from tiny_sentence import piece_model, random_universal

WEIGHTS = random_universal()
PIECES = {"▁where": -1.0, "▁my": -1.0, "▁parcel": -1.0}  # 3, 4, 5; 0 to 2 are unknown, begin and end
TEXTS = ["where my parcel", "my", "parcel parcel my where my parcel parcel", "", "my parcel?"]


def by_hand(ids):
    """The row of a text, a piece and a window at a time."""
    w = WEIGHTS

    def norm(rows, name):
        middle, spread = rows.mean(axis=-1, keepdims=True), rows.std(axis=-1, keepdims=True)
        return (rows - middle) / spread * w[f"ln_g{name}"] + w[f"ln_b{name}"]

    def windows(rows, order, before):
        after = order - 1 - before
        padded = np.pad(rows, ((before, after), (0, 0)))
        return np.stack([padded[place : place + order].reshape(-1) for place in range(len(rows))])

    pieces = np.stack([w[f"q{one % 3 + 1}"][one // 3] * w["scale"][one % 3] + w["lo"][one % 3] for one in ids])
    every = [pieces]
    for order, before in ((2, 0), (3, 1), (5, 2)):
        rows = norm(pieces @ w[f"proj{order}"] + w[f"proj_b{order}"], order)
        for layer in (1, 2):
            seen = windows(rows, order, before) @ w[f"w{layer}_{order}"] + w[f"b{layer}_{order}"]
            rows = rows + np.maximum(seen, 0)
        every.append(rows)
    moved = norm(np.concatenate(every, axis=1), "") @ w["cnn_W"] + w["cnn_b"]
    row = moved.sum(axis=0) / np.sqrt(len(ids))
    first = np.maximum(np.maximum(row @ w["d0"], 0) @ w["d1"] + row @ w["p1"], 0)
    last = np.tanh(np.maximum(first @ w["d2"], 0) @ w["d3"] + first @ w["p3"])
    return last / np.linalg.norm(last)


@pytest.fixture(scope="module")
def encoder():
    graph = np.frombuffer(universal_graph(WEIGHTS), np.uint8)
    return SentenceEncoder("tiny", graph, unigram_tokenizer(piece_model(PIECES)))


def test_the_graph_gives_the_rows_that_the_steps_written_out_give(encoder):
    cut = [[1, 3, 4, 5, 2], [1, 4, 2], [1, 5, 5, 4, 3, 4, 5, 5, 2], [1, 2], [1, 4, 5, 0, 2]]
    rows = encoder.encode(Texts(TEXTS))
    assert rows.shape == (5, 6)
    assert np.abs(rows - np.stack([by_hand(ids) for ids in cut])).max() < 2e-3, "as near as half precision is"


def test_a_row_does_not_depend_on_the_texts_beside_it(encoder):
    alone = np.concatenate([encoder.encode(Texts([text])) for text in TEXTS])
    assert (encoder.encode(Texts(TEXTS * 8)) == np.tile(alone, (8, 1))).all()


def test_the_graph_is_one_by_the_rules_of_the_format():
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: nothing checks the graph")
    onnx.checker.check_model(onnx.load_from_string(universal_graph(WEIGHTS)), full_check=True)


def test_vectors_are_kept_in_bytes_as_they_come():
    few, many = (len(universal_graph(random_universal(rows=rows))) for rows in (2, 1002))
    assert many - few == pytest.approx(1000 * 3 * 6, abs=16), "a byte for each number of each piece"


def test_it_cannot_be_tuned_and_says_so():
    with pytest.raises(InputError, match=r"so it cannot be tuned\."):
        bert_weights(universal_graph(WEIGHTS))
