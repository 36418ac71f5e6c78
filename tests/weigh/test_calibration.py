import numpy as np
import pytest

from manymetrics.weigh.calibration import Calibration, Case, Lesson, calibrate, faith, learn_calibration, own_wish
from manymetrics.weigh.scope import Scope, against_counter_examples, describe, learn_scope


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def planted(count, sharpness, seed):
    """Answers whose truth was drawn from their own probabilities, shown too soft."""
    rng = np.random.default_rng(seed)
    true = softmax(2 * rng.standard_normal((count, 4)))
    answers = np.array([rng.choice(4, p=row) for row in true])
    shown = true ** (1 / sharpness)
    return shown / shown.sum(axis=1, keepdims=True), answers


def test_a_planted_sharpness_is_learned():
    lessons = []
    for seed in range(20):
        chances, answers = planted(200, 2.0, seed)
        lessons.append(Lesson(Case(False, 5.0, 0.0), chances, answers, np.ones(200)))
    found = learn_calibration(lessons)
    assert found.sharpness(Case(False, 5.0, 0.0)) == pytest.approx(2, rel=0.1)


def test_the_shots_wish_for_what_was_planted_and_few_of_them_wish_less():
    chances, answers = planted(2000, 2.0, 0)
    assert own_wish(chances, answers) == pytest.approx(np.log(2), abs=0.15)
    assert abs(own_wish(chances[:5], answers[:5])) < 0.7
    assert own_wish(np.full((3, 2), np.nan), np.zeros(3, dtype=int)) == pytest.approx(0)


def test_calibrated_rows_sum_to_one_and_keep_their_order():
    chances, _ = planted(50, 2.0, 1)
    found = calibrate(chances, 3.0, np.linspace(0.1, 1, 50))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found.argsort(axis=1) == chances.argsort(axis=1)).all()


def test_an_answer_fades_with_its_odds_of_being_in_scope():
    one = np.array([[0.98, 0.02]])
    found = [calibrate(one, 1.0, faith(np.array([odds])))[0, 0] for odds in (5.0, 0.0, -3.0, -9.0)]
    assert found == sorted(found, reverse=True)
    assert found[0] == pytest.approx(0.98, abs=0.01)
    assert found[3] == pytest.approx(0.5, abs=0.01)


def test_more_examples_a_label_may_sharpen():
    calibration = Calibration(0.0, 0.0, 0.5, 0.0)
    assert calibration.sharpness(Case(False, 4.0, 0.0)) == pytest.approx(2.0)


def test_planted_strangers_are_told_apart():
    rng = np.random.default_rng(0)
    usual = np.array([0.5, 0.3])

    def texts(level, count=60):
        likest = np.clip(level + 0.1 * rng.standard_normal((count, 2)), -1, 1)
        return describe(likest, usual, rng.integers(1, 20, count), 25)

    scope = learn_scope([texts(0.7) for _ in range(5)], [texts(0.3) for _ in range(8)])
    assert (scope.log_odds(texts(0.7)) > 0).mean() > 0.9
    assert (scope.log_odds(texts(0.3)) < 0).mean() > 0.9
    assert isinstance(scope, Scope)


def test_a_text_nearer_to_a_counter_example_loses_its_odds():
    likest, counter = np.array([[0.5, 0.5], [0.9, 0.9]]), np.array([[1.0, 1.0], [0.1, 0.1]])
    odds = against_counter_examples(np.array([2.0, 2.0]), likest, counter)
    assert odds[0] < -5
    assert odds[1] == 2
