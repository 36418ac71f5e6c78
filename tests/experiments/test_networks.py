"""The networks of the paper's clusters: what is tried, and what is chosen."""

import numpy as np
import pytest
from experiments.networks import Network, choose_network, train_on

from experiments import networks
from manymetrics.engine import Engine
from manymetrics.episodes import hold_out
from manymetrics.learn import material_of
from manymetrics.values import Clusters


@pytest.fixture
def shared_data(tiny_bank, vectors):
    return material_of(tiny_bank, vectors)


@pytest.fixture
def clusters(tiny_bank):
    return Clusters(tiny_bank.names, np.arange(len(tiny_bank)) % 2)


def test_a_network_has_the_shape_it_is_asked_for(shared_data, clusters, network_recipe, with_networks):
    short = with_networks(network_recipe, metric_steps=3)
    metrics, held_out = train_on(clusters, shared_data, Engine(shared_data), short, Network(window=3, width=6))
    assert held_out == hold_out(shared_data.bank, short.held_out, seed=short.seed, clusters=clusters)
    for metric in metrics:
        assert metric.encoder.filters.shape[0] == 3
        assert metric.encoder.width == 6
        assert metric.encoder.words.fingerprint == shared_data.base.fingerprint


def test_without_a_network_the_recipe_counts(shared_data, clusters, network_recipe, with_networks):
    metrics, _ = train_on(clusters, shared_data, Engine(shared_data), with_networks(network_recipe, metric_steps=3))
    assert {metric.encoder.width for metric in metrics} == {network_recipe.convolution.width}


def test_one_setting_is_chosen_after_the_other(shared_data, clusters, network_recipe, monkeypatch):
    planted = {Network(window=7): 0.8, Network(window=7, width=100): 0.9}
    tried = []

    def train(clusters, shared_data, run_jobs, recipe, network):
        tried.append(network)
        return network, ()

    monkeypatch.setattr(networks, "train_on", train)
    monkeypatch.setattr(networks, "_accuracy", lambda network, *_: planted.get(network, 0.5))
    assert choose_network(clusters, shared_data, None, network_recipe) == Network(window=7, width=100)
    assert len(tried) == len(set(tried)) == 5, "nothing is trained twice"
    planted.clear()
    assert choose_network(clusters, shared_data, None, network_recipe) == Network(), "of equals the paper's"
