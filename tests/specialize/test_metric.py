import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

from manymetrics.encode import ConvolutionEncoder, LexicalEncoder, MeanEncoder, Tokenizer, WordVectors, random_vectors
from manymetrics.measure import Head
from manymetrics.specialize import SharedLabelMetric, SimilarityMetric
from manymetrics.specialize.metric import COMMON_LINEAR_METRIC, cluster_metric, linear_metric, voice

EAST_NORTH = WordVectors(
    "plane",
    np.array([[0, 0], [1, 0], [0, 1], [np.sqrt(0.5), np.sqrt(0.5)], [-1, 0]], dtype=np.float32),
    Tokenizer("words", vocabulary={"east": 1, "north": 2, "northeast": 3, "west": 4}),
)
WIDE = random_vectors(rows=256, dimensions=8)
RULES = pytest.mark.parametrize("rule", ["prototypical", "matching"])


class Sparse:
    """An encoder whose rows are another's, kept sparse."""

    def __init__(self, encoder):
        self._encoder = encoder

    def encode(self, tokens):
        return sparse.csr_array(self._encoder.encode(tokens))


ENCODERS = {
    "dense": MeanEncoder(WIDE.table),
    "sparse": Sparse(MeanEncoder(WIDE.table)),
    "lexical": LexicalEncoder(np.ones(2**10, dtype=np.float32)),
}
EVERY_ENCODER = pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS.keys())


def plane(rule, temperature=2.0, kind=MeanEncoder):
    return SimilarityMetric("plane", "frozen", kind(EAST_NORTH.table), rule, temperature)


def test_a_clusters_metrics_speak_with_one_voice_and_others_with_their_own():
    assert voice(linear_metric(12)) == voice(cluster_metric(12)) == cluster_metric(12)
    assert voice(cluster_metric(1)) != voice(cluster_metric(12))
    assert voice("word-vectors") == "word-vectors"
    assert voice(COMMON_LINEAR_METRIC) == COMMON_LINEAR_METRIC


def learn(metric, vectors, texts, labels):
    return metric.learn(vectors.read(texts), np.array(labels), tuple(str(label) for label in range(max(labels) + 1)))


def test_prototypes_are_the_mean_directions():
    fitted = learn(plane("prototypical"), EAST_NORTH, ["east", "east", "north", "north"], [0, 0, 1, 1])
    chances = fitted.chances(EAST_NORTH.read(["east", "northeast", "west"]))
    expected = softmax(2.0 * np.array([[1, 0], [np.sqrt(0.5)] * 2, [-1, 0]]), axis=1)
    np.testing.assert_allclose(chances, expected, atol=1e-6)


def test_a_prototype_of_two_directions_lies_between_them():
    fitted = learn(plane("prototypical"), EAST_NORTH, ["east", "north", "west"], [0, 0, 1])
    chances = fitted.chances(EAST_NORTH.read(["northeast"]))
    np.testing.assert_allclose(chances, softmax([[2.0, -2 * np.sqrt(0.5)]], axis=1), atol=1e-6)


def test_matching_sums_the_attention_of_each_labels_examples():
    fitted = learn(plane("matching"), EAST_NORTH, ["east", "east", "north"], [0, 0, 1])
    chances = fitted.chances(EAST_NORTH.read(["east", "northeast"]))
    loud, quiet = np.exp(2.0), 1.0
    expected = [[2 * loud / (2 * loud + quiet), quiet / (2 * loud + quiet)], [2 / 3, 1 / 3]]
    np.testing.assert_allclose(chances, expected, atol=1e-6)


TEXTS = ["lamp on", "lamp off", "lamp lamp", "music on", "play music", "music", "call anna", "anna", "lamp on"]
LABELS = [0, 0, 0, 1, 1, 1, 2, 2, 0]


@EVERY_ENCODER
@RULES
def test_leaving_one_out_is_really_leaving_it_out(encoder, rule):
    metric = SimilarityMetric("m", "frozen", encoder, rule, 7.0)
    found = learn(metric, WIDE, TEXTS, LABELS).chances_left_out()
    for out in range(len(TEXTS)):
        others = [row for row in range(len(TEXTS)) if row != out]
        without = learn(metric, WIDE, [TEXTS[row] for row in others], [LABELS[row] for row in others])
        np.testing.assert_allclose(found[out], without.chances(WIDE.read([TEXTS[out]]))[0], atol=1e-5)


