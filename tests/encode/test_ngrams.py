import numpy as np

from manymetrics.encode import LetterEncoder, PhraseEncoder, Tokenizer, WordVectors, random_vectors
from manymetrics.encode.ngrams import PHRASE_BUCKETS
from manymetrics.values import Texts

WORDS = random_vectors(rows=512, dimensions=4)
EVERY_RUN = LetterEncoder(np.ones(2**18, dtype=np.float32))
EVERY_PHRASE = PhraseEncoder(WORDS, np.ones(2**18, dtype=np.float32))


def test_a_word_of_two_letters_has_six_runs():
    row = EVERY_RUN.encode(Texts(["ab"]))  # " a", " ab", " ab ", "ab", "ab ", "b "
    assert row.data.tolist() == [1] * 6


def test_runs_of_letters_stay_within_words():
    both, first, second = EVERY_RUN.encode(Texts(["ab cd", "ab", "cd"])).toarray()
    assert (both == first + second).all()


def test_letters_that_every_text_has_are_the_least_rare():
    rarity = LetterEncoder.from_texts(Texts(["abc xyz", "abc", "abc abc"]), buckets=2**16).rarity
    in_all, in_one, in_none = (1 + np.log(4 / (1 + texts)) for texts in (3, 1, 0))
    np.testing.assert_allclose(np.unique(rarity), [in_all, in_one, in_none], rtol=1e-6)
    # " a", " ab", " abc", " abc ", "ab", "abc", "abc ", "bc", "bc ", "c "
    assert (rarity == rarity.min()).sum() == 10


def test_rarity_is_counted_over_all_texts_however_they_are_portioned(monkeypatch):
    texts = Texts(f"word{number % 7} here" for number in range(20))
    whole = LetterEncoder.from_texts(texts, buckets=2**12)
    monkeypatch.setattr("manymetrics.encode.ngrams.LETTER_TEXTS_AT_ONCE", 3)
    assert (LetterEncoder.from_texts(texts, buckets=2**12).rarity == whole.rarity).all()


def test_counts_are_damped_by_the_logarithm_and_weighed_by_rarity():
    row = EVERY_RUN.encode(Texts(["a a a b"]))  # " a", " a ", "a " thrice; " b", " b ", "b " once
    np.testing.assert_allclose(np.sort(row.data), [1] * 3 + [1 + np.log(3)] * 3, rtol=1e-6)
    twice = LetterEncoder(2 * EVERY_RUN.rarity).encode(Texts(["a a a b"]))
    np.testing.assert_allclose(twice.data, 2 * row.data)


def test_texts_are_compared_without_regard_to_case_and_spacing():
    one, other = EVERY_RUN.encode(Texts(["Turn  ON", "\tturn on\n"])).toarray()
    assert (one == other).all()


def test_texts_share_what_their_words_have_in_common_and_nothing_else():
    rows = EVERY_RUN.encode(Texts(["lamp", "music", "lamps"]))
    shared = (rows @ rows.T).toarray()
    assert shared[0, 1] == 0
    assert 0 < shared[0, 2] < shared[2, 2]


def test_phrases_are_runs_of_one_or_two_tokens_and_do_not_cross_texts():
    rows = EVERY_PHRASE.encode(Texts(["tea now", "tea now please", "now", "tea"])).toarray() > 0
    assert rows.sum(axis=1).tolist() == [3, 5, 1, 1]
    assert not (rows[0] & ~rows[1]).any()  # "tea", "tea now" and "now" occur in the second text as well
    assert (rows[2] | rows[3]).sum() == 2


def test_rows_of_phrases_have_length_one_and_phrases_hardly_ever_seen_do_not_count():
    common = Texts(["good tea"] * 5)
    encoder = PhraseEncoder.from_texts(WORDS, common)
    rows = encoder.encode(common)
    assert rows.nnz == 5 * 3
    np.testing.assert_allclose(np.sqrt((rows * rows).sum(axis=1)), 1, rtol=1e-6)
    row = encoder.encode(Texts(["strange tea"]))
    assert row.nnz == 1  # "tea" alone
    np.testing.assert_allclose(row.data, 1)
    assert encoder.encode(Texts(["nothing known"])).nnz == 0


def test_a_row_has_a_column_for_each_phrase_that_is_known():
    encoder = PhraseEncoder.from_texts(WORDS, Texts(["good tea"] * 5 + ["strange tea"] * 2))
    rows = encoder.encode(Texts(["good tea", "tea", "good"]))
    assert encoder.width == 3  # "good", "tea", "good tea"
    assert rows.shape == (3, 3)
    assert (rows[[0]].toarray() > 0).all()
    assert rows[[1]].indices != rows[[2]].indices


def test_few_of_many_phrases_share_a_bucket():
    vocabulary = {f"w{number}": number for number in range(50_000)}
    words = WordVectors("many", np.zeros((50_000, 1), np.float32), Tokenizer("words", vocabulary=vocabulary))
    texts = Texts(" ".join(f"w{number}" for number in range(at, at + 200)) for at in range(0, 50_000, 200))
    rows = PhraseEncoder(words, np.ones(PHRASE_BUCKETS, np.float32)).encode(texts)
    assert len(np.unique(rows.indices)) > 0.95 * (50_000 + 50_000 - len(texts))


def test_without_word_vectors_phrases_are_of_words_and_signs_in_small_letters():
    every = PhraseEncoder(None, np.ones(2**18, dtype=np.float32))
    rows = every.encode(Texts(["Good tea!", "good  TEA !", "good, tea", ""])).toarray()
    assert (rows > 0).sum(axis=1).tolist() == [5, 5, 5, 0]
    np.testing.assert_array_equal(rows[0], rows[1])
    assert ((rows[0] > 0) & (rows[2] > 0)).sum() == 2  # "good" and "tea"
    assert every.lengths(Texts(["Good tea!", ""])).tolist() == [3, 0]
    again = PhraseEncoder.from_state(every.state())
    assert (again.words, again.fingerprint) == (None, every.fingerprint)
