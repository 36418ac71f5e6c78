"""Temperatures of planted logits: found, shrunk towards the defaults, and never extrapolated."""

import numpy as np
import pytest
from scipy.special import softmax

from manymetrics.classifier.confidence import (
    HALF_AT,
    MAX_TEMPERATURE,
    MIN_TEMPERATURE,
    PRIOR_TEMPERATURE,
    Calibration,
    calibrate,
    fit_own_temperature,
)
from manymetrics.classifier.learn_scope import learn_calibration
from manymetrics.errors import DataError

IN_SCOPE = 100.0  # log-odds


def planted(count, temperature, seed, classes=4):
    """Logits, and labels that were drawn from their softmax at a temperature."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.standard_normal((count, classes))
    probabilities = softmax(logits / temperature, axis=1)
    return logits, np.array([rng.choice(classes, p=row) for row in probabilities])


def episodes(temperature, count, classes=4):
    return [(*planted(300, temperature, seed, classes), 1.0) for seed in range(count)]


@pytest.mark.parametrize("temperature", [0.4, 1.0, 2.0])
def test_the_planted_temperature_of_many_tasks_is_learned(temperature):
    found = learn_calibration(episodes(temperature, 60), 60)
    assert found.temperature(4, 1.0) == pytest.approx(temperature, rel=0.15)


def test_one_task_hardly_moves_the_defaults_and_many_move_them_all_the_way():
    default = Calibration().temperature(4, 1.0)
    moved = [abs(np.log(learn_calibration(episodes(3.0, 8), n_tasks).temperature(4, 1.0) / default))
             for n_tasks in (0, 1, 4, 1000)]  # fmt: skip
    assert moved == sorted(moved)
    assert moved[-1] == pytest.approx(np.log(3.0 / default), abs=0.2)


def test_more_labels_than_were_seen_have_the_temperature_of_the_most_that_were():
    learned = learn_calibration([*episodes(0.5, 10, classes=3), *episodes(0.3, 10, classes=12)], 20)
    assert learned.max_classes == 12
    assert learned.temperature(77, 1.0) == learned.temperature(12, 1.0)
    assert learned.temperature(12, 1.0) < learned.temperature(3, 1.0)
    assert Calibration().temperature(1000, 1.0) == Calibration().temperature(30, 1.0)


def test_left_out_shots_find_the_planted_temperature_and_few_of_them_stay_near_the_prior():
    logits, labels = planted(2000, 2.0, 0)
    assert fit_own_temperature(logits, labels) == pytest.approx(2.0, rel=0.15)
    assert fit_own_temperature(logits[:3], labels[:3]) == pytest.approx(PRIOR_TEMPERATURE, rel=0.6)
    assert fit_own_temperature(logits[:0], labels[:0]) == pytest.approx(PRIOR_TEMPERATURE, rel=0.05)


def test_calibrated_rows_sum_to_one_and_keep_their_most_probable_label():
    logits, _ = planted(50, 0.5, 1)
    found = calibrate(logits, 1 / 3, np.linspace(-10, 10, 50))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found.argmax(axis=1) == logits.argmax(axis=1)).all()


def test_in_scope_the_answer_is_the_softmax_and_out_of_scope_it_is_uniform():
    logits = np.array([[4.0, 0.0]])
    found = [calibrate(logits, 1.0, np.array([odds]))[0, 0] for odds in (IN_SCOPE, 0.0, -HALF_AT, -20.0)]
    assert found == sorted(found, reverse=True)
    assert found[0] == pytest.approx(softmax(logits)[0, 0])
    assert found[2] == pytest.approx((softmax(logits)[0, 0] + 0.5) / 2)
    assert found[3] == pytest.approx(0.5, abs=0.01)


def test_no_calibration_that_can_be_made_leaves_the_range_of_temperatures():
    for coefficient in (-99.0, 99.0):
        for own in (0.1, 5.0):
            found = Calibration(coefficient, coefficient, coefficient).temperature(150, own)
            assert MIN_TEMPERATURE <= found <= MAX_TEMPERATURE
            assert np.isfinite(calibrate(np.array([[1e3, -1e3]]), found, np.zeros(1))).all()


@pytest.mark.parametrize("broken", [{"intercept": np.nan}, {"own": np.inf}, {"classes": 1e308}, {"max_classes": 1}])
def test_coefficients_that_cannot_be_used_are_refused(broken):
    with pytest.raises(DataError, match="The calibration has coefficients that cannot be used"):
        Calibration(**broken)
