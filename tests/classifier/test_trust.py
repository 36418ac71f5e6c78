import numpy as np
import pytest

from manymetrics.classifier import Serving, Trust, learn_trust
from manymetrics.classifier.trust import make_gibberish
from manymetrics.weigh import MixSettings, draw_episodes


@pytest.fixture(scope="module")
def episodes(make_bank):
    bank = make_bank(3, size=8)
    return draw_episodes(bank, bank.names, shots=3, seed=0)


@pytest.fixture(scope="module")
def serving(model):
    return Serving(model.metrics, MixSettings(threshold=-np.inf))


def test_the_same_episodes_teach_the_same_bits(serving, episodes):
    found = learn_trust(serving, episodes, seed=0)
    assert found == learn_trust(serving, episodes, seed=0)
    assert found != learn_trust(serving, episodes, seed=1)
    assert set(found.scope.weights) == {"word-vectors", "letters"}
    assert np.isfinite([found.scope.offset, *vars(found.calibration).values()]).all()


def test_one_task_has_nothing_out_of_scope_and_leaves_the_default(serving, episodes):
    first = [episode for episode in episodes if episode.task == episodes[0].task]
    assert learn_trust(serving, first, seed=0) == Trust()
    assert learn_trust(serving, [], seed=0) == Trust()


def test_what_was_learned_tells_apart_what_is_out_of_scope(model, rebuild, serving, episodes):
    wise = rebuild(model, trust=learn_trust(serving, episodes, seed=0), settings=serving.settings)
    episode = episodes[0]
    classifier = wise.adapt(episode.support.texts, episode.support.labels)
    assert classifier.scope_proba(episode.query.texts).mean() > 0.6
    assert classifier.scope_proba(make_gibberish(60, np.random.default_rng(9))).mean() < 0.4


def test_gibberish_is_made_from_its_seed():
    first = make_gibberish(9, np.random.default_rng(0))
    assert first == make_gibberish(9, np.random.default_rng(0))
    assert len(set(first)) == 9
    assert all(3 <= len(text) < 40 for text in first)
