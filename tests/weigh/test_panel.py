import numpy as np
import pytest

from manymetrics.encode import LexicalEncoder, MeanEncoder, random_vectors
from manymetrics.encode.phrases import PhraseEncoder
from manymetrics.encode.settings import MATCHING, PROTOTYPICAL
from manymetrics.measure.heads import Head
from manymetrics.specialize import SimilarityMetric
from manymetrics.specialize.metric import FROZEN, LEARNED, LEXICAL, LINEAR, SharedLabelMetric
from manymetrics.weigh.panel import TOGETHER, Panel
from manymetrics.weigh.rules import Rules

VECTORS = random_vectors(rows=512, dimensions=16)
TEXTS = ["lamp on", "lamp off", "the lamp", "play music", "music now", "loud music", "call anna", "anna please"]
LABELS = np.array([0, 0, 0, 1, 1, 1, 2, 2])
CLASSES = ("lamp", "music", "anna")
LEXICAL_ENCODER = LexicalEncoder.from_bank(VECTORS.read(TEXTS), buckets=2**12)
METRICS = (
    SimilarityMetric("cluster-0", LEARNED, MeanEncoder(VECTORS.table), PROTOTYPICAL, 9.0, ("a", "b", "c")),
    SimilarityMetric("cluster-1", LEARNED, LEXICAL_ENCODER, MATCHING, 9.0, ("d",)),
    SimilarityMetric("word-vectors", FROZEN, MeanEncoder(VECTORS.table), PROTOTYPICAL, 9.0),
    SimilarityMetric("letters", LEXICAL, LEXICAL_ENCODER, PROTOTYPICAL, 9.0),
)
EVERYBODY = np.arange(5)


@pytest.fixture
def panel():
    return Panel(METRICS, VECTORS.read(TEXTS), LABELS, CLASSES)


def test_the_regression_stands_behind_the_metrics(panel):
    assert [member.name for member in panel.members] == ["cluster-0", "cluster-1", "word-vectors", "letters", TOGETHER]
    assert panel.left_out.shape == (8, 5, 3)
    alone = Panel(METRICS, VECTORS.read(TEXTS), LABELS, CLASSES, together=False)
    assert len(alone.members) == 4
    assert (alone.left_out == panel.left_out[:, :4]).all()


def test_members_speak_for_clusters_where_tasks_share_their_labels(panel):
    assert panel.voices is None
    prior = np.full(3, 1 / 3, np.float32)
    encoder = PhraseEncoder.from_bank(VECTORS.read(TEXTS * 3))
    head = Head(np.zeros((encoder.width, 3), np.float32), np.zeros(3, np.float32))
    linear = [
        SharedLabelMetric(name, LINEAR, encoder, head, CLASSES, prior) for name in ("phrases-0", "phrases-1", "phrases")
    ]
    voices = Panel((*METRICS[:2], *linear), VECTORS.read(TEXTS), LABELS, CLASSES).voices
    assert voices[0] == voices[2]  # the first cluster's
    assert voices[1] == voices[3]  # the second's
    assert len(set(voices.tolist())) == 4  # the linear metric of all, and the regression


def test_the_prior_parts_a_kind_by_the_number_of_tasks_and_the_regression_is_a_kind(panel):
    shares = {"learned": 0.4, "frozen": 0.2, "lexical": 0.1, TOGETHER: 0.3}
    np.testing.assert_allclose(panel.prior(Rules(shares)), [0.3, 0.1, 0.2, 0.1, 0.3])


def test_the_regression_answers_with_all_likenesses_added_up(panel):
    """By hand: the ridge of the labels on a kernel in which each kind counts one, a cluster by its tasks."""
    texts = VECTORS.read(["a lamp", "some music", "anna"])
    mean, letters = MeanEncoder(VECTORS.table), LEXICAL_ENCODER
    examples = VECTORS.read(TEXTS)

    def kernel(tokens):
        words = mean.encode(tokens).astype(float) @ mean.encode(examples).astype(float).T
        runs = (letters.encode(tokens) @ letters.encode(examples).T).toarray()
        return 1 + (0.75 + 1) * words + (0.25 + 1) * runs

    truth = np.eye(3)[LABELS]
    centred = truth - truth.mean(axis=0)
    scores = kernel(texts) @ np.linalg.solve(kernel(examples) + 0.3 * np.eye(8), centred) + truth.mean(axis=0)
    expected = np.exp(9 * scores) / np.exp(9 * scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(panel.chances(texts, EVERYBODY)[:, 4], expected, atol=1e-4)


def test_an_example_left_out_does_not_answer_for_itself(panel):
    own = panel.chances(VECTORS.read(TEXTS), EVERYBODY)[np.arange(8), 4, LABELS]
    assert (panel.left_out[np.arange(8), 4, LABELS] < own).all()


def test_who_is_asked_does_not_change_what_anybody_says(panel):
    texts = VECTORS.read(["a lamp", "some music", "", "never seen"])
    everybody = panel.chances(texts, EVERYBODY)
    for some in ([0, 2], [4], [1, 4], [3]):
        np.testing.assert_array_equal(panel.chances(texts, np.array(some)), everybody[:, some])


def test_what_was_asked_already_is_not_asked_again(panel, monkeypatch):
    texts = VECTORS.read(["a lamp", "some music"])
    expected = panel.chances(texts, EVERYBODY)
    known = {id(one): one.compare(texts) for one in panel.fitted}
    for one in panel.fitted:
        monkeypatch.setattr(type(one), "compare", None)
        monkeypatch.setattr(type(one), "chances", None)
    np.testing.assert_array_equal(panel.chances(texts, EVERYBODY, known), expected)
    np.testing.assert_array_equal(panel.chances(texts, np.array([0, 3]), known), expected[:, [0, 3]])


def test_an_explanation_says_what_the_answer_says(panel):
    (text,) = ["some loud music"]
    said = panel.explain(VECTORS.read([text]))
    expected = panel.chances(VECTORS.read([text]), EVERYBODY)[0]
    for (chances, cosines), chance in zip(said, expected, strict=True):
        np.testing.assert_allclose(chances, chance, atol=1e-12)
        assert cosines.shape == (8,)
        assert cosines.argmax() == 5


def test_the_regression_looks_at_as_many_examples_as_are_compared_at_most(monkeypatch):
    monkeypatch.setattr("manymetrics.weigh.ridge.MOST_COMPARED", 5)
    panel = Panel(METRICS, VECTORS.read(TEXTS), LABELS, CLASSES)
    answers = panel.chances(VECTORS.read(["a lamp", "some music"]), EVERYBODY)[:, 4]
    assert answers.argmax(axis=1).tolist() == [0, 1]
    assert np.isfinite(panel.left_out).all()
