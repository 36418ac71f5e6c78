"""The networks of the paper's clusters: what is tried, what is chosen, and that each kind of words trains."""

from dataclasses import replace

import numpy as np
import pytest
from experiments.networks import FIXED, LEARNED, RANDOM, Network, at_random, choose_network, train_on, with_random_words

from experiments import networks
from manymetrics.encode.vectors import TunedWords
from manymetrics.engine import Engine
from manymetrics.start import hold_out, prepare
from manymetrics.values import Clusters


@pytest.fixture
def learning(tiny_bank, vectors):
    return with_random_words(prepare(tiny_bank, vectors, {}))


@pytest.fixture
def clusters(tiny_bank):
    return Clusters(tiny_bank.names, np.arange(len(tiny_bank)) % 2)


def test_random_words_are_as_large_as_the_given_and_know_nothing_of_them(vectors):
    drawn = at_random(vectors)
    assert drawn.table.std() == pytest.approx(vectors.table.std(), rel=0.1)
    assert abs(np.corrcoef(drawn.table.ravel(), vectors.table.ravel())[0, 1]) < 0.1
    assert drawn.tokenizer is vectors.tokenizer
    assert drawn.fingerprint != vectors.fingerprint


@pytest.mark.parametrize("words", [FIXED, LEARNED, RANDOM])
def test_a_network_has_the_shape_and_the_words_it_is_asked_for(learning, clusters, tiny_recipe, words):
    short = replace(tiny_recipe, metric_steps=3)
    network = Network(words, window=3, width=6)
    metrics, held_out = train_on(clusters, learning, Engine(learning.material), short, network)
    assert held_out == hold_out(learning, short, clusters)
    for metric in metrics:
        encoder = metric.encoder
        assert encoder.filters.shape[0] == 3
        assert encoder.width == 6
        assert isinstance(encoder.words, TunedWords) == (words != FIXED)
        given = at_random(learning.words) if words == RANDOM else learning.words
        assert encoder.words.given.fingerprint == given.fingerprint


def test_without_a_network_the_recipe_counts(learning, clusters, tiny_recipe):
    metrics, _ = train_on(clusters, learning, Engine(learning.material), replace(tiny_recipe, metric_steps=3))
    assert {metric.encoder.width for metric in metrics} == {tiny_recipe.width}


def test_one_knob_is_chosen_after_the_other(learning, clusters, tiny_recipe, monkeypatch):
    planted = {Network(LEARNED): 0.7, Network(LEARNED, window=7): 0.8, Network(LEARNED, window=7, width=100): 0.9}
    tried = []

    def train(clusters, learning, work, recipe, network):
        tried.append(network)
        return network, ()

    monkeypatch.setattr(networks, "train_on", train)
    monkeypatch.setattr(networks, "_accuracy", lambda network, *_: planted.get(network, 0.5))
    assert choose_network(clusters, learning, None, tiny_recipe) == Network(LEARNED, window=7, width=100)
    assert len(tried) == len(set(tried)) == 7, "nothing is trained twice"
    planted.clear()
    assert choose_network(clusters, learning, None, tiny_recipe) == Network(), "of equals the paper's"


def test_tasks_are_answered_by_the_network_of_their_own_cluster(learning, clusters, tiny_recipe, monkeypatch):
    asked = []
    held_out = learning.material.bank.names[:4]
    metrics, _ = train_on(clusters, learning, Engine(learning.material), replace(tiny_recipe, metric_steps=3))
    monkeypatch.setattr(
        networks, "answer_problems",
        lambda method, problems: asked.append({problem.name.rpartition(" ")[0] for problem in problems}) or [],
    )  # fmt: skip
    assert networks._accuracy(metrics, clusters, held_out, learning, tiny_recipe) == 0.0
    assert asked == [set(held_out[::2]), set(held_out[1::2])]
    assert networks._accuracy(metrics, clusters, (), learning, tiny_recipe) == 0.0, "nothing to compare by"
    assert len(asked) == 2
