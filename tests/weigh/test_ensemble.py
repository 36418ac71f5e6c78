import numpy as np
import pytest

from manymetrics.encode import Features, LetterEncoder, PhraseEncoder, random_vectors, unit_rows
from manymetrics.measure.heads import Head
from manymetrics.specialize import SharedLabelMetric, SimilarityMetric
from manymetrics.values import LabelledTexts, Texts
from manymetrics.weigh import RIDGE, Ensemble, MixSettings

WORDS = random_vectors(rows=512, dimensions=16)
TEXTS = Texts(["lamp on", "lamp off", "the lamp", "play music", "music now", "loud music", "call anna", "anna please"])
LABELS = np.array([0, 0, 0, 1, 1, 1, 2, 2])
SUPPORT = LabelledTexts(TEXTS, LABELS)
CLASSES = ("lamp", "music", "anna")
LETTERS = LetterEncoder.from_texts(TEXTS, buckets=2**12)
METRICS = (
    SimilarityMetric("first", "learned", WORDS, "prototypical", 9.0, ("a", "b", "c"), 0),
    SimilarityMetric("second", "learned", LETTERS, "matching", 9.0, ("d",), 1),
    SimilarityMetric("word-vectors", "frozen", WORDS, "prototypical", 9.0),
    SimilarityMetric("letters", "lexical", LETTERS, "prototypical", 9.0),
)
EVERYBODY = np.arange(5)


@pytest.fixture
def ensemble():
    return Ensemble(METRICS, SUPPORT, CLASSES)


def answer(ensemble, *texts, members=EVERYBODY):
    return ensemble.probabilities(ensemble.compare(Features(Texts(texts))), np.asarray(members))


def test_the_regression_stands_behind_the_metrics(ensemble):
    assert [member.name for member in ensemble.members] == ["first", "second", "word-vectors", "letters", RIDGE]
    assert ensemble.leave_one_out.shape == (8, 5, 3)
    without = Ensemble(METRICS, SUPPORT, CLASSES, ridge=False)
    assert len(without.members) == 4
    assert (without.leave_one_out == ensemble.leave_one_out[:, :4]).all()


def test_members_speak_for_clusters_where_tasks_share_their_labels(ensemble):
    assert ensemble.clusters is None
    encoder, prior = PhraseEncoder.from_texts(WORDS, Texts.join([TEXTS] * 3)), np.full(3, 1 / 3, np.float32)
    head = Head(np.zeros((encoder.width, 3), np.float32), np.zeros(3, np.float32))
    linear = [
        SharedLabelMetric(name, "linear", encoder, head, CLASSES, prior, (), cluster)
        for name, cluster in (("phrases of the first", 0), ("phrases of the second", 1), ("phrases", None))
    ]
    clusters = Ensemble((*METRICS[:2], *linear), SUPPORT, CLASSES).clusters
    assert clusters[0] == clusters[2]
    assert clusters[1] == clusters[3]
    assert len(set(clusters.tolist())) == 4  # the linear metric of all, and the regression


def test_the_prior_parts_a_kind_by_the_number_of_tasks_and_the_regression_is_a_kind(ensemble):
    settings = MixSettings({"learned": 0.4, "frozen": 0.2, "lexical": 0.1, RIDGE: 0.3})
    np.testing.assert_allclose(ensemble.prior(settings), [0.3, 0.1, 0.2, 0.1, 0.3])


def test_the_regression_answers_with_all_cosines_added_up(ensemble):
    """By hand: the ridge of the labels on a kernel in which each kind counts one, a cluster by its tasks."""
    asked = Texts(["a lamp", "some music", "anna"])

    def kernel(texts):
        words = unit_rows(WORDS.encode(texts)).astype(float) @ unit_rows(WORDS.encode(TEXTS)).astype(float).T
        runs = (unit_rows(LETTERS.encode(texts)) @ unit_rows(LETTERS.encode(TEXTS)).T).toarray()
        return 1 + (0.75 + 1) * words + (0.25 + 1) * runs

    truth = np.eye(3)[LABELS]
    centred = truth - truth.mean(axis=0)
    scores = kernel(asked) @ np.linalg.solve(kernel(TEXTS) + 0.3 * np.eye(8), centred) + truth.mean(axis=0)
    expected = np.exp(9 * scores) / np.exp(9 * scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(answer(ensemble, *asked)[:, 4], expected, atol=1e-3)


def test_an_example_left_out_does_not_answer_for_itself(ensemble):
    own = answer(ensemble, *TEXTS)[np.arange(8), 4, LABELS]
    assert (ensemble.leave_one_out[np.arange(8), 4, LABELS] < own).all()


def test_who_is_asked_does_not_change_what_anybody_answers(ensemble):
    asked = ("a lamp", "some music", "", "never seen")
    everybody = answer(ensemble, *asked)
    for some in ([0, 2], [4], [1, 4], [3]):
        np.testing.assert_array_equal(answer(ensemble, *asked, members=some), everybody[:, some])


def test_each_encoder_is_asked_once_whoever_needs_its_rows(ensemble, monkeypatch):
    asked = []
    for kind in (type(WORDS), LetterEncoder):
        encode = kind.encode
        monkeypatch.setattr(
            kind, "encode", lambda self, texts, encode=encode: asked.append(self.kind) or encode(self, texts)
        )
    answer(ensemble, "a lamp", "some music")
    assert sorted(asked) == ["letters", "word-vectors"]


def test_every_member_finds_a_text_most_like_the_example_it_repeats(ensemble):
    cosines = ensemble.cosines(ensemble.compare(Features(Texts(["some loud music"]))))
    assert [found.shape for found in cosines] == [(1, 8)] * 5
    assert [int(found.argmax()) for found in cosines] == [5] * 5
    scales = np.array([0.75 + 1, 0.25 + 1]) / 3  # of words and letters, kinds counting alike
    np.testing.assert_allclose(cosines[4], scales[0] * cosines[0] + scales[1] * cosines[1], atol=1e-6)


def test_the_regression_compares_with_as_many_examples_as_there_are_landmarks(monkeypatch):
    monkeypatch.setattr("manymetrics.weigh.comparison.MOST_LANDMARKS", 5)
    ensemble = Ensemble(METRICS, SUPPORT, CLASSES)
    assert len(ensemble.examples.landmarks) == 5
    assert answer(ensemble, "a lamp", "some music")[:, 4].argmax(axis=1).tolist() == [0, 1]
    assert np.isfinite(ensemble.leave_one_out).all()
