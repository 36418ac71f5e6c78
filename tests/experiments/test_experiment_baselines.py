"""Baselines: each learns what it can be seen to learn, and says what it lacks."""

import json
from dataclasses import replace

import numpy as np
import pytest
from experiments.baselines import setfit
from experiments.baselines.multi_task import (
    SINGLE_METRIC_WIDTH,
    fine_tuned,
    pooled_tfidf,
    single_task_metrics,
    train_one_metric,
    train_together,
)
from experiments.baselines.single_task import (
    LETTERS,
    WORDS,
    single_task_fasttext,
    tfidf_regression,
)
from experiments.clusterings import everything_in_one
from experiments.methods import answer_targets, frozen_prototypes
from experiments.published import Convex, mix_as_published

from manymetrics.encode import ConvolutionEncoder, random_vectors
from manymetrics.encode.encoder import normalize
from manymetrics.encode.settings import Convolution, Training
from manymetrics.engine import Engine
from manymetrics.evaluation.baselines import frozen_regression
from manymetrics.values import Examples, SharedData, Task, TaskBank
from planted_setfit import plant
from tiny_sentence import bert_encoder, vocabulary_of


@pytest.fixture(scope="module")
def shared_data(tiny_bank, vectors):
    return SharedData(tiny_bank.without_tests(), vectors)


@pytest.fixture(scope="module")
def run_jobs(shared_data):
    return Engine(shared_data)


def mean_accuracy(method, targets):
    return np.mean([one.accuracy for one in answer_targets(method, targets)])


def test_methods_of_the_shots_alone_find_the_telling_word(make_bank):
    words, targets = random_vectors(rows=2048, dimensions=64), make_bank(1, size=40)
    for method in (
        single_task_fasttext(words),
        frozen_prototypes(words),
        frozen_regression(words, balanced=False),
        tfidf_regression(WORDS),
        tfidf_regression(LETTERS),
    ):
        assert mean_accuracy(method, targets) > 0.6, "a third is chance"
    empty = Task("empty", Examples(("?", "!"), ("a", "b")), test=Examples(("...",), ("a",)))
    assert tfidf_regression(WORDS)(empty) == ["a"], "texts without words are answered too"


def test_one_metric_learns_from_all_tasks_but_those_held_out(tiny_bank, vectors, tiny_networks):
    pytest.importorskip("torch")
    shared_data = SharedData(tiny_bank.without_tests(), vectors)
    metric = train_one_metric(shared_data, Engine(shared_data), tiny_networks, held_out=["animal-1"])
    assert set(metric.tasks) == set(tiny_bank.names) - {"animal-1"}
    assert metric.encoder.width == SINGLE_METRIC_WIDTH
    assert list(everything_in_one(tiny_bank.names)) == [tiny_bank.names]


def test_one_network_for_all_tasks_carries_over_to_a_task_of_its_family(
    shared_data, run_jobs, network_recipe, with_networks, make_bank
):
    pytest.importorskip("torch")
    recipe = replace(with_networks(network_recipe, classifier_steps=200), seed=1)
    together = train_together(shared_data, run_jobs, recipe)
    targets = make_bank(3).only(["colour-2", "animal-2"])
    assert mean_accuracy(fine_tuned(together), targets) > 0.6
    assert (train_together(shared_data, run_jobs, recipe).encoder.filters == together.encoder.filters).all()
    part = train_together(shared_data, run_jobs, recipe, held_out=shared_data.bank.names[-1:])
    assert (part.encoder.filters != together.encoder.filters).any()


def test_a_softmax_begins_where_another_ended(vectors, make_bank):
    pytest.importorskip("torch")
    from experiments.baselines.holistic import fit_softmax

    shape, task = Convolution(3, 8), make_bank(1)["colour-0"]
    filters = np.random.default_rng(5).normal(0, 0.2, (3, vectors.dimensions, 8)).astype(np.float32)
    encoder = ConvolutionEncoder(vectors, filters, np.zeros(8, np.float32))
    start = np.full((8, 3), 7, np.float32), np.array([1, 2, 3], np.float32)
    head = fit_softmax(encoder, task.train, start, convolution=shape, training=Training(steps=1, learning_rate=1e-4),
                       rng=np.random.default_rng(0))  # fmt: skip
    np.testing.assert_allclose(head.weights, start[0], atol=1e-3)
    np.testing.assert_allclose(head.offset, start[1], atol=1e-3)


def test_every_single_task_model_is_a_metric(shared_data, run_jobs, network_recipe, with_networks, make_bank):
    pytest.importorskip("torch")
    metrics = single_task_metrics(shared_data, run_jobs, with_networks(network_recipe, task_steps=200))
    assert tuple(metric.name for metric in metrics) == shared_data.bank.names
    targets = make_bank(3).only(["colour-2", "animal-2"])
    assert mean_accuracy(mix_as_published(metrics, Convex(1.0, 2).answer), targets) > 1 / 3


def test_words_of_all_tasks_answer_a_task_that_shares_its_labels(make_bank):
    bank = TaskBank(tuple(task for task in make_bank(4) if task.name.startswith("colour")))
    method = pooled_tfidf(bank.only(bank.names[:3]))
    assert mean_accuracy(method, bank.only(bank.names[3:])) > 0.9


def test_setfit_learns_from_the_shots_and_where_asked_from_the_names_of_labels(monkeypatch, tmp_path):
    task = Task("t", Examples(("red now", "go blue"), ("a_red", "b_blue")), test=Examples(("blue",), ("a_red",)))
    fits = plant(monkeypatch)
    assert setfit.setfit(tmp_path, seed=3)(task) == ["b_blue"]
    assert setfit.setfit(tmp_path, names=True)(task) == ["b_blue"]
    assert [(fit.folder, fit.seed) for fit in fits] == [(str(tmp_path), 3), (str(tmp_path), 0)]
    assert fits[0].examples == {"text": ["red now", "go blue"], "label": [0, 1]}
    assert fits[1].examples == {"text": ["red now", "go blue", "a red", "b blue"], "label": [0, 1, 0, 1]}


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_an_encoder_is_written_as_sentence_transformers_reads_it(make_bank, tmp_path, pooling):
    pytest.importorskip("torch", reason="torch is not installed: the number of heads cannot be found")
    bank = make_bank(1)
    encoder = bert_encoder(vocabulary_of(bank), pooling=pooling)
    setfit.write_sentence_folder(encoder, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert {name: config[name] for name in ("hidden_size", "num_hidden_layers", "num_attention_heads")} == {
        "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
    }  # fmt: skip
    pooled = json.loads((tmp_path / "1_Pooling" / "config.json").read_text())
    assert (pooled["pooling_mode_cls_token"], pooled["pooling_mode_mean_tokens"]) == (
        pooling == "cls",
        pooling == "mean",
    )
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    texts = bank["colour-0"].train.texts
    found = library.SentenceTransformer(str(tmp_path), device="cpu").encode(list(texts), show_progress_bar=False)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-4)
    assert (found * normalize(encoder.encode(texts))).sum(axis=1).min() > 0.999
