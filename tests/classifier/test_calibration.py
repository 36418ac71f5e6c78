import numpy as np
import pytest

from manymetrics.classifier.calibration import (
    Calibration,
    CalibrationCase,
    CalibrationEpisode,
    calibrate,
    fit_leave_one_out,
    learn_calibration,
    share_kept,
)
from manymetrics.errors import DataError

CASE = CalibrationCase(fell_back=False, examples_per_label=5.0, leave_one_out=0.0)


def planted(count, temperature, seed):
    """Answers whose truth was drawn from their own probabilities, shown as if raised to 1 / temperature too little."""
    rng = np.random.default_rng(seed)
    logits = np.exp(2 * rng.standard_normal((count, 4)))
    true = logits / logits.sum(axis=1, keepdims=True)
    answers = np.array([rng.choice(4, p=row) for row in true])
    shown = true**temperature
    return shown / shown.sum(axis=1, keepdims=True), answers


def test_a_planted_temperature_is_learned():
    episodes = [CalibrationEpisode(CASE, *planted(200, 0.5, seed), np.ones(200)) for seed in range(20)]
    assert learn_calibration(episodes).temperature(CASE) == pytest.approx(0.5, rel=0.1)


def test_a_tasks_own_examples_find_the_planted_temperature_and_few_of_them_hardly_move_it():
    probabilities, answers = planted(2000, 0.5, 0)
    assert fit_leave_one_out(probabilities, answers) == pytest.approx(np.log(2), abs=0.15)
    assert abs(fit_leave_one_out(probabilities[:5], answers[:5])) < 0.7
    assert fit_leave_one_out(np.full((3, 2), np.nan), np.zeros(3, dtype=int)) == pytest.approx(0)


def test_calibrated_rows_sum_to_one_and_keep_their_order():
    probabilities, _ = planted(50, 0.5, 1)
    found = calibrate(probabilities, 1 / 3, np.linspace(0.1, 1, 50))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found.argsort(axis=1) == probabilities.argsort(axis=1)).all()


def test_an_answer_fades_with_its_odds_of_being_in_scope():
    one = np.array([[0.98, 0.02]])
    found = [calibrate(one, 1.0, share_kept(np.array([odds])))[0, 0] for odds in (5.0, 0.0, -1.5, -9.0)]
    assert found == sorted(found, reverse=True)
    assert found[0] == pytest.approx(0.98, abs=0.01)
    assert found[2] == pytest.approx(0.74)  # half of the answer is left
    assert found[3] == pytest.approx(0.5, abs=0.01)


def test_more_examples_a_label_may_lower_the_temperature():
    calibration = Calibration(0.0, 0.0, 0.5, 0.0)
    assert calibration.temperature(CalibrationCase(False, 4.0, 0.0)) == pytest.approx(0.5)


def test_no_calibration_that_can_be_made_gives_probabilities_that_are_not_finite():
    for offset in (-99.0, 99.0):
        temperature = Calibration(offset, offset, offset, offset).temperature(CalibrationCase(True, 1e6, 1.5))
        found = calibrate(np.array([[1.0, 0.0], [0.5, 0.5]]), temperature, np.ones(2))
        np.testing.assert_allclose(found.sum(axis=1), 1)
    for broken in (np.nan, np.inf, 1e308):
        with pytest.raises(DataError, match="The calibration has weights that cannot be used"):
            Calibration(offset=broken)
