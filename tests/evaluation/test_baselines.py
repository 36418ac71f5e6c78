"""Baselines: each learns what it can be seen to learn, and says what it lacks."""

from dataclasses import replace

import numpy as np
import pytest

from manymetrics.encode import random_vectors
from manymetrics.encode.reading import read_bank
from manymetrics.encode.settings import Convolution, Training
from manymetrics.engine import Engine
from manymetrics.errors import MissingExtra
from manymetrics.evaluation import baselines
from manymetrics.evaluation.baselines.alone import LETTERS, WORDS
from manymetrics.evaluation.targets import answer_targets, blind
from manymetrics.measure import train_task_models
from manymetrics.values import Examples, Task, TaskBank


@pytest.fixture(scope="module")
def read(tiny_bank, vectors):
    return read_bank(tiny_bank, vectors)


@pytest.fixture(scope="module")
def work(read):
    return Engine(read)


def mean_accuracy(method, targets):
    return np.mean([one.accuracy for one in answer_targets(method, targets)])


@pytest.mark.parametrize(
    "make",
    [
        baselines.single_task_fasttext,
        baselines.frozen_prototypes,
        baselines.frozen_regression,
        lambda _: baselines.tfidf_regression(WORDS),
        lambda _: baselines.tfidf_regression(LETTERS),
    ],
    ids=["fasttext", "prototypes", "regression", "words", "letters"],
)
def test_methods_of_the_shots_alone_find_the_telling_word(make, make_bank):
    vectors = random_vectors(rows=2048, dimensions=64)
    assert mean_accuracy(make(vectors), make_bank(1, size=40)) > 0.6, "a third is chance"


def test_fasttext_is_the_same_for_a_seed(tiny_bank, vectors):
    method = baselines.single_task_fasttext(vectors, seed=3)
    first, again = (answer_targets(method, tiny_bank) for _ in range(2))
    assert all((one.answers == two.answers).all() for one, two in zip(first, again, strict=True))


def test_texts_without_words_are_answered_too():
    empty = Task("empty", Examples(("?", "!"), ("a", "b")), test=Examples(("...",), ("a",)))
    assert baselines.tfidf_regression(WORDS)(empty) == ["a"]


def test_one_network_for_all_tasks_carries_over_to_a_task_of_its_family(read, work, tiny_recipe, make_bank, vectors):
    pytest.importorskip("torch")
    together = baselines.train_together(read, work, replace(tiny_recipe, metric_steps=80))
    targets = TaskBank(tuple(make_bank(3)[name] for name in ("colour-2", "animal-2")))
    assert mean_accuracy(baselines.fine_tuned(together, vectors), targets) > 0.6


def test_each_head_sees_its_own_labels_alone(read, vectors):
    pytest.importorskip("torch")
    from manymetrics.encode.network import ConvolutionNetwork
    from manymetrics.encode.objectives import ManyHeads

    rng = np.random.default_rng(0)
    tasks = [task.train for task in read]
    network = ConvolutionNetwork(vectors.table, Convolution(3, 8), rng)
    objective = ManyHeads(
        network, tasks, tasks, classes=[3] * len(tasks), convolution=Convolution(3, 8), training=Training(batch=16)
    )
    logits = objective.logits(network.forward(tasks[1].tokens), 1).detach().numpy()
    assert np.isfinite(logits[:, 3:6]).all()
    assert np.isneginf(np.delete(logits, [3, 4, 5], axis=1)).all()
    assert objective.score() == pytest.approx(-np.log(3)), "heads that start at zero find three labels equally likely"
    assert [head.shape for head, _ in objective.heads()] == [(8, 3)] * len(tasks)
    loss = objective.loss(rng)
    loss.backward()
    assert np.isfinite(objective.head.grad.numpy()).all()


def test_fine_tuning_leaves_the_encoder_as_it_is(read, vectors):
    pytest.importorskip("torch")
    from manymetrics.encode.fitting import fit_softmax, fit_together

    rng, shape, training = np.random.default_rng(0), Convolution(3, 8), Training(steps=10, batch=8)
    tasks = [task.train for task in read]
    fitted = fit_together(
        vectors.table, tasks, tasks, classes=[3] * len(tasks), convolution=shape, training=training, rng=rng
    )
    before = fitted.encoder.filters.copy()
    tuned = fit_softmax(
        fitted.encoder, tasks[0], fitted.heads[0], classes=3, convolution=shape, training=training, rng=rng
    )
    assert (tuned.encoder.filters == before).all()
    assert not np.allclose(tuned.weights, fitted.heads[0][0])
    assert np.abs(tuned.weights - fitted.heads[0][0]).max() < 0.02, "ten steps from where it began, not from zero"


def test_single_task_models_are_combined(read, work, tiny_recipe, make_bank):
    pytest.importorskip("torch")
    longer = replace(tiny_recipe, task_steps=200)
    models = train_task_models(read, work, **longer.task_training(), seed=0)
    targets = TaskBank(tuple(make_bank(3)[name] for name in ("colour-2", "animal-2")))
    answered = answer_targets(baselines.by_task_models(models, read), targets)
    assert [len(one.answers) for one in answered] == [12, 12]
    assert np.mean([one.accuracy for one in answered]) > 1 / 3


def test_words_of_all_tasks_answer_a_task_that_shares_its_labels(make_bank):
    bank = TaskBank(tuple(task for task in make_bank(4) if task.name.startswith("colour")))
    method = baselines.pooled_tfidf(bank.only(bank.names[:3]))
    assert mean_accuracy(method, bank.only(bank.names[3:])) > 0.9


def test_struck_out_labels_tell_nothing(tiny_bank):
    blinded = blind(tiny_bank)
    for task, struck in zip(tiny_bank, blinded, strict=True):
        assert struck.test.texts == task.test.texts
        assert set(struck.test.labels) == {task.labels[0]}
        assert struck.train == task.train


@pytest.mark.parametrize("method", [baselines.sentence_regression, baselines.setfit])
def test_peers_say_how_to_install_them(method, monkeypatch):
    from manymetrics.evaluation.baselines import peers

    monkeypatch.setattr(peers, "WHEEL", "no-such-wheel")
    peers._load_encoder.cache_clear()
    with pytest.raises(MissingExtra, match=r'is not installed. Install it with: pip install "manymetrics\[peers\]"'):
        method()
