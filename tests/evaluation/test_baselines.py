"""The baselines: their predictions, and what they may see."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from manymetrics.encode.encoder import normalize
from manymetrics.encode.settings import PROTOTYPICAL
from manymetrics.evaluation.baselines import (
    by_metric,
    frozen_prototypes,
    frozen_regression,
    majority,
    predicted_labels,
    shots_of,
)
from manymetrics.evaluation.targets import blind
from manymetrics.specialize import Metric
from manymetrics.values import Examples, Task


def test_the_majority_is_that_of_the_test_texts_and_of_equally_probable_labels_the_first_is_predicted():
    task = Task("t", Examples(("1", "2", "3"), ("a", "b", "b")), test=Examples(("4", "5", "6"), ("a", "a", "b")))
    assert majority(task) == ["a", "a", "a"]
    assert predicted_labels(task, np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])) == ["b", "a", "a"]


def test_a_metric_predicts_the_label_of_the_nearest_prototype(tiny_bank, vectors):
    task = tiny_bank["colour-0"]
    shots, texts = (normalize(vectors.encode(part.texts)) for part in (task.train, task.test))
    means = [shots[np.array(task.train.labels) == label].sum(axis=0) for label in task.labels]
    nearest = (texts @ normalize(np.stack(means)).T).argmax(axis=1)
    metric = Metric("words", "frozen", vectors, PROTOTYPICAL, 9.0)
    assert by_metric(metric)(task) == [task.labels[index] for index in nearest]
    assert frozen_prototypes(vectors)(task) == by_metric(metric)(task)
    assert frozen_prototypes(vectors, names=True)(task) == by_metric(metric, names=True)(task)


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


def test_blinded_tasks_do_not_contain_their_test_labels(tiny_bank):
    for task, blinded in zip(tiny_bank, blind(tiny_bank), strict=True):
        assert blinded.test.texts == task.test.texts
        assert set(blinded.test.labels) == {task.labels[0]}
        assert blinded.train == task.train
