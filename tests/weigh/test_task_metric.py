"""alpha, the metric of a task and the regression in it, and whether its label names are informative."""

from dataclasses import replace

import numpy as np
import pytest
from planted import Numbers, as_texts, frozen, of_cluster, planted_texts, shared

from manymetrics.encode import EmbeddedTexts
from manymetrics.weigh import Assignment, TaskMetric, encoder_weights, fit_head
from manymetrics.weigh.task_metric import BASE_WEIGHT, are_words, log_odds_of_names

BASE, FIRST, SECOND, ALL = Numbers(1, 1, 1), Numbers(2, 1, 1), Numbers(1, 2, 1), Numbers(1, 1, 2)
LABELS = np.array([0, 0, 0, 1, 1, 1, 2, 2])


SHARED, CLUSTERS, FROZEN = shared(ALL), [of_cluster(0, FIRST), of_cluster(1, SECOND)], frozen(BASE)
HALVES = [replace(metric, share=0.5) for metric in CLUSTERS]
LEARNED = 1 - BASE_WEIGHT  # the weight of all that learned from labels


@pytest.mark.parametrize(("metrics", "clusters", "expected"), [
    ([SHARED, *CLUSTERS, FROZEN], (0.9, 0.1), [0, 0.9 * LEARNED, 0.1 * LEARNED, BASE_WEIGHT]),
    ([SHARED, CLUSTERS[1], FROZEN], (0.6, 0.3, 0.1), [0.7 * LEARNED, 0.3 * LEARNED, BASE_WEIGHT]),
    ([SHARED, *HALVES, FROZEN], (0.8, 0.2), [0.6 * LEARNED, 0.4 * LEARNED, 0, BASE_WEIGHT]),
    ([SHARED, *CLUSTERS, FROZEN], None, [LEARNED, 0, 0, BASE_WEIGHT]),
    ([*CLUSTERS, FROZEN], None, [LEARNED / 2, LEARNED / 2, BASE_WEIGHT]),
    ([SHARED, *CLUSTERS, FROZEN], (0.9999, 0.0001), [0, LEARNED, 0, BASE_WEIGHT]),
    ([FROZEN, frozen(ALL, "further")], None, [0.5, 0.5]),
    ([SHARED], None, [1.0]),
], ids=[
    "a cluster's encoder has the weight of its cluster", "the shared encoder has that of clusters without one",
    "an encoder with a share leaves the rest, and needs a probable cluster",
    "without an assignment the shared encoder has the weight of all clusters", "without a shared encoder they share it",
    "a cluster of next to no probability is left out", "frozen encoders alone share all", "and one alone has all",
])  # fmt: skip
def test_the_weights_follow_the_assignment(metrics, clusters, expected):
    weights = encoder_weights(metrics, None if clusters is None else Assignment(clusters, ("a",), "names"))
    np.testing.assert_allclose(weights, expected, atol=1e-3 if clusters == (0.9999, 0.0001) else 1e-9)
    assert (weights == 0).tolist() == [one == 0 for one in expected]
    assert weights.sum() == pytest.approx(1)


# --- the metric and its head


@pytest.fixture(scope="module")
def head():
    examples = EmbeddedTexts(planted_texts(LABELS, 3, spread=0.4, seed=0))
    metric = TaskMetric.of([shared(ALL), of_cluster(0, FIRST), frozen(BASE)], np.array([0.5, 0.2, 0.3]), examples)
    return fit_head(metric, LABELS, 3)


TEXTS = EmbeddedTexts(as_texts(np.random.default_rng(5).standard_normal((20, 3))))


def test_the_metric_is_the_weighted_sum_of_cosines(head):
    def cosines(encoder):
        texts, examples = (one.texts for one in (TEXTS, head.metric.examples))
        rows = [encoder.encode(one) for one in (texts, examples)]
        job = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in rows]
        return job[0] @ job[1].T

    expected = 0.5 * cosines(ALL) + 0.2 * cosines(FIRST) + 0.3 * cosines(BASE)
    np.testing.assert_allclose(head.metric.kernel(TEXTS), expected, atol=1e-6)