@pytest.mark.parametrize("wrap", [MeanEncoder, lambda table: Sparse(MeanEncoder(table))], ids=["dense", "sparse"])
@pytest.mark.parametrize("rule", ["prototypical", "matching"])
@pytest.mark.parametrize("seed", range(8))
def test_leaving_out_all_but_an_empty_row_is_really_leaving_it_out(wrap, rule, seed):
    """A text of unknown words has no direction; left with it alone, a label's centre is nowhere."""
    rng = np.random.default_rng(seed)
    table = np.vstack([np.zeros((1, 7)), rng.standard_normal((4, 7))]).astype(np.float32)
    vectors = WordVectors("some", table, Tokenizer("words", vocabulary={"a": 1, "b": 2, "c": 3, "d": 4}))
    texts, labels = ["a b", "unheard", "c", "d", "unheard of"], [0, 0, 1, 1, 2]
    metric = SimilarityMetric("m", "frozen", wrap(vectors.table), rule, 20.0)
    found = learn(metric, vectors, texts, labels).chances_left_out()
    for out in range(4):
        others = [row for row in range(5) if row != out]
        without = learn(metric, vectors, [texts[row] for row in others], [labels[row] for row in others])
        np.testing.assert_allclose(found[out], without.chances(vectors.read([texts[out]]))[0], atol=1e-4)


@RULES
def test_opposite_examples_leave_a_centre_nowhere_and_answers_stay_probabilities(rule):
    fitted = learn(plane(rule, 30.0), EAST_NORTH, ["east", "west", "north", "north"], [0, 0, 1, 1])
    for chances in (fitted.chances(EAST_NORTH.read(["east", "north"])), fitted.chances_left_out()):
        assert np.isfinite(chances).all()
        np.testing.assert_allclose(chances.sum(axis=1), 1)


@EVERY_ENCODER
@RULES
def test_a_label_with_one_example_cannot_be_left_out(encoder, rule):
    metric = SimilarityMetric("m", "frozen", encoder, rule, 7.0)
    found = learn(metric, WIDE, ["lamp on", "lamp off", "music"], [0, 0, 1]).chances_left_out()
    assert np.isnan(found[2]).all()
    assert np.isfinite(found[:2]).all()


@EVERY_ENCODER
@RULES
def test_chances_are_probabilities(encoder, rule):
    fitted = learn(SimilarityMetric("m", "frozen", encoder, rule, 30.0), WIDE, TEXTS, LABELS)
    for chances in (fitted.chances(WIDE.read(["lamp", "", "never seen", "\ud800"])), fitted.chances_left_out()):
        assert (chances >= 0).all()
        np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-6)


@EVERY_ENCODER
@RULES
def test_asking_does_not_change_the_answer(encoder, rule):
    fitted = learn(SimilarityMetric("m", "frozen", encoder, rule, 7.0), WIDE, TEXTS, LABELS)
    first, left = fitted.chances(WIDE.read(["lamp"])), fitted.chances_left_out()
    assert (fitted.chances(WIDE.read(["lamp"])) == first).all()
    assert (fitted.chances_left_out() == left).all()


def shared_label_metric():
    rng = np.random.default_rng(0)
    encoder = ConvolutionEncoder(WIDE.table, rng.standard_normal((3, 8, 4)).astype("f4"), np.zeros(4, "f4"))
    head = Head(rng.standard_normal((4, 2)).astype("f4"), np.zeros(2, "f4"))
    return SharedLabelMetric("shared", "learned", encoder, head, ("bad", "good"), np.array([0.1, 0.9], "f4"))


def test_the_same_labels_are_answered_by_the_classifier_whatever_the_examples():
    metric, texts = shared_label_metric(), WIDE.read(["fine", "poor", "so so"])
    one = metric.learn(WIDE.read(["a", "b"]), np.array([0, 1]), ("bad", "good"))
    other = metric.learn(WIDE.read(["c", "d", "e"]), np.array([1, 1, 0]), ("bad", "good"))
    expected = metric.head.chances(metric.encoder.responses(texts))
    np.testing.assert_allclose(one.chances(texts), expected)
    np.testing.assert_allclose(other.chances(texts), expected)


def test_a_classifier_is_judged_by_examples_as_though_labels_were_as_common_in_its_cluster_as_among_them():
    metric, shots = shared_label_metric(), WIDE.read(["a", "b", "c", "d"])
    left = metric.learn(shots, np.array([0, 1, 1, 1]), ("bad", "good")).chances_left_out()
    odds = metric.head.chances(metric.encoder.responses(shots))
    odds = odds[:, 0] / odds[:, 1] * (0.25 / 0.1) / (0.75 / 0.9)  # from 1 : 9 to 1 : 3
    np.testing.assert_allclose(left[:, 0], odds / (1 + odds), rtol=1e-5)
    np.testing.assert_allclose(left.sum(axis=1), 1, rtol=1e-6)


def test_other_labels_are_answered_by_prototypes_of_the_examples():
    metric, shots, texts = shared_label_metric(), WIDE.read(["lamp", "music", "anna"]), WIDE.read(["lamp", "music"])
    fitted = metric.learn(shots, np.array([0, 1, 2]), ("x", "y", "z"))
    same = SimilarityMetric("m", "learned", metric.encoder, "prototypical", 10.0).learn(
        shots, np.arange(3), tuple("xyz")
    )
    np.testing.assert_allclose(fitted.chances(texts), same.chances(texts))
    assert fitted.chances(texts).argmax(axis=1).tolist() == [0, 1]
