import numpy as np
import pytest

from manymetrics.classifier import learn_scope_and_calibration
from manymetrics.classifier.confidence import Calibration, Scope
from manymetrics.classifier.learn_scope import make_gibberish
from manymetrics.episodes import draw_episodes


@pytest.fixture(scope="module")
def episodes(make_bank):
    bank = make_bank(3, size=8)
    return draw_episodes(bank, bank.names, shots=3, seed=0)


@pytest.fixture(scope="module")
def predictor(model):
    return model.predictor


def test_the_same_episodes_teach_the_same_bits(predictor, episodes):
    found = learn_scope_and_calibration(predictor, episodes, seed=0)
    assert found == learn_scope_and_calibration(predictor, episodes, seed=0)
    assert found != learn_scope_and_calibration(predictor, episodes, seed=1)
    scope, calibration = found
    assert np.isfinite([*scope.coefficients, *vars(calibration).values()]).all()
    assert found != (Scope(), Calibration())


def test_one_task_has_nothing_out_of_scope_and_leaves_the_default(predictor, episodes):
    first = [episode for episode in episodes if episode.task == episodes[0].task]
    assert learn_scope_and_calibration(predictor, first, seed=0) == (Scope(), Calibration())
    assert learn_scope_and_calibration(predictor, [], seed=0) == (Scope(), Calibration())


def test_the_learned_scope_detects_texts_out_of_scope(model, rebuild, predictor, episodes):
    apart = [episode for episode in episodes if episode.task in ("colour-0", "animal-0")]  # no two of one family
    scope, calibration = learn_scope_and_calibration(predictor, apart, seed=0)
    wise = rebuild(model, scope=scope, calibration=calibration)
    episode = apart[0]
    classifier = wise.adapt(episode.support.texts, episode.support.labels)
    inside = classifier.scope_proba(episode.query.texts)
    gibberish = classifier.scope_proba(make_gibberish(60, np.random.default_rng(9)))
    other_family = classifier.scope_proba(apart[-1].query.texts)  # shares most words with the texts in scope
    assert inside.min() > gibberish.max()
    assert gibberish.mean() < 0.1
    assert inside.mean() > other_family.mean()


def test_gibberish_is_made_from_its_seed():
    first = make_gibberish(9, np.random.default_rng(0))
    assert first == make_gibberish(9, np.random.default_rng(0))
    assert len(set(first)) == 9
    assert all(3 <= len(text) < 40 for text in first)
