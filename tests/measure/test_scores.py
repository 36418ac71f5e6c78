import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.metrics import balanced_accuracy_score, f1_score

from manymetrics.measure.scores import accuracy, balanced_accuracy, log_evidence, macro_f1, mean_log_likelihood

ANSWERS, LABELS = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 0, 0, 1, 2])
NUMBERS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)


def test_known_answers():
    assert accuracy(ANSWERS, LABELS) == pytest.approx(4 / 6)
    assert balanced_accuracy(ANSWERS, LABELS) == pytest.approx((3 / 4 + 1 + 0) / 3)
    assert macro_f1(ANSWERS, LABELS) == pytest.approx((6 / 7 + 2 / 4 + 0) / 3)
    logs = np.log([[0.5, 0.5], [0.2, 0.8]])
    assert mean_log_likelihood(logs, np.array([0, 1])) == pytest.approx(np.log(0.4) / 2)


@pytest.mark.filterwarnings("ignore:y_pred contains classes", "ignore:A single label was found")
@given(NUMBERS)
def test_scores_agree_with_scikit_learn(pairs):
    answers, labels = np.array(pairs).T
    assert balanced_accuracy(answers, labels) == pytest.approx(balanced_accuracy_score(labels, answers))
    assert macro_f1(answers, labels) == pytest.approx(f1_score(labels, answers, average="macro", zero_division=0))


def evidence_by_hand(features, target, a, b):
    """log N(target | 0, I/b + F F'/a): what the evidence of a linear model is, before any algebra."""
    n = len(target)
    cover = np.eye(n) / b + features @ features.T / a
    _, size = np.linalg.slogdet(cover)
    return -0.5 * (n * np.log(2 * np.pi) + size + target @ np.linalg.solve(cover, target))


def test_the_evidence_is_the_largest_over_both_precisions():
    rng = np.random.default_rng(0)
    labels = np.arange(30) % 2
    features = rng.standard_normal((30, 4)) + labels[:, None]
    best = []
    for label in (0, 1):
        target = (labels == label).astype(float)
        solved = minimize(lambda logs, y=target: -evidence_by_hand(features, y, *np.exp(logs)), [0.0, 0.0])
        best.append(-solved.fun / 30)
    assert log_evidence(features, labels, classes=2) == pytest.approx(np.mean(best), abs=1e-4)


@pytest.mark.parametrize("width", [3, 80])
def test_features_that_tell_the_labels_have_more_evidence(width):
    rng = np.random.default_rng(1)
    labels = np.arange(60) % 3
    noise = rng.standard_normal((60, width)).astype(np.float32)
    telling = noise.copy()
    telling[:, :3] += 5 * np.eye(3, dtype=np.float32)[labels]
    assert log_evidence(telling, labels, classes=3) > log_evidence(noise, labels, classes=3) + 0.3
