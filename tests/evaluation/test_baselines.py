"""The baselines: their predictions, and what they may see."""

import pytest
from sklearn.linear_model import LogisticRegression

from manymetrics.encode.encoder import normalize
from manymetrics.evaluation.baselines import frozen_regression, majority, shots_of
from manymetrics.values import Examples, Task


def test_the_majority_is_that_of_the_test_texts():
    task = Task("t", Examples(("1", "2", "3"), ("a", "b", "b")), test=Examples(("4", "5", "6"), ("a", "a", "b")))
    assert majority(task) == ["a", "a", "a"]


def test_the_name_of_a_label_can_be_one_more_example_of_it():
    task = Task("t", Examples(("one", "two"), ("order_status", "cancel")))
    assert shots_of(task, names=False).texts == ("one", "two")
    named = shots_of(task, names=True)
    assert (named.texts, named.numbers.tolist()) == (("one", "two", "cancel", "order status"), [1, 0, 0, 1])


@pytest.mark.parametrize("balanced", [False, True])
def test_the_regression_is_scikit_learns(tiny_bank, vectors, balanced):
    task = tiny_bank["colour-0"]
    model = LogisticRegression(C=10.0, class_weight="balanced" if balanced else None, max_iter=1000)
    model.fit(normalize(vectors.encode(task.train.texts)), list(task.train.labels))
    expected = model.predict(normalize(vectors.encode(task.test.texts))).tolist()
    assert frozen_regression(vectors, balanced=balanced)(task) == expected
