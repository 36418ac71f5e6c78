import numpy as np
import pytest

from manymetrics.encode import Features, LetterEncoder, random_vectors, unit_rows
from manymetrics.values import Texts
from manymetrics.weigh.comparison import Comparison, choose_landmarks

WORDS = random_vectors(rows=512, dimensions=16)
EXAMPLES = Texts(["lamp on", "lamp off", "play music", "music now", "call anna", "anna please", "lamp on"])
ASKED = Texts(["the lamp", "some music", ""])
LETTERS = LetterEncoder.from_texts(EXAMPLES, buckets=2**12)


@pytest.fixture
def compared():
    return Comparison(Features(ASKED), Features(EXAMPLES), choose_landmarks(len(EXAMPLES)), len(EXAMPLES))


def rows(encoder, texts):
    found = unit_rows(encoder.encode(texts))
    return found.toarray() if hasattr(found, "toarray") else found


def test_cosines_are_products_of_rows_of_length_one(compared):
    for encoder in (WORDS, LETTERS):
        expected = rows(encoder, ASKED) @ rows(encoder, EXAMPLES).T
        np.testing.assert_allclose(compared.cosines(encoder), expected, atol=1e-6)
        np.testing.assert_allclose(compared.nearest(encoder), expected.max(axis=1), atol=1e-6)


def test_an_encoder_is_asked_once_and_a_product_is_made_once(compared, monkeypatch):
    asked = []
    encode = type(WORDS).encode
    monkeypatch.setattr(type(WORDS), "encode", lambda self, texts: asked.append(len(texts)) or encode(self, texts))
    first = compared.cosines(WORDS)
    assert compared.cosines(WORDS) is first
    assert compared.to_landmarks(WORDS) is first
    assert asked == [3, 7]


def test_few_examples_are_all_landmarks_and_of_many_some_stand_for_all(monkeypatch):
    assert choose_landmarks(7).tolist() == list(range(7))
    monkeypatch.setattr("manymetrics.weigh.comparison.MOST_LANDMARKS", 3)
    assert choose_landmarks(7).tolist() == [0, 3, 6]
    some = Comparison(Features(ASKED), Features(EXAMPLES), choose_landmarks(len(EXAMPLES)), len(EXAMPLES))
    for encoder in (WORDS, LETTERS):
        np.testing.assert_allclose(some.to_landmarks(encoder), some.cosines(encoder)[:, [0, 3, 6]], atol=1e-6)


def test_the_nearest_other_example_is_not_the_example_itself(monkeypatch):
    examples = Features(EXAMPLES)
    whole = Comparison(examples, examples, choose_landmarks(len(EXAMPLES)), len(EXAMPLES)).nearest_others(LETTERS)
    cosines = rows(LETTERS, EXAMPLES) @ rows(LETTERS, EXAMPLES).T
    np.fill_diagonal(cosines, -np.inf)
    np.testing.assert_allclose(whole, cosines.max(axis=1), atol=1e-6)
    assert whole[0] == pytest.approx(1)  # the same text is there twice
    monkeypatch.setattr("manymetrics.weigh.comparison.MOST_LANDMARKS", 3)
    some = Comparison(examples, examples, choose_landmarks(len(EXAMPLES)), len(EXAMPLES))
    np.testing.assert_allclose(some.nearest_others(LETTERS), whole, atol=1e-6)
    lone = Features(Texts(["lamp"]))
    assert Comparison(lone, lone, choose_landmarks(1), 1).nearest_others(WORDS).tolist() == [0]
