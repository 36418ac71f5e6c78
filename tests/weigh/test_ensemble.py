import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from manymetrics.encode import Features, LetterEncoder, PhraseEncoder, random_vectors, unit_rows
from manymetrics.measure.heads import Head
from manymetrics.specialize import SharedLabelMetric, SimilarityMetric
from manymetrics.values import LabelledTexts, Texts
from manymetrics.weigh import REGRESSION, Ensemble, MixSettings
from manymetrics.weigh.regression import LIKELIHOOD_PENALTY

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
LEARNED, FROZEN, LEXICAL = 0.5, 0.5, 0.3  # of the regression's kernel
WORDS_SHARE, LETTERS_SHARE = 0.75 * LEARNED + FROZEN, 0.25 * LEARNED + LEXICAL  # of four tasks the first learned three


@pytest.fixture
def ensemble():
    return Ensemble(METRICS, SUPPORT, CLASSES)


def answer(ensemble, *texts, members=None):
    asked = np.arange(len(ensemble.members)) if members is None else np.asarray(members)
    return ensemble.probabilities(ensemble.compare(Features(Texts(texts))), asked)


def test_the_regression_stands_behind_the_metrics(ensemble):
    assert [member.name for member in ensemble.members] == ["first", "second", "word-vectors", "letters", REGRESSION]
    assert ensemble.leave_one_out.shape == (8, 5, 3)
    without = Ensemble(METRICS, SUPPORT, CLASSES, regression=False)
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
    settings = MixSettings({"learned": 0.4, "frozen": 0.2, "lexical": 0.1, REGRESSION: 0.3})
    np.testing.assert_allclose(ensemble.prior(settings), [0.3, 0.1, 0.2, 0.1, 0.3])


def test_the_regression_answers_with_all_cosines_added_up(ensemble):
    """By hand: labels weigh alike, and each kind has a share of the kernel, a cluster by its tasks."""
    asked = Texts(["a lamp", "some music", "anna"])

    def kernel(texts):
        words = unit_rows(WORDS.encode(texts)).astype(float) @ unit_rows(WORDS.encode(TEXTS)).astype(float).T
        runs = (unit_rows(LETTERS.encode(texts)) @ unit_rows(LETTERS.encode(TEXTS)).T).toarray()
        return 1 + WORDS_SHARE * words + LETTERS_SHARE * runs

    root = np.linalg.cholesky(kernel(TEXTS) + 1e-9 * np.eye(8))
    model = LogisticRegression(C=1 / LIKELIHOOD_PENALTY, class_weight="balanced", fit_intercept=False, max_iter=10_000)
    expected = model.fit(root, LABELS).predict_proba(np.linalg.solve(root, kernel(asked).T).T)
    np.testing.assert_allclose(answer(ensemble, *asked)[:, 4], expected, atol=0.01)


def test_an_example_left_out_does_not_answer_for_itself(ensemble):
    own = answer(ensemble, *TEXTS)[np.arange(8), :4, LABELS]
    assert (ensemble.leave_one_out[np.arange(8), :4, LABELS] < own).all()


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
    scales = np.array([WORDS_SHARE, LETTERS_SHARE]) / (WORDS_SHARE + LETTERS_SHARE)
    np.testing.assert_allclose(cosines[4], scales[0] * cosines[0] + scales[1] * cosines[1], atol=1e-6)


def test_the_regression_compares_with_as_many_examples_as_there_are_landmarks(monkeypatch):
    monkeypatch.setattr("manymetrics.weigh.comparison.MOST_LANDMARKS", 5)
    ensemble = Ensemble(METRICS, SUPPORT, CLASSES)
    assert len(ensemble.examples.landmarks) == 5
    assert answer(ensemble, "a lamp", "some music")[:, 4].argmax(axis=1).tolist() == [0, 1]
    assert np.isfinite(ensemble.leave_one_out).all()


# --- names of labels as examples

NAMES = Texts(["lamp light", "music song", "anna call"])


def test_the_name_of_a_label_is_one_more_example_of_it():
    named = Ensemble(METRICS, SUPPORT, CLASSES, names=NAMES)
    by_hand = Ensemble(METRICS, LabelledTexts.join([SUPPORT, LabelledTexts(NAMES, np.arange(3))]), CLASSES)
    assert (named.uses_names, by_hand.uses_names) == (True, False)
    asked = ("a song", "the light", "anna")
    np.testing.assert_array_equal(answer(named, *asked), answer(by_hand, *asked))
    np.testing.assert_array_equal(named.leave_one_out, by_hand.leave_one_out[:8])
    assert named.labels.tolist() == [*LABELS.tolist(), 0, 1, 2]


def test_a_label_is_answered_from_its_name_alone():
    few = SUPPORT.take(np.arange(6))  # none of the third label
    named = Ensemble(METRICS, few, CLASSES, names=NAMES)
    assert answer(named, "call anna", "loud music").argmax(axis=2).tolist() == [[2] * 5, [1] * 5]
    nothing = Ensemble(METRICS, SUPPORT.take([]), CLASSES, names=NAMES)
    assert answer(nothing, "call anna", "music", "a lamp").argmax(axis=2).tolist() == [[2] * 5, [1] * 5, [0] * 5]
    assert nothing.leave_one_out.shape == (0, 5, 3)


def test_with_a_name_even_the_only_example_of_a_label_can_be_left_out():
    few = SUPPORT.take([0, 3, 6, 7])
    known = [
        np.isfinite(Ensemble(METRICS, few, CLASSES, names=names).leave_one_out).all(axis=(1, 2)).tolist()
        for names in (None, NAMES)
    ]
    assert known == [[False, False, True, True], [True] * 4]


def test_names_are_not_told_as_examples_that_a_text_is_like():
    named, plain = (Ensemble(METRICS, SUPPORT, CLASSES, names=names) for names in (NAMES, None))
    texts = Features(Texts(["music song"]))
    found, expected = (one.cosines(one.compare(texts)) for one in (named, plain))
    assert [cosines.shape for cosines in found] == [(1, 8)] * 5
    np.testing.assert_allclose(found[0], expected[0], atol=1e-6)
    np.testing.assert_allclose(named.compare(texts).nearest(LETTERS), plain.compare(texts).nearest(LETTERS), atol=1e-6)
    np.testing.assert_allclose(
        named.examples.nearest_others(LETTERS), plain.examples.nearest_others(LETTERS), atol=1e-6
    )


def test_the_metrics_of_clusters_are_one_group_and_every_other_member_one_of_its_own(ensemble):
    assert ensemble.groups == ("learned", "learned", "word-vectors", "letters", REGRESSION)
