import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.encode.tokens import MAX_TOKENS, MAX_WORD_LETTERS, Tokenizer
from manymetrics.errors import DataError

LETTERS = {letter: 10 + place for place, letter in enumerate("▁helow")}
PIECES = Tokenizer(
    "pieces",
    vocabulary={"<unk>": 0, "<0xC3>": 1, "<0xA9>": 2, **LETTERS, "lo": 20, "▁h": 21, "el": 22, "▁hel": 23, "hel": 24},
    merges=["e l", "l o", "▁ h", "h el", "▁h el"],
)
WORDS = Tokenizer("words", vocabulary={"hello": 1, "world": 2, "!": 3})
HASHED = Tokenizer("hashed", rows=64)
EVERY_KIND = pytest.mark.parametrize("tokenizer", [PIECES, WORDS, HASHED], ids=lambda tokenizer: tokenizer.kind)
ANY_TEXT = st.text(st.characters(exclude_categories=[]))


def ids(tokenizer, text):
    return tokenizer.cut([text]).ids.tolist()


def test_merges_are_made_in_the_order_of_their_ranks():
    # ▁ h e l l o -> (e l) -> ▁ h el l o -> (l o) -> ▁ h el lo -> (▁ h) -> ▁h el lo -> (▁h el) -> ▁hel lo
    assert ids(PIECES, "Hello") == [23, 20]


def test_a_character_the_vocabulary_lacks_becomes_its_bytes():
    assert ids(PIECES, "é") == [LETTERS["▁"], 1, 2]
    assert ids(PIECES, "é ê") == [LETTERS["▁"], 1, 2, LETTERS["▁"], 0], "a byte is lacking: unknown"


def test_words_and_marks_are_looked_up_and_the_rest_is_unknown():
    assert ids(WORDS, "Hello, WORLD!!") == [1, 0, 2, 3, 3]


@EVERY_KIND
def test_a_text_without_any_token_is_one_unknown_word(tokenizer):
    assert [ids(tokenizer, text) for text in ("", " ", "\n\t \u2003")] == [[0]] * 3


@EVERY_KIND
def test_a_text_of_a_million_characters_is_cut_to_its_first_tokens(tokenizer):
    for text in ("helo" * 250_000, "!" * 10**6, "😀" * 250_000, "x " * 500_000):
        found = ids(tokenizer, text)
        assert 1 <= len(found) <= MAX_TOKENS
        assert found == ids(tokenizer, text[: MAX_TOKENS * MAX_WORD_LETTERS]), "what comes after is not looked at"
    assert ids(tokenizer, " " * 10**6) == [0]


@EVERY_KIND
@given(ANY_TEXT)
def test_any_text_is_some_rows_of_the_table(tokenizer, text):
    found = ids(tokenizer, text)
    assert 1 <= len(found) <= MAX_TOKENS
    assert all(0 <= row < tokenizer.rows for row in found)


@EVERY_KIND
@given(st.lists(ANY_TEXT, max_size=5))
def test_a_text_is_cut_alike_in_any_company(tokenizer, texts):
    together = tokenizer.cut(texts)
    alone = [tokenizer.cut([text]) for text in texts]
    assert together.ids.tolist() == [row for one in alone for row in one.ids]
    assert together.starts.tolist() == np.cumsum([0, *(len(one.ids) for one in alone)]).tolist()


@EVERY_KIND
@given(ANY_TEXT)
def test_a_tokenizer_made_again_cuts_alike(tokenizer, text):
    again = Tokenizer.from_dict(tokenizer.as_dict())
    sent = pickle.loads(pickle.dumps(tokenizer))  # noqa: S301 - as worker processes receive it
    assert ids(again, text) == ids(sent, text) == ids(tokenizer, text)


def test_rows_that_cannot_be_are_refused():
    for rows in (0, 1, -3, 2.0, True, None):
        with pytest.raises(DataError, match=r"hashes words to .* rows, expected two at least"):
            Tokenizer("hashed", rows=rows)
    for row in (-1, 1.5, True, "1", None):
        with pytest.raises(DataError, match="whose words are not numbered from 0 up"):
            Tokenizer("words", vocabulary={"lamp": row})


def plain(tokens):
    assert (tokens.ids.dtype, tokens.starts.dtype) == (np.int32, np.int64)
    return tokens.ids.tolist(), tokens.starts.tolist()


@given(st.lists(st.text("helo w", max_size=12), min_size=1, max_size=6), st.data())
def test_tokens_taken_are_those_of_the_texts_taken(texts, data):
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=8))
    assert plain(PIECES.cut(texts).take(rows)) == plain(PIECES.cut([texts[row] for row in rows]))
