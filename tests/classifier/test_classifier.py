"""What serves + a task's examples -> a classifier: its metric, its fallback, and how a batch is answered."""

from dataclasses import replace

import numpy as np
import pytest

from manymetrics.classifier import adapt
from manymetrics.classifier.examples import support_set
from manymetrics.weigh import GradientSettings

NEW = ["lamp on", "any music", "a meeting", "", "something else entirely"]
LABELS = ("lamp", "meeting", "music")


@pytest.fixture(scope="module")
def support(shots):
    return support_set(shots.texts, shots.labels)


# --- the task's metric


@pytest.mark.filterwarnings("error")
def test_every_metric_has_its_weight(model, support):
    adapted = adapt(model.predictor, support)
    assert [metric.name for metric in adapted.metrics] == ["cluster-0", "cluster-1", "word-vectors"]
    np.testing.assert_allclose(adapted.weights, [0.35, 0.35, 0.3])
    assert (adapted.assignment, adapted.fallback_reason) == (None, None)
    np.testing.assert_allclose(adapted.answer(NEW).probabilities.sum(axis=1), 1)


def test_the_examples_nearest_to_a_text_are_found(model, support):
    places, cosines = adapt(model.predictor, support).nearest_examples(["play some jazz", "lamp on please"], 3)
    assert places.shape == cosines.shape == (2, 3)
    assert [support.texts[place] for place in places[:, 0]] == ["play some jazz", "lamp on please"]
    np.testing.assert_allclose(cosines[:, 0], 1, atol=1e-5)
    assert (np.diff(cosines, axis=1) <= 0).all()


# --- the same task told differently


def test_doubled_examples_leave_the_scope_and_the_most_probable_labels(model, shots, support):
    plain = adapt(model.predictor, support)
    doubled = adapt(model.predictor, support_set([*shots.texts] * 2, [*shots.labels] * 2))
    np.testing.assert_allclose(doubled.answer(NEW).scope, plain.answer(NEW).scope, atol=1e-9)
    asked = ["turn the lamp on", "play music", "my next meeting"]
    assert (doubled.answer(asked).most_probable == plain.answer(asked).most_probable).all()
    assert doubled.scope_threshold(0.1) == pytest.approx(plain.scope_threshold(0.1), abs=1e-9)


def test_without_label_names_renamed_labels_change_nothing(model, shots):
    renamed = {"lamp": "a", "meeting": "b", "music": "c"}
    plain, other = (
        adapt(model.predictor, support_set(shots.texts, [change(one) for one in shots.labels]), label_names=False)
        for change in (str, renamed.get)
    )
    assert (plain.answer(NEW).probabilities == other.answer(NEW).probabilities).all()


def test_label_sets_choose_the_metrics_unless_label_names_are_not_to_be_used(make_model, support):
    own = make_model(shared_labels=LABELS, seed=3).predictor
    predictor = replace(make_model().predictor, by_labels=(own,))
    assert adapt(predictor, support).metrics == tuple(metric for metric in own.metrics if metric.kind != "linear")
    assert adapt(predictor, support, label_names=False).metrics == predictor.metrics


# --- the published mix


def test_the_published_mix_is_of_the_clusters_metrics_alone(published, support):
    adapted = adapt(published.predictor, support, adaptive=False)
    assert [metric.name for metric in adapted.metrics] == ["cluster-0", "cluster-1"]
    np.testing.assert_allclose(adapted.answer(NEW).probabilities.sum(axis=1), 1)
    assert (adapted.temperature, adapted.uses_names, adapted.assignment) == (None, False, None)
    slow = replace(published.predictor, gradient=GradientSettings(0.01, 2))
    weights = adapt(slow, support, adaptive=False).weights
    assert np.abs(weights - 0.5).max() <= 0.021, "two steps of 0.01 from even weights"


def test_the_published_fallback_is_the_published_network(published):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    texts = [f"{'abcdefghijkl'[place]}{place}" for place in range(12)]  # no two alike: nobody can match them
    support = support_set(texts, np.arange(12) // 2)
    adapted = adapt(published.predictor, support)
    assert "less than 20%. A network trained on the examples alone answers." in adapted.fallback_reason
    answers = adapted.answer(support.texts)
    np.testing.assert_allclose(answers.probabilities.sum(axis=1), 1, atol=1e-5)
    assert np.mean(answers.most_probable == support.numbers) > 0.8


# --- answers


@pytest.mark.parametrize("kind", ["model", "published", "picky"])
def test_a_text_gets_the_same_probabilities_in_any_company(request, support, shots, kind):
    adapted = adapt(request.getfixturevalue(kind).predictor, support, adaptive=kind == "picky")
    long = " ".join(f"word{number}" for number in range(10_000))
    company = [*NEW, long, *shots.texts]
    order = np.random.default_rng(0).permutation(len(company))
    together = adapted.answer(company).probabilities
    np.testing.assert_allclose(
        adapted.answer([company[row] for row in order]).probabilities, together[order], atol=1e-5
    )
    for place, text in enumerate(NEW):
        np.testing.assert_allclose(adapted.answer([text]).probabilities[0], together[place], atol=1e-5)
