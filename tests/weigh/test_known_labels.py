"""A classifier over the labels that the bank's tasks share, and the regression that adds to it."""

import numpy as np
import pytest
from planted import Numbers, as_texts, frozen, planted_texts
from scipy.special import log_softmax

from manymetrics.classifier import Predictor, adapt
from manymetrics.classifier.examples import support_set
from manymetrics.encode import EmbeddedTexts
from manymetrics.measure.heads import Head
from manymetrics.specialize import LabelHead, Metric
from manymetrics.specialize.metric import LINEAR
from manymetrics.weigh.task_metric import SharedLabelHead

ENCODER = Numbers(1, 1, 1)
LABELS = ("bad", "fair", "good")
WEIGHTS = np.array([[6.0, 0, 0], [0, 6.0, 0], [0, 0, 6.0]], dtype=np.float32)
TEXTS = EmbeddedTexts(as_texts([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.2, 0.1, 0.4]]))


def linear(weights=WEIGHTS, prior=(0.6, 0.3, 0.1), name="shared-labels"):
    head = Head(weights, np.array([0.5, 0.0, -0.5], dtype=np.float32))
    shared = LabelHead(head, LABELS, np.array(prior, dtype=np.float32))
    return Metric(name, LINEAR, ENCODER, tasks=("a", "b"), shared=shared)


def test_logits_are_the_classifiers_log_probabilities_in_the_order_of_the_tasks_labels():
    known = SharedLabelHead.of([linear()], ("good", "bad", "fair"))
    expected = log_softmax(ENCODER.encode(TEXTS.texts) @ WEIGHTS + [0.5, 0.0, -0.5], axis=1)
    np.testing.assert_allclose(known.logits(TEXTS), expected[:, [2, 0, 1]], atol=1e-5)
    np.testing.assert_allclose(known.base_rate, [0.1, 0.6, 0.3], atol=1e-6)


def test_several_classifiers_are_averaged():
    other = linear(weights=-WEIGHTS, prior=(0.2, 0.3, 0.5), name="other")
    both = SharedLabelHead.of([linear(), other], LABELS)
    apart = [SharedLabelHead.of([one], LABELS).logits(TEXTS) for one in (linear(), other)]
    np.testing.assert_allclose(both.logits(TEXTS), np.mean(apart, axis=0), atol=1e-6)
    np.testing.assert_allclose(both.base_rate, [0.4, 0.3, 0.3], atol=1e-6)


@pytest.fixture(scope="module")
def predictor():
    return Predictor((frozen(ENCODER), linear()))


def test_a_task_with_the_labels_of_the_bank_is_answered_from_the_first_shot(predictor):
    noise = as_texts(np.full((3, 3), 0.1))  # shots that say nothing
    adapted = adapt(predictor, support_set(noise, LABELS))
    assert adapted.head.known is not None
    assert [LABELS[place] for place in adapted.answer(TEXTS.texts).most_probable[:3]] == list(LABELS)
    np.testing.assert_allclose(adapted.base_rate, [0.6, 0.3, 0.1], atol=1e-6)


def test_the_shots_correct_what_is_particular_to_the_task(predictor):
    labels = np.arange(300) % 3
    moved = (labels + 1) % 3  # in this task the labels mean something else
    adapted = adapt(
        predictor, support_set(planted_texts(labels, 3, spread=0.1, seed=0), [LABELS[one] for one in moved])
    )
    assert [LABELS[place] for place in adapted.answer(TEXTS.texts).most_probable[:3]] == ["fair", "good", "bad"]


def test_a_task_with_other_labels_knows_nothing_of_them(predictor):
    texts = planted_texts(np.arange(6) % 2, 3, spread=0.1, seed=0)
    for labels in (("no", "yes"), ("bad", "good")):
        adapted = adapt(predictor, support_set(texts, list(labels) * 3))
        assert adapted.head.known is None
        np.testing.assert_allclose(adapted.base_rate, [0.5, 0.5])


def test_a_task_whose_labels_are_known_does_not_fall_back(predictor):
    labels = np.random.default_rng(0).permutation(np.arange(60) % 3)
    texts = planted_texts(np.arange(60) % 3, 3, spread=0.3, seed=0)
    assert adapt(predictor, support_set(texts, [LABELS[one] for one in labels])).fallback_reason is None
