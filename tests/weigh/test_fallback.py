import numpy as np
import pytest

from manymetrics.encode import Features, LetterEncoder, random_vectors
from manymetrics.values import LabelledTexts, Texts
from manymetrics.weigh.comparison import Comparison, choose_landmarks
from manymetrics.weigh.fallback import NetworkFallback, RegressionFallback

WORDS = random_vectors(rows=512, dimensions=16)
TEXTS = Texts(["lamp on", "lamp off", "the lamp", "play music", "music now", "loud music", "call anna", "anna please"])
LABELS = np.array([0, 0, 0, 1, 1, 1, 2, 2])
LETTERS = LetterEncoder.from_texts(TEXTS, buckets=2**12)


class OfExamples:
    """A fallback fitted to some examples, and how texts are compared with these."""

    def __init__(self, make, texts=TEXTS, labels=LABELS, classes=3):
        examples = Features(texts)
        self.landmarks, self.examples = choose_landmarks(len(texts)), examples
        self.fitted = make(self.compare(examples), LabelledTexts(texts, labels), classes)

    def compare(self, features):
        return Comparison(features, self.examples, self.landmarks, len(self.examples))

    def answer(self, *texts):
        return self.fitted.probabilities(self.compare(Features(Texts(texts))))


def regression(compared, examples, classes):
    return RegressionFallback([WORDS, LETTERS], compared, examples.labels, classes)


def network(compared, examples, classes):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    return NetworkFallback(WORDS, examples, classes)


@pytest.mark.parametrize("make", [regression, network])
def test_the_examples_alone_teach_their_own_words_and_the_same_ones_the_same_bits(make):
    fallback = OfExamples(make)
    probabilities = fallback.answer("a lamp", "some music", "anna", "")
    assert probabilities[:3].argmax(axis=1).tolist() == [0, 1, 2]
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert (OfExamples(make).answer("a lamp", "some music", "anna", "") == probabilities).all()


def test_the_network_does_not_know_what_it_would_answer_without_an_example():
    assert OfExamples(network).fitted.leave_one_out() is None


def test_what_is_answered_without_an_example_is_what_a_fit_without_it_answers():
    whole = OfExamples(regression).fitted.leave_one_out()
    for row in range(len(TEXTS)):
        kept = np.delete(np.arange(len(TEXTS)), row)
        (answer,) = OfExamples(regression, TEXTS.take(kept), LABELS[kept]).answer(TEXTS[row])
        np.testing.assert_allclose(whole[row], answer, atol=0.25)  # of squared errors there, of likelihoods here
        assert whole[row].argmax() == answer.argmax()


def test_the_only_example_of_a_label_cannot_be_left_out():
    lone = OfExamples(regression, Texts(["lamp on", "lamp off", "music"]), np.array([0, 0, 1]), 2)
    assert np.isnan(lone.fitted.leave_one_out()).any(axis=1).tolist() == [False, False, True]


def test_more_examples_than_there_are_landmarks_still_teach(monkeypatch):
    monkeypatch.setattr("manymetrics.weigh.comparison.MOST_LANDMARKS", 5)
    fallback = OfExamples(regression)
    assert len(fallback.landmarks) == 5
    assert fallback.answer("a lamp", "some music").argmax(axis=1).tolist() == [0, 1]
    assert np.isfinite(fallback.fitted.leave_one_out()).all()
