import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from manymetrics.errors import DidNotConverge
from manymetrics.measure import fit_head


def clouds(seed=0, *, n=90, width=5, classes=3, apart=1.5):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    centroids = apart * rng.standard_normal((classes, width))
    return (centroids[labels] + rng.standard_normal((n, width))).astype(np.float32), labels


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_a_head_answers_as_scikit_learns_logistic_regression(classes):
    features, labels = clouds(classes=classes)
    spread = (features - features.mean(axis=0)).astype(np.float64)
    scaled = spread / np.sqrt(np.mean(spread**2))  # one scale for all features, as the head does it
    # scikit-learn has one weight for two labels, so its penalty on a difference is twice ours
    theirs = LogisticRegression(C=2 if classes == 2 else 1, max_iter=1000, tol=1e-8)
    expected = theirs.fit(scaled, labels).predict_proba(scaled)
    ours = fit_head(features, labels, classes=classes).probabilities(features)
    np.testing.assert_allclose(ours, expected, atol=2e-2)


def test_probabilities_sum_to_one_and_agree_with_their_logarithm():
    features, labels = clouds()
    head = fit_head(features, labels, classes=3)
    np.testing.assert_allclose(head.probabilities(features).sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(np.exp(head.log_probabilities(features)), head.probabilities(features), atol=1e-6)


def test_features_moved_and_stretched_give_the_same_answers():
    features, labels = clouds()
    there = fit_head(1000 * features + 50, labels, classes=3).probabilities(1000 * features + 50)
    np.testing.assert_allclose(there, fit_head(features, labels, classes=3).probabilities(features), atol=2e-2)


def test_a_label_that_was_not_trained_is_never_the_likeliest():
    features, labels = clouds(classes=2)
    probabilities = fit_head(features, labels, classes=4).probabilities(features)
    assert np.isfinite(probabilities).all()
    assert probabilities[:, 2:].max() < 0.1


def test_features_that_say_nothing_give_the_balance_of_the_labels():
    labels = np.array([0, 0, 0, 1])
    probabilities = fit_head(np.zeros((4, 3), np.float32), labels, classes=2).probabilities(
        np.zeros((1, 3), np.float32)
    )
    np.testing.assert_allclose(probabilities, [[0.75, 0.25]], atol=2e-2)


def test_stopping_early_is_a_warning_that_says_what_to_turn():
    features, labels = clouds()
    told = r"A softmax regression stopped after 1 steps with slope .* \(wanted 1\.0e-03\)\. Allow more steps"
    with pytest.warns(DidNotConverge, match=told):
        fit_head(features, labels, classes=3, max_steps=1)
