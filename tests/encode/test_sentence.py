"""Sentence encoders, on a graph of a few bytes."""

import json
from dataclasses import replace

import numpy as np
import pytest

import manymetrics as mm
from manymetrics.encode import LowRankFactors, SentenceEncoder, sentence, text_cache_of
from manymetrics.encode.runtime import session
from tiny_sentence import VOCABULARY, write_folder

MODULES = ("Transformer", "Pooling", "Normalize")
TEXTS = ["where is my parcel", "refund please", "", "parcel", "where is my parcel", "my my my"]


@pytest.fixture
def encoder(tmp_path):
    return SentenceEncoder.from_folder(write_folder(tmp_path / "tiny", pooling="mean"))


def write_config(folder, config, modules=None):
    """A folder that says how to pool as sentence-transformers writes it."""
    write_folder(folder, pooling=None)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    if modules is not None:
        listed = [{"type": f"sentence_transformers.models.{kind}", "path": "../outside"} for kind in modules]
        (folder / "modules.json").write_text(json.dumps(listed))
    return folder


@pytest.mark.parametrize(
    ("config", "modules", "pooling"),
    [
        ({"pooling_mode": "mean", "embedding_dimension": 6}, None, "mean"),
        ({"pooling_mode": ["cls"], "include_prompt": True}, MODULES, "cls"),
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, MODULES, "mean"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, None, "cls"),
    ],
)
def test_both_forms_of_the_pooling_config_are_known(tmp_path, config, modules, pooling):
    encoder = mm.load_encoder(write_config(tmp_path / "tiny", config, modules))
    assert (encoder.name, encoder.pooling, encoder.width) == ("tiny", pooling, 6)
    table = np.random.default_rng(0).standard_normal((len(VOCABULARY), 6)).astype(np.float32)  # as in the graph
    rows = table[[VOCABULARY[word] for word in ("[CLS]", "where", "is", "my", "parcel")]]
    tokens = rows + rows**2
    expected = tokens.mean(axis=0) if pooling == "mean" else tokens[0]
    np.testing.assert_allclose(encoder.encode(["where is my parcel"])[0], expected, rtol=2e-3, atol=1e-3)


def test_a_folder_that_does_not_say_how_to_pool_is_refused_until_it_is_told(tmp_path):
    folder = write_folder(tmp_path / "exported", pooling=None)
    with pytest.raises(
        mm.InputError, match=r"exported does not say how .* are pooled.*pooling=\"cls\" or pooling=\"mean\""
    ):
        mm.load_encoder(folder)
    for pooling in ("cls", "mean"):
        assert mm.load_encoder(folder, pooling=pooling).pooling == pooling
    with pytest.raises(mm.DataError, match=r"The pooling of 'exported' is 'max'. Use 'cls' or 'mean'."):
        mm.load_encoder(folder, pooling="max")


@pytest.mark.parametrize(
    ("config", "modules", "message"),
    [
        ([], None, "names no pooling"),
        ({"pooling_mode": "lasttoken"}, None, "pools the rows of tokens by lasttoken. Known are cls and mean"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}, None, "by mean, max_tokens"),
        ("{", None, "config.json cannot be read"),
        ({"pooling_mode": "mean"}, (*MODULES, "Dense"), "the module Dense, which is not applied here"),
    ],
)
def test_a_pooling_that_is_unknown_here_is_refused_and_can_be_given(tmp_path, config, modules, message):
    folder = write_config(tmp_path / "tiny", config, modules)
    with pytest.raises(mm.InputError, match=message):
        mm.load_encoder(folder)
    assert mm.load_encoder(folder, pooling="mean").pooling == "mean"


