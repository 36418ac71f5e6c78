"""Scope and calibration are learned: planted ones are found, few tasks stay near the defaults."""

import numpy as np
import pytest
from scipy.special import softmax

from manymetrics.classifier import learn_scope_and_calibration
from manymetrics.classifier.confidence import PRIOR_TEMPERATURE, Calibration, Scope, fit_own_temperature
from manymetrics.classifier.learn_scope import learn_calibration, learn_scope, make_gibberish
from manymetrics.episodes import draw_episodes


def planted_features(level, rng, count=60):
    """The features of texts that two encoders find about so near the examples."""
    nearest = np.clip(level + 0.1 * rng.standard_normal((count, 2)), -1, 1)
    sizes = np.column_stack([np.log(rng.integers(1, 20, count)), np.full(count, np.log(25))])
    return np.hstack([nearest, nearest - [0.5, 0.3], sizes])


def log_odds(scope, features):
    return scope.coefficients[0] + features @ scope.coefficients[1:]


def test_planted_texts_out_of_scope_are_detected():
    rng = np.random.default_rng(0)
    inside, outside = ([planted_features(level, rng) for _ in range(count)] for level, count in ((0.7, 5), (0.3, 8)))
    scope = learn_scope(inside, outside, 8)
    assert (log_odds(scope, planted_features(0.7, rng)) > 0).mean() > 0.9
    assert (log_odds(scope, planted_features(0.3, rng)) < 0).mean() > 0.9


def planted_logits(count, temperature, seed, classes=4):
    """Logits, and labels that were drawn from their softmax at a temperature."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.standard_normal((count, classes))
    probabilities = softmax(logits / temperature, axis=1)
    return logits, np.array([rng.choice(classes, p=row) for row in probabilities])


def planted_episodes(temperature, count, classes=4):
    return [(*planted_logits(300, temperature, seed, classes), 1.0) for seed in range(count)]


@pytest.mark.parametrize("temperature", [0.4, 1.0, 2.0])
def test_the_planted_temperature_of_many_tasks_is_learned(temperature):
    found = learn_calibration(planted_episodes(temperature, 60), 60)
    assert found.temperature(4, 1.0) == pytest.approx(temperature, rel=0.15)


def test_one_task_hardly_moves_the_defaults_and_many_move_them_all_the_way():
    default = Calibration().temperature(4, 1.0)
    moved = [abs(np.log(learn_calibration(planted_episodes(3.0, 8), n_tasks).temperature(4, 1.0) / default))
             for n_tasks in (0, 1, 4, 1000)]  # fmt: skip
    assert moved == sorted(moved)
    assert moved[-1] == pytest.approx(np.log(3.0 / default), abs=0.2)


def test_more_labels_than_were_seen_have_the_temperature_of_the_most_that_were():
    learned = learn_calibration([*planted_episodes(0.5, 10, classes=3), *planted_episodes(0.3, 10, classes=12)], 20)
    assert learned.max_classes == 12
    assert learned.temperature(77, 1.0) == learned.temperature(12, 1.0)
    assert learned.temperature(12, 1.0) < learned.temperature(3, 1.0)
    assert Calibration().temperature(1000, 1.0) == Calibration().temperature(30, 1.0)


def test_left_out_shots_find_the_planted_temperature_and_few_of_them_stay_near_the_prior():
    logits, labels = planted_logits(2000, 2.0, 0)
    assert fit_own_temperature(logits, labels) == pytest.approx(2.0, rel=0.15)
    assert fit_own_temperature(logits[:3], labels[:3]) == pytest.approx(PRIOR_TEMPERATURE, rel=0.6)
    assert fit_own_temperature(logits[:0], labels[:0]) == pytest.approx(PRIOR_TEMPERATURE, rel=0.05)


# --- from episodes


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
