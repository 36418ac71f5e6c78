"""Which words are unfamiliar to a sentence encoder, by its tokenizer."""

from dataclasses import replace

import numpy as np
import pytest
import tokenizers

import manymetrics as mm
from manymetrics.encode.unfamiliar import MULTILINGUAL, unfamiliar_share
from tiny_sentence import VOCABULARY, bert_encoder, piece_tokenizer, write_bert_folder

PIECES = {"▁": -3, "▁where": -1, "▁is": -1, "▁par": -2, "cel": -2, **dict.fromkeys("adehistw包裹在哪里我的", -6)}


@pytest.fixture(scope="module")
def words():
    return bert_encoder(VOCABULARY)


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    vocabulary = range(len(PIECES) + 3)
    folder = tmp_path_factory.mktemp("hub") / "pieces"
    return mm.load_encoder(write_bert_folder(folder, vocabulary=vocabulary, tokenizer=piece_tokenizer(PIECES)))


@pytest.mark.parametrize(
    ("texts", "share"),
    [(["where is my parcel", ""], 0), (["where ist mein parcel"], 0.5), ([], 0), (["where " * 1_000_000], 0)],
)
def test_words_that_the_vocabulary_lacks_are_unfamiliar(words, texts, share):
    assert unfamiliar_share(words, texts) == share


def test_words_that_are_cut_in_many_pieces_are_unfamiliar(words):
    vocabulary = {**VOCABULARY, "p": 8, "##ak": 9, "##et": 10, "##s": 11}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    encoder = replace(words, tokenizer=tokenizer.to_str())
    assert unfamiliar_share(encoder, ["my paket"]) == 0.5
    assert unfamiliar_share(encoder, ["my parcels"]) == 0, "a word and its ending is known well enough"


@pytest.mark.parametrize(
    ("texts", "share"),
    [
        (["where is", ""], 0),
        (["(where)? 12 parcel!"], 0),  # signs and numbers are no words
        (["where is wisst"], 1 / 3),  # five pieces of a letter each
        (["where жж"], 0.5),  # no piece for its letters
        (["我的包裹在哪里"], 0),  # no spaces between words
        ([], 0),
    ],
)
def test_unigram_tokenizers_are_asked_word_by_word_and_dense_scripts_by_unknown_pieces(pieces, texts, share):
    assert unfamiliar_share(pieces, texts) == pytest.approx(share)
    assert unfamiliar_share(pieces, [*texts, "ที่ไหน"]) > 0
    assert np.isfinite(pieces.encode(texts)).all()


def test_many_unfamiliar_words_are_reported_with_an_encoder_that_may_know_them(words):
    assert mm.describe_unfamiliar(words, ["where is my parcel"]) is None
    message = mm.describe_unfamiliar(words, ["wo ist mein parcel"])
    assert message.startswith("75% of the words are unfamiliar to the encoder 'tiny-bert', as in a language")
    assert message.endswith(f"{MULTILINGUAL} knows 100 languages: manymetrics encoders get {MULTILINGUAL}")
    assert "encoders get" not in mm.describe_unfamiliar(replace(words, name=MULTILINGUAL), ["wo ist mein parcel"])
