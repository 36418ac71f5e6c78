"""The values that say how far an answer can be relied on: what is in scope for a task, and calibrated probabilities."""

import numpy as np
import pytest
from scipy.special import softmax

from manymetrics.classifier.confidence import (
    HALF_AT,
    MAX_TEMPERATURE,
    MIN_TEMPERATURE,
    Calibration,
    Scope,
    TaskScope,
    calibrate,
    lower_bound,
)
from manymetrics.encode import CharNgramEncoder, EmbeddedTexts
from manymetrics.errors import DataError

EXAMPLES = ["lamp on", "lamp off", "the music"]


def test_the_features_of_a_text_are_its_nearest_examples_and_sizes(vectors):
    letters = CharNgramEncoder.from_texts(EXAMPLES, buckets=2**10)
    scope = TaskScope(Scope(), [vectors, letters], EmbeddedTexts(EXAMPLES))
    found = scope.features(EmbeddedTexts(["lamp on", "a b c"]))
    assert found.shape == (2, 6)
    np.testing.assert_allclose(
        scope.log_odds(EmbeddedTexts(["lamp on", "a b c"])), Scope().coefficients[0] + found @ Scope().coefficients[1:]
    )
    np.testing.assert_allclose(found[0, :2], 1, atol=1e-5)
    usual = found[:, :2] - found[:, 2:4]
    np.testing.assert_allclose(usual[0], usual[1], atol=1e-6)
    np.testing.assert_allclose(found[:, 4:], np.log([[2, 3], [3, 3]]))


def test_copies_of_examples_do_not_change_what_is_in_scope(vectors):
    asked = EmbeddedTexts(["lamp on", "a lamp", "a b c", ""])
    plain = TaskScope(Scope(), [vectors], EmbeddedTexts(EXAMPLES))
    copied = TaskScope(Scope(), [vectors], EmbeddedTexts([*EXAMPLES, *EXAMPLES, "LAMP  on"]))
    np.testing.assert_array_equal(copied.log_odds(asked), plain.log_odds(asked))
    np.testing.assert_array_equal(copied.log_odds(), plain.log_odds())


def test_the_bound_is_students():
    found = lower_bound(np.array([1.0, 2.0, 3.0]), 0.05)
    assert found == pytest.approx(2 - 2.919985580355516 * np.sqrt(1 + 1 / 3))  # t at 95 % with two degrees of freedom


def test_calibrated_rows_sum_to_one_and_keep_their_most_probable_label():
    logits = 2 * np.random.default_rng(1).standard_normal((50, 4))
    found = calibrate(logits, 1 / 3, np.linspace(-10, 10, 50))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found.argmax(axis=1) == logits.argmax(axis=1)).all()


def test_in_scope_the_answer_is_the_softmax_and_out_of_scope_it_is_uniform():
    logits = np.array([[4.0, 0.0]])
    found = [calibrate(logits, 1.0, np.array([odds]))[0, 0] for odds in (100.0, 0.0, -HALF_AT, -20.0)]
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


def test_coefficients_that_cannot_be_used_are_refused():
    for coefficients in ((0.0,) * 6, (np.nan,) * 7, (1e308,) * 7, (0.0,) * 6 + (np.inf,)):
        with pytest.raises(DataError, match="The scope model has coefficients that cannot be used"):
            Scope(coefficients)
    for changes in ({"intercept": np.nan}, {"own": np.inf}, {"classes": 1e308}, {"max_classes": 1}):
        with pytest.raises(DataError, match="The calibration has coefficients that cannot be used"):
            Calibration(**changes)
