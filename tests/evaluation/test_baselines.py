"""The baselines of the demonstration: what each answers, and what each may see."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from manymetrics.encode.encoder import unit_rows
from manymetrics.encode.settings import PROTOTYPICAL
from manymetrics.engine import Engine
from manymetrics.evaluation.baselines import (
    SINGLE_METRIC_WIDTH,
    by_metric,
    everything_in_one,
    frozen_prototypes,
    frozen_regression,
    likeliest,
    majority,
    shots_of,
    single_task_network,
    train_one_metric,
)
from manymetrics.evaluation.targets import answer_targets, blind
from manymetrics.specialize import SimilarityMetric
from manymetrics.start import prepare
from manymetrics.values import Examples, Task


def test_the_majority_is_that_of_the_test_texts():
    task = Task("t", Examples(("1", "2", "3"), ("a", "b", "b")), test=Examples(("4", "5", "6"), ("a", "a", "b")))
    assert majority(task) == ["a", "a", "a"]


def test_the_likeliest_label_is_answered_and_of_equals_the_first():
    task = Task("t", Examples(("1", "2"), ("a", "b")))
    assert likeliest(task, np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])) == ["b", "a", "a"]


def test_a_metric_answers_with_the_nearest_mean_example(tiny_bank, vectors):
    task = tiny_bank["colour-0"]
    shots, texts = (unit_rows(vectors.encode(part.texts)) for part in (task.train, task.test))
    means = [shots[np.array(task.train.labels) == label].sum(axis=0) for label in task.labels]
    nearest = (texts @ unit_rows(np.stack(means)).T).argmax(axis=1)
    metric = SimilarityMetric("words", "frozen", vectors, PROTOTYPICAL, 9.0)
    assert by_metric(metric)(task) == [task.labels[place] for place in nearest]


def test_the_name_of_a_label_can_be_one_more_shot_of_it():
    task = Task("t", Examples(("one", "two"), ("order_status", "cancel")))
    assert shots_of(task, names=False).texts == ("one", "two")
    named = shots_of(task, names=True)
    assert (named.texts, named.labels.tolist()) == (("one", "two", "cancel", "order status"), [1, 0, 0, 1])


def test_an_encoder_as_it_is_answers_with_the_nearest_mean_shot_or_by_regression(tiny_bank, vectors):
    task = tiny_bank["colour-0"]
    metric = SimilarityMetric("words", "frozen", vectors, PROTOTYPICAL, 3.0)
    assert frozen_prototypes(vectors)(task) == by_metric(metric)(task)
    assert frozen_prototypes(vectors, names=True)(task) == by_metric(metric, names=True)(task)
    rows, labels = unit_rows(vectors.encode(task.train.texts)), list(task.train.labels)
    for balanced in (False, True):
        model = LogisticRegression(C=10.0, class_weight="balanced" if balanced else None, max_iter=1000)
        model.fit(rows, labels)
        expected = model.predict(unit_rows(vectors.encode(task.test.texts))).tolist()
        assert frozen_regression(vectors, balanced=balanced)(task) == expected


def test_a_network_of_the_shots_alone_learns_the_telling_word(make_bank, vectors):
    pytest.importorskip("torch")
    (task, _) = make_bank(1, size=20)
    method = single_task_network(vectors, seed=0)
    assert answer_targets(method, make_bank(1, size=20).only([task.name]))[0].accuracy > 0.6, "a third is chance"
    assert method(task) == method(task)


def test_one_metric_learns_from_every_task_but_those_held_out(tiny_bank, vectors, tiny_recipe):
    pytest.importorskip("torch")
    learning = prepare(tiny_bank, vectors, {})
    metric = train_one_metric(learning, Engine(learning.material), tiny_recipe, held_out=["animal-1"])
    assert set(metric.tasks) == set(tiny_bank.names) - {"animal-1"}
    assert metric.encoder.width == SINGLE_METRIC_WIDTH
    assert list(everything_in_one(tiny_bank.names)) == [tiny_bank.names]


def test_struck_out_labels_tell_nothing(tiny_bank):
    blinded = blind(tiny_bank)
    for task, struck in zip(tiny_bank, blinded, strict=True):
        assert struck.test.texts == task.test.texts
        assert set(struck.test.labels) == {task.labels[0]}
        assert struck.train == task.train
