"""Logistic regression in a kernel, against scikit-learn and against fits on fewer examples."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from manymetrics.weigh import regression
from manymetrics.weigh.regression import INTERCEPT, L2, fit_regression

LABELS = np.array([0] * 6 + [1] * 3 + [2] * 3)
CLASSES = 3


def normalize(count, seed=0, width=5):
    rows = np.random.default_rng(seed).standard_normal((count, width))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def planted_rows(labels, seed=0, spread=0.5):
    """Unit rows around one direction for each label."""
    rows = np.eye(CLASSES, 5)[labels] + spread * normalize(len(labels), seed)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def fit(rows, labels, n_classes=CLASSES, offset=None):
    return fit_regression(rows @ rows.T, np.arange(len(rows)), labels, n_classes, offset)


def logits_of(fitted, kernel):
    return kernel @ fitted.dual + fitted.intercept


def answer(fitted, rows, texts, offset=0.0):
    return softmax(logits_of(fitted, texts @ rows.T) + offset, axis=1)


def by_sklearn(rows, labels, texts):
    """The same penalty, with the intercept as one more feature."""
    as_features = [np.hstack([one, np.full((len(one), 1), np.sqrt(INTERCEPT))]) for one in (rows, texts)]
    model = LogisticRegression(C=1 / L2, class_weight="balanced", fit_intercept=False, tol=1e-10, max_iter=10_000)
    return model.fit(as_features[0], labels).predict_proba(as_features[1])


def test_few_steps_come_near_the_answer_of_scikit_learn_with_balanced_classes_and_many_reach_it(monkeypatch):
    rows, texts = planted_rows(LABELS), normalize(40, seed=1)
    expected = by_sklearn(rows, LABELS, texts)
    np.testing.assert_allclose(answer(fit(rows, LABELS), rows, texts), expected, atol=0.01)
    for name, value in {"MAX_ITER": 2000, "TOLERANCE": 1e-9, "JITTER": 1e-9}.items():
        monkeypatch.setattr(regression, name, value)
    np.testing.assert_allclose(answer(fit(rows, LABELS), rows, texts), expected, atol=1e-4)


@pytest.mark.parametrize("count", [9, 24, 40])
def test_what_is_left_out_is_answered_as_by_a_fit_with_its_weight_zero(count):
    rng = np.random.default_rng(count)
    labels = np.concatenate([np.arange(CLASSES), rng.integers(CLASSES, size=count - CLASSES)])
    rows = planted_rows(labels, seed=count, spread=1.0)
    fitted = fit(rows, labels)
    found = softmax(fitted.leave_out(np.arange(count)), axis=1)
    features = np.hstack([rows, np.ones((count, 1))])
    for place in range(count):
        kept = np.delete(np.arange(count), place)
        if len(np.unique(labels[kept])) < CLASSES:
            continue
        model = LogisticRegression(C=1 / L2, fit_intercept=False, tol=1e-10, max_iter=10_000)
        model.fit(features[kept], labels[kept], sample_weight=fitted.sample_weight[kept])
        np.testing.assert_allclose(found[place], model.predict_proba(features[[place]])[0], atol=0.01)


def test_of_many_examples_several_are_left_out_at_once_and_the_answers_stay_near():
    labels = np.arange(90) % CLASSES
    rows = planted_rows(labels, spread=1.5)
    fitted = fit(rows, labels)
    together = softmax(fitted.leave_out(np.arange(90)), axis=1)
    one_by_one = softmax(np.concatenate([fitted.leave_out(np.array([place])) for place in range(90)]), axis=1)
    np.testing.assert_allclose(together, one_by_one, atol=0.15)
    assert np.abs(together - one_by_one).mean() < 0.02
    assert fitted.leave_out(np.zeros(0, dtype=int)).shape == (0, CLASSES)


def test_of_a_problem_too_large_for_refits_the_squared_errors_are_left_out_exactly(monkeypatch):
    monkeypatch.setattr(regression, "MAX_FOLD_SIZE", 1)
    fitted = fit(planted_rows(LABELS), LABELS)
    features, residuals = fitted.features, fitted.targets - 1 / CLASSES
    for row, logits in enumerate(fitted.leave_out(np.arange(len(LABELS)))):
        weighted = np.where(np.arange(len(LABELS)) == row, 0, fitted.sample_weight)[:, None] * features
        penalized = features.T @ weighted + regression.SQUARES_L2 * np.eye(features.shape[1])
        expected = features[row] @ np.linalg.solve(penalized, weighted.T @ residuals)
        np.testing.assert_allclose(logits, regression.SQUARES_SCALE * expected, atol=1e-8)


def test_known_logits_are_added_to_and_not_learned_again():
    rows, texts = planted_rows(LABELS), normalize(10, seed=1)
    sure = 20.0 * np.eye(CLASSES)[LABELS]
    nothing_left = fit(rows, LABELS, offset=sure)
    assert np.abs(logits_of(nothing_left, texts @ rows.T)).max() < 0.01, "the offset says all there is to say"
    np.testing.assert_allclose(nothing_left.leave_out(np.arange(len(rows))), sure, atol=0.01)
    wrong = 2.0 * np.eye(CLASSES)[(LABELS + 1) % CLASSES]
    corrected = softmax(logits_of(fit(rows, LABELS, offset=wrong), rows @ rows.T) + wrong, axis=1)
    assert (corrected.argmax(axis=1) == LABELS).all(), "the regression corrects what the offset has wrong"
