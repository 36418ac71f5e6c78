import numpy as np

from manymetrics.weigh.ridge import PENALTY, TEMPERATURE, Ridge

LABELS = np.array([0, 0, 0, 1, 1, 2, 2])


def kernels(texts=4, seed=0):
    """Cosines of some random directions with those of the examples, and of the examples with one another."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((len(LABELS) + texts, 5))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    examples = rows[: len(LABELS)]
    return rows[len(LABELS) :] @ examples.T, examples @ examples.T


def test_the_answer_is_that_of_kernel_ridge_regression():
    asked, among = kernels()
    found = Ridge(among, np.arange(len(LABELS)), LABELS, 3).probabilities(asked)
    truth = np.eye(3)[LABELS]
    offset = truth.mean(axis=0)
    weights = np.linalg.solve(among + 1 + PENALTY * np.eye(len(LABELS)), truth - offset)
    logits = TEMPERATURE * ((asked + 1) @ weights + offset)
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_what_is_left_out_had_no_part_in_its_answer():
    _, among = kernels()
    places, truth = np.arange(len(LABELS)), np.eye(3)[LABELS]
    found = Ridge(among, places, LABELS, 3).leave_one_out()
    offset = truth.mean(axis=0)
    for row in places:
        kept = np.delete(places, row)
        regularised = among[np.ix_(kept, kept)] + 1 + PENALTY * np.eye(len(kept))
        scores = (among[row, kept] + 1) @ np.linalg.solve(regularised, (truth - offset)[kept]) + offset
        expected = np.exp(TEMPERATURE * scores) / np.exp(TEMPERATURE * scores).sum()
        np.testing.assert_allclose(found[row], expected, atol=0.01)


def test_the_only_example_of_a_label_is_not_answered_without_itself():
    _, among = kernels()
    lone = np.array([0, 0, 0, 1, 1, 1, 2])
    assert np.isnan(Ridge(among, np.arange(7), lone, 3).leave_one_out()).any(axis=1).tolist() == [False] * 6 + [True]
