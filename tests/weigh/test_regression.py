import numpy as np
from sklearn.linear_model import LogisticRegression

from manymetrics.weigh.regression import LIKELIHOOD_PENALTY, PENALTY, TEMPERATURE, Logistic, Ridge

LABELS = np.array([0, 0, 0, 1, 1, 2, 2])
ALIKE = 7 / 3 / np.array([3, 3, 3, 2, 2, 2, 2])  # weights that sum to the same for each label


def kernels(texts=4, seed=0):
    """Cosines of some random directions with those of the examples, and of the examples with one another."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((len(LABELS) + texts, 5))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    examples = rows[: len(LABELS)]
    return rows[len(LABELS) :] @ examples.T, examples @ examples.T


def by_hand(asked, among, labels, weights):
    """Kernel ridge regression in its dual form, each example's error counting by its weight."""
    solved = np.linalg.solve(among + 1 + PENALTY * np.diag(1 / weights), np.eye(3)[labels] - 1 / 3)
    logits = TEMPERATURE * (asked + 1) @ solved
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def test_the_answer_is_that_of_kernel_ridge_regression_in_which_labels_weigh_alike():
    asked, among = kernels()
    found = Ridge(among, np.arange(len(LABELS)), LABELS, 3).probabilities(asked)
    np.testing.assert_allclose(found, by_hand(asked, among, LABELS, ALIKE), atol=0.01)
    assert np.abs(found - by_hand(asked, among, LABELS, np.ones(len(LABELS)))).max() > 0.02


def test_what_is_left_out_had_no_part_in_its_answer():
    _, among = kernels()
    places = np.arange(len(LABELS))
    found = Ridge(among, places, LABELS, 3).leave_one_out()
    for row in places:
        kept = np.delete(places, row)
        expected = by_hand(among[[row]][:, kept], among[np.ix_(kept, kept)], LABELS[kept], ALIKE[kept])
        np.testing.assert_allclose(found[row], expected[0], atol=0.01)


def test_ten_examples_of_one_label_weigh_as_much_as_one_of_another():
    one, other = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    rows, labels = np.array([one] * 10 + [other]), np.array([0] * 10 + [1])
    marks = np.array([0, 10])
    halfway = (one + other) @ rows[marks].T / np.sqrt(2)
    found = Ridge(rows @ rows[marks].T, marks, labels, 2).probabilities(halfway[None])
    np.testing.assert_allclose(found, [[0.5, 0.5]], atol=0.01)


def test_the_only_example_of_a_label_is_not_answered_without_itself():
    _, among = kernels()
    lone = np.array([0, 0, 0, 1, 1, 1, 2])
    assert np.isnan(Ridge(among, np.arange(7), lone, 3).leave_one_out()).any(axis=1).tolist() == [False] * 6 + [True]


def test_the_likeliest_answer_is_that_of_scikit_learn():
    asked, among = kernels(texts=40)
    rows = np.linalg.cholesky(np.block([[among + 1e-9 * np.eye(7), asked.T], [asked, np.eye(40)]])[:7, :7] + 1)
    weights = 7 / 3 / np.bincount(LABELS)
    model = LogisticRegression(
        C=1 / LIKELIHOOD_PENALTY, class_weight=dict(enumerate(weights)), fit_intercept=False, tol=1e-8, max_iter=10_000
    ).fit(rows, LABELS)
    asked_rows = np.linalg.solve(rows, (asked + 1).T).T
    found = Logistic(among, np.arange(len(LABELS)), LABELS, 3).probabilities(asked)
    np.testing.assert_allclose(found, model.predict_proba(asked_rows), atol=0.02)


def test_a_likelihood_is_judged_without_an_example_as_squared_errors_are():
    _, among = kernels()
    both = [kind(among, np.arange(len(LABELS)), LABELS, 3) for kind in (Ridge, Logistic)]
    np.testing.assert_array_equal(both[0].leave_one_out(), both[1].leave_one_out())
    assert np.abs(both[0].probabilities(among) - both[1].probabilities(among)).max() > 0.01
