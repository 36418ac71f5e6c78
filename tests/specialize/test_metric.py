import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

from manymetrics.encode import (
    CharNgramEncoder,
    ConvolutionEncoder,
    EmbeddedTexts,
    Encoder,
    State,
    Tokenizer,
    WordVectors,
    normalize,
    random_vectors,
)
from manymetrics.errors import DataError
from manymetrics.measure import Head
from manymetrics.specialize import LabelHead, Metric
from manymetrics.specialize.metric import nearest_others

PLANE = WordVectors(
    "plane",
    np.array([[0, 0], [2, 0], [0, 1], [np.sqrt(0.5), np.sqrt(0.5)], [-1, 0]], dtype=np.float32),
    Tokenizer("words", vocabulary={"east": 1, "north": 2, "northeast": 3, "west": 4}),
)
WORDS = random_vectors(rows=256, dimensions=8)


class Sparse(Encoder):
    """An encoder whose rows are another's, kept sparse."""

    def __init__(self, encoder):
        self._encoder = encoder

    def encode(self, texts):
        return sparse.csr_array(self._encoder.encode(texts))

    def state(self):
        return State(parts={"encoder": self._encoder})

    @classmethod
    def from_state(cls, state):
        return cls(state.parts["encoder"])


ENCODERS = {"dense": WORDS, "sparse": Sparse(WORDS), "letters": CharNgramEncoder(np.ones(2**10, dtype=np.float32))}
EVERY_ENCODER = pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS.keys())
RULES = pytest.mark.parametrize("rule", ["prototypical", "matching"])
TEXTS = ["lamp on", "lamp off", "lamp lamp", "music on", "play music", "music", "call anna", "anna", "lamp on"]
LABELS = [0, 0, 0, 1, 1, 1, 2, 2, 0]


def plane(rule, temperature=2.0):
    return Metric("plane", "frozen", PLANE, rule, temperature)


def features(*texts):
    return EmbeddedTexts(texts)


def learn(metric, texts, labels):
    return metric.learn(features(*texts), np.array(labels), tuple(str(label) for label in range(max(labels) + 1)))


def left_out(fitted):
    return fitted.answer_examples(features(*TEXTS))


def left_out_for_real(metric, texts, labels, out):
    """P(y | x) of one example from a metric that was never shown it."""
    others = [row for row in range(len(texts)) if row != out]
    without = learn(metric, [texts[row] for row in others], [labels[row] for row in others])
    return without.probabilities(features(texts[out]))[0]


def test_prototypes_are_the_mean_directions():
    fitted = learn(plane("prototypical"), ["east", "east", "north", "north"], [0, 0, 1, 1])
    expected = softmax(2.0 * np.array([[1, 0], [np.sqrt(0.5)] * 2, [-1, 0]]), axis=1)
    np.testing.assert_allclose(fitted.probabilities(features("east", "northeast", "west")), expected, atol=1e-6)


def test_matching_sums_the_attention_of_each_labels_examples():
    fitted = learn(plane("matching"), ["east", "east", "north"], [0, 0, 1])
    loud, quiet = np.exp(2.0), 1.0
    expected = [[2 * loud / (2 * loud + quiet), quiet / (2 * loud + quiet)], [2 / 3, 1 / 3]]
    np.testing.assert_allclose(fitted.probabilities(features("east", "northeast")), expected, atol=1e-6)


@EVERY_ENCODER
@RULES
def test_leaving_one_out_is_really_leaving_it_out(encoder, rule):
    metric = Metric("m", "frozen", encoder, rule, 7.0)
    found = left_out(learn(metric, TEXTS, LABELS))
    for out in range(len(TEXTS)):
        np.testing.assert_allclose(found[out], left_out_for_real(metric, TEXTS, LABELS, out), atol=1e-5)


