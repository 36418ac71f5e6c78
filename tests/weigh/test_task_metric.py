"""alpha, the metric of a task and the regression in it."""

from dataclasses import replace

import numpy as np
import pytest
from planted import Numbers, as_texts, frozen, of_cluster, planted_texts, shared

from manymetrics.encode import EmbeddedTexts
from manymetrics.weigh import Assignment, TaskMetric, encoder_weights, fit_head
from manymetrics.weigh.task_metric import BASE_WEIGHT, base_weights

BASE, FIRST, SECOND, ALL = Numbers(1, 1, 1), Numbers(2, 1, 1), Numbers(1, 2, 1), Numbers(1, 1, 2)
LABELS = np.array([0, 0, 0, 1, 1, 1, 2, 2])


def assignment(*clusters):
    return Assignment(clusters, ("a",), "names")


def weights_of(metrics, routed):
    weights = encoder_weights(metrics, routed)
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    return dict(zip([metric.name for metric in metrics], weights.tolist(), strict=True))


def test_the_encoder_of_the_tasks_own_cluster_has_the_weight_of_its_cluster():
    metrics = [shared(ALL), of_cluster(0, FIRST), of_cluster(1, SECOND), frozen(BASE)]
    found = weights_of(metrics, assignment(0.9, 0.1))
    assert found["base"] == pytest.approx(BASE_WEIGHT)
    assert found["cluster-0"] == pytest.approx(0.9 * (1 - BASE_WEIGHT))
    assert found["cluster-1"] == pytest.approx(0.1 * (1 - BASE_WEIGHT))
    assert found["projection"] == pytest.approx(0)


def test_the_shared_encoder_has_the_weight_of_clusters_without_one():
    metrics = [shared(ALL), of_cluster(1, SECOND), frozen(BASE)]
    found = weights_of(metrics, assignment(0.6, 0.3, 0.1))
    assert found["cluster-1"] == pytest.approx(0.3 * (1 - BASE_WEIGHT))
    assert found["projection"] == pytest.approx(0.7 * (1 - BASE_WEIGHT))


def test_an_encoder_with_a_share_leaves_the_rest_to_the_shared_one_and_needs_a_probable_cluster():
    tuned = [replace(of_cluster(number, encoder), share=0.5) for number, encoder in enumerate((FIRST, SECOND))]
    found = weights_of([shared(ALL), *tuned, frozen(BASE)], assignment(0.8, 0.2))
    assert found["cluster-0"] == pytest.approx(0.4 * (1 - BASE_WEIGHT))
    assert found["cluster-1"] == 0.0
    assert found["projection"] == pytest.approx(0.6 * (1 - BASE_WEIGHT))


def test_without_an_assignment_the_shared_encoder_has_the_weight_of_all_clusters():
    metrics = [shared(ALL), of_cluster(0, FIRST), of_cluster(1, SECOND), frozen(BASE)]
    assert weights_of(metrics, None) == pytest.approx(
        {"projection": 1 - BASE_WEIGHT, "cluster-0": 0, "cluster-1": 0, "base": BASE_WEIGHT}
    )


def test_without_a_shared_encoder_the_clusters_share_its_weight_equally():
    metrics = [of_cluster(0, FIRST), of_cluster(1, SECOND), frozen(BASE)]
    found = weights_of(metrics, None)
    assert found["cluster-0"] == found["cluster-1"] == pytest.approx((1 - BASE_WEIGHT) / 2)


def test_a_cluster_of_next_to_no_probability_is_left_out():
    metrics = [shared(ALL), of_cluster(0, FIRST), of_cluster(1, SECOND), frozen(BASE)]
    assert weights_of(metrics, assignment(0.9999, 0.0001))["cluster-1"] == 0.0


def test_frozen_encoders_alone_share_all_the_weight():
    metrics = [frozen(BASE), frozen(ALL, "further")]
    assert weights_of(metrics, None) == pytest.approx({"base": 0.5, "further": 0.5})
    assert weights_of([shared(ALL)], None) == {"projection": 1.0}


def test_what_is_left_of_the_metric_in_a_fallback_is_the_frozen_encoders():
    metrics = [shared(ALL), of_cluster(0, FIRST), frozen(BASE), frozen(SECOND, "further")]
    assert base_weights(metrics).tolist() == [0, 0, 0.5, 0.5]


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
    monkeypatch.setattr("manymetrics.weigh.regression.MAX_LANDMARKS", 12)
    labels = np.arange(60) % 3
    texts = planted_texts(labels, 3, spread=0.2, seed=1)
    head = fit_head(TaskMetric.of([frozen(BASE)], np.ones(1), EmbeddedTexts(texts)), labels, 3)
    assert len(head.metric.landmarks) == 12
    assert np.mean(head.logits(EmbeddedTexts(texts)).argmax(axis=1) == labels) > 0.95
