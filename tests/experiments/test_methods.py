"""Methods on one metric, and what a method may see."""

import numpy as np
from experiments.methods import blind, by_metric, frozen_prototypes

from manymetrics.encode.encoder import normalize
from manymetrics.encode.settings import PROTOTYPICAL
from manymetrics.specialize import Metric


def test_a_metric_predicts_the_label_of_the_nearest_prototype(tiny_bank, vectors):
    task = tiny_bank["colour-0"]
    shots, texts = (normalize(vectors.encode(part.texts)) for part in (task.train, task.test))
    means = [shots[np.array(task.train.labels) == label].sum(axis=0) for label in task.labels]
    nearest = (texts @ normalize(np.stack(means)).T).argmax(axis=1)
    metric = Metric("words", "frozen", vectors, PROTOTYPICAL, 9.0)
    assert by_metric(metric)(task) == [task.labels[index] for index in nearest]
    assert frozen_prototypes(vectors)(task) == by_metric(metric)(task)
    assert frozen_prototypes(vectors, names=True)(task) == by_metric(metric, names=True)(task)


def test_blinded_tasks_do_not_contain_their_test_labels(tiny_bank):
    for task, blinded in zip(tiny_bank, blind(tiny_bank), strict=True):
        assert blinded.test.texts == task.test.texts
        assert set(blinded.test.labels) == {task.labels[0]}
        assert blinded.train == task.train
