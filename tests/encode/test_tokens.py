import pickle
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.encode.tokens import LONGEST, LONGEST_WORD, Tokenizer, Tokens, join
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
    return tokenizer.read([text]).ids.tolist()


def test_merges_are_made_in_the_order_of_their_ranks():
    # ▁ h e l l o -> (e l) -> ▁ h el l o -> (l o) -> ▁ h el lo -> (▁ h) -> ▁h el lo -> (▁h el) -> ▁hel lo
    assert ids(PIECES, "Hello") == [23, 20]


def test_of_equal_ranks_the_leftmost_merges_first():
    # ▁ l o l o -> both (l o)
    assert ids(PIECES, "lolo") == [LETTERS["▁"], 20, 20]


def test_a_character_the_vocabulary_lacks_becomes_its_bytes():
    assert ids(PIECES, "é") == [LETTERS["▁"], 1, 2]
    assert ids(PIECES, "é ê") == [LETTERS["▁"], 1, 2, LETTERS["▁"], 1, 0]


def test_words_and_marks_are_looked_up_and_the_rest_is_unknown():
    assert ids(WORDS, "Hello, WORLD!!") == [1, 0, 2, 3, 3]


def test_hashed_words_never_land_on_the_unknown_row():
    found = ids(HASHED, " ".join(f"word{number}" for number in range(300)))
    assert min(found) >= 1
    assert max(found) < 64
    assert len(set(found)) == 63


@EVERY_KIND
@pytest.mark.parametrize("text", ["", " ", "\n\t \u2003"])
def test_a_text_without_any_token_is_one_unknown_word(tokenizer, text):
    assert ids(tokenizer, text) == [0]


@EVERY_KIND
def test_only_the_first_tokens_of_a_text_are_read(tokenizer):
    text = "hello " * (LONGEST + 100)
    found = ids(tokenizer, text)
    assert len(found) == LONGEST
    assert ids(tokenizer, text + "world") == found


def test_a_long_run_without_spaces_is_cut_into_words():
    assert ids(PIECES, "h" * LONGEST_WORD) == [21] + [LETTERS["h"]] * (LONGEST_WORD - 1)
    assert len(ids(PIECES, "h" * 10**4)) == LONGEST


@EVERY_KIND
@pytest.mark.parametrize("text", ["helo" * 250_000, "!" * 10**6, "😀" * 250_000, " " * 10**6, "x " * 500_000])
def test_a_text_of_a_million_characters_is_read_in_under_a_second(tokenizer, text):
    fresh = Tokenizer.from_dict(tokenizer.as_dict())
    started = time.process_time()
    tokens = fresh.read([text])
    assert time.process_time() - started < 1
    assert 1 <= len(tokens.ids) <= LONGEST


@EVERY_KIND
@given(ANY_TEXT)
def test_any_text_is_some_rows_of_the_table(tokenizer, text):
    found = ids(tokenizer, text)
    assert 1 <= len(found) <= LONGEST
    assert all(0 <= row < tokenizer.rows for row in found)


@EVERY_KIND
@given(st.lists(ANY_TEXT, max_size=5))
def test_a_text_is_cut_alike_in_any_company(tokenizer, texts):
    together = tokenizer.read(texts)
    alone = [tokenizer.read([text]) for text in texts]
    assert together.ids.tolist() == [row for one in alone for row in one.ids]
    assert together.starts.tolist() == np.cumsum([0, *(len(one.ids) for one in alone)]).tolist()


@EVERY_KIND
@given(ANY_TEXT)
def test_a_tokenizer_made_again_cuts_alike(tokenizer, text):
    again = Tokenizer.from_dict(tokenizer.as_dict())
    sent = pickle.loads(pickle.dumps(tokenizer))  # noqa: S301 - as worker processes receive it
    assert ids(again, text) == ids(sent, text) == ids(tokenizer, text)


def test_what_is_sent_to_workers_leaves_the_remembered_words_behind():
    tokenizer = Tokenizer("hashed", rows=8)
    before = len(pickle.dumps(tokenizer))
    tokenizer.read([f"word{number}" for number in range(1000)])
    assert len(pickle.dumps(tokenizer)) == before


def test_a_word_is_cut_alike_after_the_memory_was_emptied(monkeypatch):
    monkeypatch.setattr("manymetrics.encode.tokens.CACHED_WORDS", 2)
    tokenizer = Tokenizer("hashed", rows=64)
    texts = ["a b c", "c b a", "d a"]
    assert tokenizer.read(texts).ids.tolist() == HASHED.read(texts).ids.tolist()


def test_a_run_too_long_to_be_a_word_is_not_remembered():
    tokenizer = Tokenizer.from_dict(PIECES.as_dict())
    tokenizer.read(["hello " + "h" * 10_000])
    assert max(map(len, tokenizer._remembered)) <= LONGEST_WORD


def test_an_unknown_kind_is_refused():
    with pytest.raises(DataError, match="tokenizer of the kind 'letters', expected pieces, words or hashed"):
        Tokenizer("letters")


@given(st.lists(st.text("helo w", max_size=12), min_size=1, max_size=6), st.data())
def test_texts_taken_are_the_texts_read(texts, data):
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=8))
    taken, read = PIECES.read(texts).take(rows), PIECES.read([texts[row] for row in rows])
    assert taken.texts == read.texts
    assert taken.ids.tolist() == read.ids.tolist()
    assert taken.starts.tolist() == read.starts.tolist()


@given(st.lists(st.lists(st.text("helo w", max_size=8), max_size=3), max_size=4))
def test_parts_joined_are_the_whole(parts):
    joined = join([PIECES.read(part) for part in parts])
    whole = PIECES.read([text for part in parts for text in part])
    assert joined.texts == whole.texts
    assert joined.ids.tolist() == whole.ids.tolist()
    assert joined.starts.tolist() == whole.starts.tolist()
    assert (joined.ids.dtype, joined.starts.dtype) == (np.int32, np.int64)


def test_nothing_joined_is_no_text():
    assert len(join([])) == 0
    assert isinstance(join([]), Tokens)


def test_distinct_words_stand_by_frequency():
    ids = np.array([7, 2, 7, 9, 2, 7, 4], dtype=np.int32)
    words = Tokens(("one text",), ids, np.array([0, 7])).words
    assert words.distinct.tolist() == [7, 2, 4, 9]  # of equally frequent words the first row first
    assert words.distinct[words.places].tolist() == ids.tolist()
    assert not len(Tokens((), ids[:0], np.array([0])).words.distinct)
