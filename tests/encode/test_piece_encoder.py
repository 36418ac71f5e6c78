"""Encoders that cut texts by SentencePiece: which words are strange to them."""

import json
import pickle

import numpy as np
import pytest

import manymetrics as mm
from manymetrics.encode import open_encoders, pack_encoders
from manymetrics.encode.pieces import PieceEncoder, encoder_class
from manymetrics.encode.sentence import SentenceEncoder
from manymetrics.encode.sentencepiece import unigram_tokenizer
from manymetrics.encode.universal import universal_graph
from manymetrics.values import Texts
from tiny_sentence import piece_model, random_universal, write_folder

PIECES = {"▁": -3, "▁where": -1, "▁is": -1, "▁par": -2, "cel": -2, **dict.fromkeys("adehistw包裹在哪里我的", -6)}
TOKENIZER = unigram_tokenizer(piece_model(PIECES))
GRAPH = universal_graph(random_universal(rows=9))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pieces").mkdir()
    (tmp_path / "pieces" / "model.onnx").write_bytes(GRAPH)
    (tmp_path / "pieces" / "tokenizer.json").write_text(TOKENIZER, encoding="utf-8")
    return tmp_path / "pieces"


@pytest.fixture
def encoder(folder):
    return mm.load_encoder(folder)


def test_words_in_many_short_pieces_or_with_unknown_letters_are_strange(encoder):
    assert encoder.foreign_share(Texts(["where is", ""])) == 0
    assert encoder.foreign_share(Texts(["(where)? 12 parcel!"])) == 0, "signs and numbers are no words"
    assert encoder.foreign_share(Texts(["where is wisst"])) == pytest.approx(1 / 3), "five pieces of a letter each"
    assert encoder.foreign_share(Texts(["where жж"])) == 0.5, "no piece for its letters"
    assert encoder.foreign_share(Texts([])) == 0


def test_where_no_spaces_stand_between_words_unknown_pieces_alone_are_strange(encoder):
    assert encoder.foreign_share(Texts(["我的包裹在哪里"])) == 0
    assert encoder.foreign_share(Texts(["我的包裹在哪里 ที่ไหน"])) > 0
    plain = SentenceEncoder("plain", encoder.graph, encoder.tokenizer)
    assert plain.foreign_share(Texts(["我的包裹在哪里"])) == 1, "one word of many pieces"


def test_what_is_strange_is_told_with_the_encoder_that_may_know_it(encoder):
    assert mm.tell_foreign(encoder, Texts(["where is", "我的包裹"])) is None
    told = mm.tell_foreign(encoder, Texts(["где"]))
    assert told.startswith("100% of the words are strange to the encoder 'pieces'")
    assert told.endswith(" use-multilingual knows 16 languages: manymetrics encoders get use-multilingual")
    named = PieceEncoder("use-multilingual", encoder.graph, encoder.tokenizer)
    assert "encoders get" not in mm.tell_foreign(named, Texts(["где"]))


def test_a_folder_gives_the_class_that_fits_its_tokenizer(folder, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
    assert type(mm.load_encoder(folder)) is PieceEncoder
    assert type(mm.load_encoder(write_folder(tmp_path / "words"))) is SentenceEncoder
    assert encoder_class("no json") is encoder_class("[]") is encoder_class("{}") is SentenceEncoder
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(mm.ModelError, match="The tokenizer of 'pieces' cannot be read"):
        mm.load_encoder(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(mm.InputError, match="is no sentence encoder"):
        mm.load_encoder(folder)


def test_it_is_the_same_after_saving_and_after_pickling(encoder):
    tensors, about, _ = pack_encoders([encoder])
    (opened,) = open_encoders(tensors, json.loads(json.dumps(about)))
    for other in (opened, pickle.loads(pickle.dumps(encoder))):  # noqa: S301 - our own
        assert type(other) is PieceEncoder
        assert other.fingerprint == encoder.fingerprint
        assert (other.encode(Texts(["where"])) == encoder.encode(Texts(["where"]))).all()


def test_a_long_text_is_cut_before_anything_is_made_of_it(encoder):
    assert encoder.foreign_share(Texts(["where " * 1_000_000])) == 0
    assert np.isfinite(encoder.encode(Texts(["where " * 1_000_000, "\ud800", "a\0b"]))).all()


def test_the_fetched_encoder_knows_sixteen_languages_and_says_when_there_is_another():
    if not mm.list_encoders()["use-multilingual"]:
        pytest.skip("use-multilingual is not in the cache; fetch it with: manymetrics encoders get use-multilingual")
    encoder = mm.load_encoder("use-multilingual")
    asked = [
        *("wo ist mein Paket", "où est mon colis", "gdzie jest moja paczka", "kargom nerede", "где моя посылка"),
        *("我的包裹在哪里", "أين طردي", "私の荷物はどこですか", "내 소포는 어디에 있나요", "พัสดุของฉันอยู่ที่ไหน"),
    ]
    near, far = encoder.encode(Texts(["where is my parcel", "turn on the light"])) @ encoder.encode(Texts(asked)).T
    assert encoder.width == 512
    assert (near > far + 0.2).all()
    assert mm.tell_foreign(encoder, Texts(asked)) is None
    for text in ("haluaisin peruuttaa tilaukseni", "πού είναι το δέμα μου", "היכן החבילה שלי", "मेरा पार्सल कहाँ है"):
        assert mm.tell_foreign(encoder, Texts([text])), text
