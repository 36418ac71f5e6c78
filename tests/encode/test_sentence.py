"""Sentence encoders, on a graph of a few bytes."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
import tokenizers

import manymetrics as mm
from manymetrics.encode import SentenceEncoder, open_encoders, pack_encoders, sentence
from manymetrics.values import Texts
from tiny_sentence import VOCABULARY, write_folder

TEXTS = ["where is my parcel", "refund please", "", "parcel", "where is my parcel", "my my my"]


@pytest.fixture
def encoder(tmp_path):
    return SentenceEncoder.from_folder(write_folder(tmp_path / "tiny", pooling="mean"))


def test_a_folder_becomes_an_encoder_with_its_own_pooling(tmp_path, encoder):
    assert (encoder.name, encoder.pooling, encoder.width) == ("tiny", "mean", 6)
    first = SentenceEncoder.from_folder(write_folder(tmp_path / "other"))
    assert first.pooling == "cls"
    assert (first.encode(Texts(["parcel"])) == first.encode(Texts(["refund please"]))).all(), "the first token is [CLS]"
    assert (encoder.encode(Texts(["parcel"])) != encoder.encode(Texts(["refund please"]))).any()


def test_a_row_does_not_depend_on_the_texts_beside_it_or_on_threads(encoder, monkeypatch):
    alone = np.concatenate([encoder.encode(Texts([text])) for text in TEXTS])
    assert (encoder.encode(Texts(TEXTS)) == alone).all()
    many = TEXTS * 20 + [f"where {word}" for word in VOCABULARY] * 5
    monkeypatch.setattr(sentence.os, "cpu_count", lambda: 1)
    one_thread = encoder.encode(Texts(many))
    monkeypatch.setattr(sentence.os, "cpu_count", lambda: 4)
    assert (encoder.encode(Texts(many)) == one_thread).all()


def test_rows_are_remembered_and_equal_texts_encoded_once(encoder, monkeypatch):
    asked = []
    row = SentenceEncoder._row
    monkeypatch.setattr(SentenceEncoder, "_row", lambda self, text: asked.append(text) or row(self, text))
    texts = Texts(TEXTS)
    whole = encoder.encode(texts)
    assert sorted(asked) == sorted(set(TEXTS))
    assert (encoder.encode(texts.take([3, 0])) == whole[[3, 0]]).all()
    assert (encoder.encode(Texts.join([texts, texts])) == np.concatenate([whole, whole])).all()
    assert len(asked) == len(set(TEXTS))


def test_a_text_that_was_asked_before_is_not_run_again_and_only_the_latest_are_remembered(encoder, monkeypatch):
    run, runs = SentenceEncoder._run, []
    monkeypatch.setattr(SentenceEncoder, "_run", lambda self, text: runs.append(text) or run(self, text))
    monkeypatch.setattr(sentence, "MOST_REMEMBERED", 2)
    fresh = replace(encoder)
    first = fresh.encode(Texts(["parcel"]))
    first[:] = 0  # whoever changes its rows changes nobody else's
    assert (fresh.encode(Texts(["parcel"])) != 0).any()
    for text in ("parcel", "my", "is", "parcel"):
        fresh.encode(Texts([text]))
    assert runs == ["parcel", "my", "is", "parcel"]
    assert pickle.loads(pickle.dumps(fresh)).fingerprint == encoder.fingerprint  # noqa: S301 - our own


def test_an_encoder_is_the_same_after_saving_and_after_pickling(encoder):
    tensors, about, _ = pack_encoders([encoder])
    (opened,) = open_encoders(tensors, json.loads(json.dumps(about)))
    sent = pickle.loads(pickle.dumps(encoder))  # noqa: S301 - our own
    for other in (opened, sent):
        assert other.fingerprint == encoder.fingerprint
        assert (other.encode(Texts(TEXTS)) == encoder.encode(Texts(TEXTS))).all()


def test_a_long_text_is_cut_before_anything_is_made_of_it(encoder):
    long = "where " * 1_000_000
    assert encoder.lengths(Texts([long])).tolist() == [sentence.LONGEST]
    assert np.isfinite(encoder.encode(Texts([long, "\ud800", "a\0b"]))).all()


def test_folders_that_hold_no_encoder_are_refused_with_a_sentence(tmp_path):
    with pytest.raises(mm.InputError, match=r"is no sentence encoder: it needs a tokenizer\.json and one of"):
        SentenceEncoder.from_folder(tmp_path)
    folder = write_folder(tmp_path / "broken")
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(mm.ModelError, match="The tokenizer of 'broken' cannot be read"):
        SentenceEncoder.from_folder(folder)
    write_folder(folder)
    (folder / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(mm.ModelError, match="The graph of 'broken' cannot be run"):
        SentenceEncoder.from_folder(folder)
    write_folder(folder, inputs=("input_ids", "pixels"))
    with pytest.raises(mm.ModelError, match="wants \\['pixels'\\], which a text does not give"):
        SentenceEncoder.from_folder(folder)


def test_words_that_the_tokenizer_does_not_know_are_counted_and_told(encoder):
    assert encoder.foreign_share(Texts(["where is my parcel", ""])) == 0
    assert encoder.foreign_share(Texts(["where ist mein parcel"])) == 0.5
    assert encoder.foreign_share(Texts([])) == 0
    assert mm.tell_foreign(encoder, Texts(["where is my parcel"])) is None
    told = mm.tell_foreign(encoder, Texts(["wo ist mein parcel"]))
    assert told.startswith("75% of the words are strange to the encoder 'tiny', as in a language it does not know.")


def test_words_that_are_cut_in_many_pieces_are_foreign():
    vocabulary = {**VOCABULARY, "p": 8, "##ak": 9, "##et": 10, "##s": 11}
    pieces = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106
    pieces.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    encoder = SentenceEncoder("pieces", np.zeros(1, np.uint8), pieces.to_str())
    assert encoder.foreign_share(Texts(["my paket"])) == 0.5
    assert encoder.foreign_share(Texts(["my parcels"])) == 0, "a word and its ending is known well enough"


def test_a_card_is_kept_with_the_encoder(encoder):
    carded = replace(encoder, card="English. Licence: MIT.")
    tensors, about, _ = pack_encoders([carded])
    (opened,) = open_encoders(tensors, json.loads(json.dumps(about)))
    assert opened.card == "English. Licence: MIT."
    del about[0]["settings"]["card"]  # as older models were written
    assert open_encoders(tensors, about)[0].card == ""


def test_a_model_can_be_learned_with_it_beside_the_others(encoder, tiny_bank, tiny_recipe, vectors, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    model = mm.learn_metrics(tiny_bank, tiny_recipe, vectors=vectors, encoders={"tiny": encoder})
    assert "tiny" in [metric.name for metric in model.metrics]
    model.save(tmp_path / "model")
    task = tiny_bank.tasks[0]
    here, there = (
        one.adapt(task.train.texts, task.train.labels).predict_proba(task.test.texts)
        for one in (model, mm.load_model(tmp_path / "model"))
    )
    assert (here == there).all()
