"""Banks that teach little or the wrong thing: classifiers stay calibrated, and no worse than without the bank."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import manymetrics as mm
from manymetrics.collect.bank.sample import planted_family, sample_bank
from manymetrics.encode import list_encoders
from manymetrics.evaluation.baselines import frozen_regression
from manymetrics.evaluation.targets import answer

if not list_encoders()["bge-small"]:
    pytest.skip("the sentence encoder bge-small is not in the cache", allow_module_level=True)

N_TARGETS, N_TEXTS = 6, 60


@pytest.fixture(scope="module")
def banks():
    """The tasks to learn from, and targets with few test texts."""
    past, new = sample_bank(0).split_off()
    targets = [replace(task, test=task.test.take(range(N_TEXTS))) for task in new]
    return past, mm.TaskBank(tuple(targets[:N_TARGETS]))


def learn(tasks):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of training, and of what clusters cannot be told apart
        return mm.learn_metrics(mm.TaskBank(tuple(tasks)), mm.Recipe(projection_steps=400))


def answers(model, targets):
    """Over all targets: accuracy, mean confidence, and the share of texts in scope that `reject=True` loses."""
    correct, confidence, lost = [], [], []
    for task in targets:
        answered = model.adapt(task.train.texts, task.train.labels, reject=True).answer(task.test.texts)
        labels = np.array(task.labels)[answered.probabilities.argmax(axis=1)]
        correct.append(np.mean(labels == np.array(task.test.labels)))
        confidence.append(answered.probabilities.max(axis=1).mean())
        lost.append(answered.rejected.mean())
    return np.mean(correct), np.mean(confidence), np.mean(lost)


def frozen_accuracy(model, targets):
    encoder = next(metric.encoder for metric in model.metrics if metric.kind == "frozen")
    answered = [answer(frozen_regression(encoder, balanced=True), task) for task in targets]
    return np.mean([target.accuracy for target in answered])


@pytest.mark.parametrize(("n_tasks", "one_source"), [(2, False), (3, False), (5, False), (8, False), (10, True)])
def test_small_banks_and_those_of_one_source_are_calibrated_and_keep_texts_in_scope(banks, n_tasks, one_source):
    past, targets = banks
    tasks = [replace(task, source="one") if one_source else task for task in past.tasks[:n_tasks]]
    accuracy, confidence, lost = answers(learn(tasks), targets)
    assert accuracy > 0.6
    assert abs(confidence - accuracy) < 0.1
    assert lost < 0.35


def test_a_bank_whose_labels_are_assigned_at_random_does_not_hurt(banks):
    past, targets = banks
    rng = np.random.default_rng(0)

    def shuffled(examples):
        return mm.Examples(examples.texts, tuple(rng.permutation(examples.labels).tolist()))

    noise = [replace(task, train=shuffled(task.train), valid=shuffled(task.valid)) for task in past.tasks[:10]]
    model = learn(noise)
    assert answers(model, targets)[0] > frozen_accuracy(model, targets) - 0.02


def test_a_bank_of_reviews_does_not_hurt_tasks_of_other_families(banks):
    past, targets = banks
    model = learn(task for task in past if planted_family(task.name) == "reviews")
    others = mm.TaskBank(tuple(task for task in targets if planted_family(task.name) != "reviews"))
    accuracy, confidence, lost = answers(model, others)
    assert accuracy > frozen_accuracy(model, others) - 0.02
    assert abs(confidence - accuracy) < 0.15
    assert lost < 0.35