def test_logits_are_those_of_the_kernel_regression(head):
    regression = head.regression
    expected = head.metric.kernel(TEXTS) @ regression.dual + regression.intercept
    np.testing.assert_allclose(head.logits(TEXTS), expected, atol=1e-5)


def test_the_logits_are_the_weighted_mean_of_those_of_single_encoders(head):
    parts = [head.encoder_logits(TEXTS, encoder) for encoder in head.metric.encoders]
    np.testing.assert_allclose(np.tensordot(head.metric.weights, parts, axes=1), head.logits(TEXTS), atol=1e-5)


def test_metrics_of_one_encoder_are_one_and_those_without_weight_are_not_asked():
    metrics = [shared(ALL), frozen(BASE), frozen(BASE, "twin"), of_cluster(0, FIRST)]
    metric = TaskMetric.of(metrics, np.array([0.4, 0.3, 0.3, 0.0]), EmbeddedTexts(as_texts(np.eye(3))))
    assert len(metric.encoders) == 2
    np.testing.assert_allclose(metric.weights, [0.4, 0.6])


def test_the_shares_of_examples_sum_to_one_and_similar_ones_of_the_label_have_the_largest(head):
    text = EmbeddedTexts(as_texts([[1.0, 0.0, 0.0]]))
    shares, similarity = head.example_shares(text, 0, len(LABELS))
    assert shares.sum() == pytest.approx(1)
    assert LABELS[shares.argmax()] == 0
    np.testing.assert_allclose(similarity, head.metric.kernel(text)[0])
    few, _ = head.example_shares(text, 0, 6)
    assert few.shape == (6,), "rows behind the shots are label names"


def test_more_examples_than_landmarks_are_answered_too(monkeypatch):
    monkeypatch.setattr("manymetrics.weigh.task_metric.MAX_LANDMARKS", 12)
    labels = np.arange(60) % 3
    texts = planted_texts(labels, 3, spread=0.2, seed=1)
    head = fit_head(TaskMetric.of([frozen(BASE)], np.ones(1), EmbeddedTexts(texts)), labels, 3)
    assert head.metric.landmarks.tolist() == np.linspace(0, 59, 12).round().tolist()
    assert np.mean(head.logits(EmbeddedTexts(texts)).argmax(axis=1) == labels) > 0.95


# --- whether label names are informative


def similarity(labels, *, n_classes, gain, seed):
    """Of shots to names: higher for the name of the own label by `gain`."""
    rng = np.random.default_rng(seed)
    return 0.5 + 0.1 * rng.standard_normal((len(labels), n_classes)) + gain * np.eye(n_classes)[labels]


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_names_that_resemble_their_shots_are_informative_and_shuffled_or_random_ones_are_not(n_classes):
    labels, sizes = np.arange(5 * n_classes) % n_classes, {"n_classes": n_classes}
    for seed in range(10):
        assert log_odds_of_names(similarity(labels, gain=0.2, seed=seed, **sizes), labels) > 0
        assert log_odds_of_names(similarity((labels + 1) % n_classes, gain=0.2, seed=seed, **sizes), labels) < 0
    odds = [log_odds_of_names(similarity(labels, gain=0.0, seed=seed, **sizes), labels) for seed in range(100)]
    assert np.mean(np.array(odds) > 0) <= 0.2


def test_a_name_that_is_similar_to_every_text_says_nothing():
    labels = np.array([0, 0, 0, 1, 1, 1])
    assert log_odds_of_names(np.tile([0.9, 0.1], (6, 1)), labels) == pytest.approx(0)
    told = np.eye(2)[labels] * 0.3
    assert log_odds_of_names(told + np.array([0.4, 0.0]), labels) == pytest.approx(log_odds_of_names(told, labels))


def test_without_shots_the_odds_are_even():
    assert log_odds_of_names(np.zeros((0, 3)), np.zeros(0, dtype=int)) == 0.0


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["turn on", "turn off"], True),
        (["class 3", "class 4"], False),
        (["1", "2"], False),
        (["a", "b"], False),
        (["intent 1", "play music"], True),
        (["label", "category", "music"], False),
    ],
)
def test_numbers_letters_and_words_for_any_label_are_no_names(names, expected):
    assert are_words(names) is expected
