import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from manymetrics.errors import InputError
from manymetrics.weigh.vector_classifier import VectorClassifier


@parametrize_with_checks([VectorClassifier()])
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


def test_rows_in_any_order_give_the_same_bits():
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((30, 5)), np.arange(30) % 3
    order = rng.permutation(30)
    one, other = VectorClassifier().fit(rows, labels), VectorClassifier().fit(rows[order], labels[order])
    asked = rng.standard_normal((8, 5))
    assert (one.predict_proba(asked) == other.predict_proba(asked)).all()


def test_directions_are_told_apart_from_two_examples_each():
    rows = np.array([[5, 0.1], [3, -0.1], [0.1, 4], [-0.1, 2]])
    classifier = VectorClassifier().fit(rows, ["right", "right", "up", "up"])
    assert classifier.predict([[9, 0], [0, 9]]).tolist() == ["right", "up"]
    assert classifier.mix_.weights.sum() == pytest.approx(1)


def test_a_temperature_that_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="The temperature must be above 0"):
        VectorClassifier(temperature=0).fit([[0.0], [1.0]], [0, 1])