@RULES
def test_leaving_out_all_but_an_empty_row_is_really_leaving_it_out(rule):
    """A text of unknown words has no direction; left with it alone, a label's centre is nowhere."""
    texts, labels = ["a b", "unheard", "c", "d", "unheard of"], [0, 0, 1, 1, 2]
    for seed in range(8):
        table = np.vstack([np.zeros((1, 7)), np.random.default_rng(seed).standard_normal((4, 7))])
        words = WordVectors("some", table, Tokenizer("words", vocabulary={"a": 1, "b": 2, "c": 3, "d": 4}))
        for encoder in (words, Sparse(words)):
            metric = Metric("m", "frozen", encoder, rule, 20.0)
            found = left_out(learn(metric, texts, labels))
            for out in range(4):
                np.testing.assert_allclose(found[out], left_out_for_real(metric, texts, labels, out), atol=1e-4)


@EVERY_ENCODER
@RULES
def test_a_label_with_one_example_cannot_be_left_out(encoder, rule):
    metric = Metric("m", "frozen", encoder, rule, 7.0)
    found = left_out(learn(metric, ["lamp on", "lamp off", "music"], [0, 0, 1]))
    assert np.isnan(found[2]).all()
    assert np.isfinite(found[:2]).all()


@EVERY_ENCODER
@RULES
def test_answers_are_probabilities(encoder, rule):
    fitted = learn(Metric("m", "frozen", encoder, rule, 30.0), TEXTS, LABELS)
    for found in (fitted.probabilities(features("lamp", "", "never seen", "\ud800")), left_out(fitted)):
        assert (found >= 0).all()
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)


def test_a_rule_or_temperature_that_cannot_be_is_refused():
    with pytest.raises(DataError, match=r"'plane' has the rule 'nearest'\. Use matching or prototypical\."):
        plane("nearest")
    for temperature in (0.0, -1.0, 1e6, float("inf"), float("nan")):
        with pytest.raises(DataError, match=r"'plane' has the temperature .*\. Use one from 0 to 1e6\."):
            plane("matching", temperature)


def test_the_nearest_other_row_is_never_the_row_itself(monkeypatch):
    rows = normalize(PLANE.table[[1, 2, 3, 1]])  # east, north, northeast, east
    for at_once in (1024, 3, 1):
        monkeypatch.setattr("manymetrics.specialize.metric.ROWS_AT_ONCE", at_once)
        for kept_as in (np.asarray, sparse.csr_array):
            np.testing.assert_allclose(nearest_others(kept_as(rows)), [1, np.sqrt(0.5), np.sqrt(0.5), 1], atol=1e-6)
    assert nearest_others(rows[:1]).tolist() == [0]


def shared_label_metric():
    rng = np.random.default_rng(0)
    encoder = ConvolutionEncoder(WORDS, rng.standard_normal((3, 8, 4)).astype("f4"), np.zeros(4, "f4"))
    head = Head(rng.standard_normal((4, 2)).astype("f4"), np.zeros(2, "f4"))
    return Metric("shared", "learned", encoder, shared=LabelHead(head, ("bad", "good"), np.array([0.1, 0.9], "f4")))


def test_the_same_labels_are_answered_by_the_classifier_in_their_order_whatever_the_examples():
    metric, asked = shared_label_metric(), features("fine", "poor", "so so")
    expected = metric.shared.head.probabilities(metric.encoder.encode(asked.texts))
    one = metric.learn(features("a", "b"), np.array([0, 1]), ("bad", "good"))
    turned = metric.learn(features("c", "d", "e"), np.array([1, 1, 0]), ("good", "bad"))
    np.testing.assert_allclose(one.probabilities(asked), expected)
    np.testing.assert_allclose(turned.probabilities(asked), expected[:, ::-1], rtol=1e-6)


def test_other_labels_are_answered_by_prototypes_of_the_examples():
    metric, shots, asked = shared_label_metric(), features("lamp", "music", "anna"), features("lamp", "music")
    found = metric.learn(shots, np.arange(3), ("x", "y", "z")).probabilities(asked)
    same = Metric("m", "learned", metric.encoder, "prototypical", 10.0)
    np.testing.assert_allclose(found, same.learn(shots, np.arange(3), tuple("xyz")).probabilities(asked))
    assert found.argmax(axis=1).tolist() == [0, 1]