def test_a_graph_that_pools_by_itself_is_refused(tmp_path):
    from onnx import TensorProto, helper

    folder = write_folder(tmp_path / "pooled")
    nodes = [helper.make_node("Cast", ["input_ids"], ["sentence_embedding"], to=TensorProto.FLOAT)]
    given = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "tokens"])]
    out = helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", "tokens"])
    graph = helper.make_graph(nodes, "pooled", given, [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(mm.ModelError, match="The first output of 'pooled' is not a row for each token"):
        mm.load_encoder(folder)


def test_a_row_does_not_depend_on_the_texts_beside_it_or_on_threads(encoder, monkeypatch):
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    assert (encoder.encode(TEXTS) == alone).all()
    many = TEXTS * 20 + [f"where {word}" for word in VOCABULARY] * 5
    monkeypatch.setattr(session.os, "cpu_count", lambda: 1)
    one_thread = encoder.encode(many)
    monkeypatch.setattr(session.os, "cpu_count", lambda: 4)
    assert (encoder.encode(many) == one_thread).all()


@pytest.fixture
def runs(monkeypatch):
    """The texts that are run, and not taken from the cache."""
    texts, run = [], SentenceEncoder._run
    monkeypatch.setattr(SentenceEncoder, "_run", lambda self, some: texts.extend(some) or run(self, some))
    return texts


def test_equal_texts_are_run_once_and_only_the_latest_are_cached(encoder, runs, monkeypatch):
    monkeypatch.setattr(sentence, "MAX_CACHED", 2)
    fresh = replace(encoder)
    whole = fresh.encode(["parcel", "my", "parcel"])
    assert runs == ["parcel", "my"]
    whole[:] = 0  # whoever changes its rows changes nobody else's
    assert (fresh.encode(["parcel"]) != 0).any()
    for text in ("is", "parcel", "my"):
        fresh.encode([text])
    assert runs == ["parcel", "my", "is", "my"]


def test_each_owner_has_a_cache_of_its_own_and_nobody_has_none(encoder, runs):
    encoder = replace(encoder)

    def count(owner, *texts):
        runs.clear()
        with text_cache_of(owner):
            encoder.encode(texts)
        return len(runs)

    assert (count("acme", "parcel"), count("acme", "parcel"), count("globex", "parcel")) == (1, 0, 1)
    assert (count(None, "parcel", "my", "parcel"), count(None, "parcel")) == (3, 1)
    assert (count("", "parcel"), count("", "parcel"), count("acme", "parcel")) == (1, 0, 0)


def test_a_long_text_is_cut_before_anything_is_made_of_it(encoder):
    long = "where " * 1_000_000
    assert len(encoder.tokenize([long])[0]) == sentence.MAX_TOKENS
    assert np.isfinite(encoder.encode([long, "\ud800", "a\0b"])).all()


@pytest.mark.parametrize(
    ("file", "content", "error", "message"),
    [
        ("model.onnx", None, mm.InputError, r"is no sentence encoder: it needs a tokenizer\.json and either"),
        ("tokenizer.json", None, mm.InputError, r"tiny is no sentence encoder: it needs a tokenizer\.json"),
        ("tokenizer.json", b"{}", mm.ModelError, "The tokenizer of 'tiny' cannot be read"),
        ("model.onnx", b"not a graph", mm.ModelError, "The graph of 'tiny' cannot be run"),
    ],
)
def test_folders_that_hold_no_encoder_are_refused(tmp_path, file, content, error, message):
    folder = write_folder(tmp_path / "tiny")
    (folder / file).unlink() if content is None else (folder / file).write_bytes(content)
    with pytest.raises(error, match=message):
        SentenceEncoder.from_folder(folder)


def test_a_graph_that_wants_more_than_a_text_gives_is_refused(tmp_path):
    folder = write_folder(tmp_path / "broken", inputs=("input_ids", "pixels"))
    with pytest.raises(mm.ModelError, match="wants \\['pixels'\\], which a text does not give"):
        SentenceEncoder.from_folder(folder)


def test_an_onnx_file_takes_no_factors(encoder):
    with pytest.raises(mm.InputError, match="The encoder 'tiny' is an ONNX file, so it cannot be tuned"):
        encoder.with_factors(LowRankFactors({}))
