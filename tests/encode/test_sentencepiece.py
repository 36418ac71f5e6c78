"""A SentencePiece model as a tokenizer.json, on models of a few pieces."""

import json

import pytest
import tokenizers

from manymetrics.encode.sentencepiece import unigram_tokenizer
from tiny_sentence import piece_model

PIECES = {"▁": -3, "▁where": -2, "▁par": -2, "cel": -2, "▁parcel": -5, "s": -3, "包裹": -2, "包": -4}


@pytest.fixture(scope="module")
def tokenizer():
    return tokenizers.Tokenizer.from_str(unigram_tokenizer(piece_model(PIECES)))


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("where", "▁where"),
        ("parcel", "▁par cel"),  # -4 together, and -5 as one piece
        ("  where   parcels ", "▁where ▁par cel s"),
        ("包裹包", "▁ 包裹 包"),
        ("", ""),
    ],
)
def test_a_text_is_cut_in_the_likeliest_pieces_between_begin_and_end(tokenizer, text, pieces):
    assert tokenizer.encode(text).tokens == ["<s>", *pieces.split(), "</s>"]


def test_pieces_have_the_places_they_have_in_the_model(tokenizer):
    assert tokenizer.encode("where 包裹").ids == [1, 4, 3, 9, 2]
    assert tokenizer.encode("where Ж").ids == [1, 4, 3, 0, 2], "what no piece is has the place of the unknown one"


def test_letters_are_written_as_the_model_says():
    about = json.loads(unigram_tokenizer(piece_model(PIECES)))
    assert [one["type"] for one in about["normalizer"]["normalizers"]] == ["Strip", "Replace"], "it says nothing"
