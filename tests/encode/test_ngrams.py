import numpy as np

from manymetrics.encode import CharNgramEncoder

EVERY_RUN = CharNgramEncoder(np.ones(2**18, dtype=np.float32))


def test_a_word_of_two_letters_has_six_runs():
    row = EVERY_RUN.encode(["ab"])  # " a", " ab", " ab ", "ab", "ab ", "b "
    assert row.data.tolist() == [1] * 6


def test_runs_of_letters_stay_within_words():
    both, first, second = EVERY_RUN.encode(["ab cd", "ab", "cd"]).toarray()
    assert (both == first + second).all()


def test_letters_that_every_text_has_are_the_least_rare():
    rarity = CharNgramEncoder.from_texts(["abc xyz", "abc", "abc abc"], buckets=2**16).rarity
    in_all, in_one, in_none = (1 + np.log(4 / (1 + texts)) for texts in (3, 1, 0))
    np.testing.assert_allclose(np.unique(rarity), [in_all, in_one, in_none], rtol=1e-6)
    # " a", " ab", " abc", " abc ", "ab", "abc", "abc ", "bc", "bc ", "c "
    assert (rarity == rarity.min()).sum() == 10


def test_rarity_is_counted_over_all_texts_however_they_are_portioned(monkeypatch):
    texts = tuple(f"word{number % 7} here" for number in range(20))
    whole = CharNgramEncoder.from_texts(texts, buckets=2**12)
    monkeypatch.setattr("manymetrics.encode.ngrams.LETTER_TEXTS_AT_ONCE", 3)
    assert (CharNgramEncoder.from_texts(texts, buckets=2**12).rarity == whole.rarity).all()


def test_counts_are_damped_by_the_logarithm_and_weighed_by_rarity():
    row = EVERY_RUN.encode(["a a a b"])  # " a", " a ", "a " thrice; " b", " b ", "b " once
    np.testing.assert_allclose(np.sort(row.data), [1] * 3 + [1 + np.log(3)] * 3, rtol=1e-6)
    twice = CharNgramEncoder(2 * EVERY_RUN.rarity).encode(["a a a b"])
    np.testing.assert_allclose(twice.data, 2 * row.data)


def test_texts_are_compared_without_regard_to_case_and_spacing():
    one, other = EVERY_RUN.encode(["Turn  ON", "\tturn on\n"]).toarray()
    assert (one == other).all()
