"""A model's encoders as an ONNX graph: the same vectors, whatever the batch and its padding."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from manymetrics.cli import main
from manymetrics.encode import ConvolutionEncoder
from manymetrics.errors import InputError, MissingExtra, ModelError
from manymetrics.specialize import SimilarityMetric
from manymetrics.store import export_onnx, onnx_export

TEXTS = ("turn on the lamp", "", "play " * 30, "a", "lamp lamp jazz 😀 please, now!")


@pytest.fixture(scope="module")
def onnx():
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    return pytest.importorskip("onnx", reason="onnx is not installed")


@pytest.fixture
def moved(make_model):
    """A model with a classifier, two encoders with words of their own, and windows of three and five."""
    model = make_model(shared_labels=("no", "yes"))
    rng = np.random.default_rng(3)
    metrics = list(model.metrics)
    for number in (4, 5):
        table = model.vectors.table.copy()
        rows = rng.choice(len(table), 200, replace=False)
        table[rows] += rng.standard_normal((200, 16)).astype(np.float32)
        filters = rng.standard_normal((5, 16, 7)).astype(np.float32)
        encoder = ConvolutionEncoder(table, filters, rng.standard_normal(7).astype(np.float32))
        metrics.append(SimilarityMetric(f"cluster-{number}", "learned", encoder, "matching", 5.0, ("a",)))
    return replace(model, metrics=tuple(metrics))


def run_graph(folder, token_lists, padding=0):
    """What another program would do: pad, and ask for everything."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(folder / "encoders.onnx"), providers=["CPUExecutionProvider"])
    longest = max(map(len, token_lists)) + padding
    ids = np.array([[*tokens, *[7] * (longest - len(tokens))] for tokens in token_lists])
    mask = np.array([[1] * len(tokens) + [0] * (longest - len(tokens)) for tokens in token_lists])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"input_ids": ids, "attention_mask": mask}), strict=True))


def test_the_graph_gives_the_vectors_of_the_model(onnx, moved, tmp_path):
    done = export_onnx(moved, tmp_path / "onnx")
    assert done.metrics == ("cluster-0", "cluster-1", "cluster-1/chances", "word-vectors", "cluster-4", "cluster-5")
    assert done.left_out == ("letters",)
    assert done.difference < 1e-5
    tokens = moved.vectors.read(TEXTS)
    lists = [tokens.ids[start:end].tolist() for start, end in zip(tokens.starts, tokens.starts[1:], strict=False)]
    found = run_graph(done.folder, lists, padding=9)
    for metric in moved.metrics:
        if metric.name != "letters":
            np.testing.assert_allclose(found[metric.name], metric.encoder.encode(tokens), atol=1e-4)
    head = moved.metrics[1].head
    chances = head.chances(moved.metrics[1].encoder.responses(tokens))
    np.testing.assert_allclose(found["cluster-1/chances"], chances, atol=1e-4)
    alone = run_graph(done.folder, lists[:1])
    for name, rows in alone.items():
        np.testing.assert_allclose(rows[0], found[name][0], atol=1e-6)


def test_the_graph_tells_how_to_use_its_rows_and_the_tokenizer_is_beside_it(onnx, moved, tmp_path):
    folder = export_onnx(moved, tmp_path / "onnx").folder
    props = {prop.key: prop.value for prop in onnx.load(folder / "encoders.onnx").metadata_props}
    about = json.loads(props["manymetrics"])
    assert about["metrics"][0] == {
        "name": "cluster-0",
        "kind": "learned",
        "temperature": 10.0,
        "rule": "prototypical",
    }
    assert about["metrics"][1]["labels"] == ["no", "yes"]
    assert json.loads((folder / "tokenizer.json").read_text())["kind"] == "hashed"


def test_all_metrics_share_one_table_in_half_precision(onnx, model, tmp_path):
    graph = onnx.load(export_onnx(model, tmp_path / "onnx").folder / "encoders.onnx").graph
    tables = [tensor for tensor in graph.initializer if tensor.dims[:1] == [512]]
    assert [(list(tensor.dims), tensor.data_type) for tensor in tables] == [([512, 16], onnx.TensorProto.FLOAT16)]


def test_a_graph_that_disagrees_is_not_written(onnx, model, tmp_path, monkeypatch):
    padded = onnx_export._padded
    monkeypatch.setattr(onnx_export, "_padded", lambda tokens: (padded(tokens)[0] + 1, padded(tokens)[1]))
    with pytest.raises(
        ModelError, match=r"vectors differ from the model's by .*, more than 1e-04\. Nothing is written"
    ):
        export_onnx(model, tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()


def test_a_table_too_large_for_a_file_is_refused(onnx, model, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_export, "LARGEST", 1000)
    with pytest.raises(InputError, match="larger than 2 GB"):
        export_onnx(model, tmp_path / "onnx")


def test_without_the_extra_it_says_what_to_install(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r'pip install "manymetrics\[onnx\]"'):
        export_onnx(model, tmp_path / "onnx")


def test_the_command_writes_and_tells(onnx, model, tmp_path):
    model.save(tmp_path / "model")
    words = ["export-onnx", str(tmp_path / "model"), str(tmp_path / "onnx")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert result.stdout == "3 outputs: cluster-0, cluster-1, word-vectors\n"
    assert "Not in the graph, because ONNX cannot hold it: letters." in result.stderr
    about = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)
    assert about["difference"] < 1e-4
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    refused = CliRunner().invoke(main, [*words[:2], str(tmp_path / "other")])
    assert refused.exit_code == 2
