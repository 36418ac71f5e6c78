from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.weigh import Rules, fit_mix
from manymetrics.weigh.rules import LEAST_STRENGTH, NEVER, Problem, lift_over_chance, tune_rules

KINDS = ("learned", "learned", "frozen", "lexical")


def told(right, *, labels, classes=2, sure=0.9):
    """Chances of a metric that is right about the first `right` of the labels and wrong about the others."""
    rows = np.full((len(labels), classes), (1 - sure) / (classes - 1))
    for row, label in enumerate(labels):
        rows[row, label if row < right else (label + 1) % classes] = sure
    return rows


def problem(*rights, alone=0, texts=20, shots=6, voices=None):
    """A problem on which metric k is right about a share `rights[k]` of shots and of texts."""
    labels, answers = np.arange(shots) % 2, np.arange(texts) % 2
    return Problem(
        KINDS,
        (1, 1, 1, 1),
        voices,
        np.stack([told(right * shots, labels=labels) for right in rights], axis=1),
        labels,
        np.stack([told(right * texts, labels=answers) for right in rights], axis=1),
        told(alone * texts, labels=answers),
        answers,
    )


@given(st.floats(0.01, 0.99), st.lists(st.sampled_from(["learned", "frozen", "lexical"]), min_size=1, max_size=9))
def test_a_prior_sums_to_one_and_treats_a_kind_alike(share, kinds):
    prior = Rules({"learned": share, "frozen": 1 - share}).prior(kinds, [1] * len(kinds))
    assert (prior > 0).all()
    assert prior.sum() == pytest.approx(1)
    for kind in set(kinds):
        assert len({prior[place] for place, other in enumerate(kinds) if other == kind}) == 1


def test_the_metrics_of_a_kind_share_its_part():
    shares = {"learned": 0.6, "frozen": 0.3, "lexical": 0.1}
    np.testing.assert_allclose(Rules(shares).prior(KINDS, (7, 7, 1, 1)), [0.3, 0.3, 0.3, 0.1])
    np.testing.assert_allclose(Rules(shares).prior(["learned"] * 4, [1] * 4), [0.25] * 4)
    np.testing.assert_allclose(Rules().prior(KINDS, (1, 1, 1, 1)), [1 / 6, 1 / 6, 1 / 3, 1 / 3])


def test_within_its_kind_a_metric_of_more_tasks_counts_for_more():
    shares = {"learned": 0.6, "frozen": 0.3, "lexical": 0.1}
    np.testing.assert_allclose(Rules(shares).prior(KINDS, (5, 1, 1, 1)), [0.5, 0.1, 0.3, 0.1])


def test_lift_is_one_for_perfect_and_zero_for_guessing():
    labels = np.array([0, 1, 0, 1])
    learned = np.array([True])
    for right, lift in ((4, 1.0), (2, 0.0), (3, 0.5), (0, -1.0)):
        assert lift_over_chance(told(right, labels=labels)[:, None], labels, learned) == pytest.approx(lift)
    four = np.arange(4)
    assert lift_over_chance(told(2, labels=four, classes=4)[:, None], four, learned) == pytest.approx(1 / 3)


def test_the_best_learned_metric_counts_and_no_other_kind():
    labels = np.array([0, 1, 0, 1])
    chances = np.stack([told(right, labels=labels) for right in (2, 3, 4)], axis=1)
    assert lift_over_chance(chances, labels, np.array([True, True, False])) == pytest.approx(0.5)


def test_where_the_shots_cannot_tell_lift_is_infinite():
    labels = np.array([0, 1])
    assert lift_over_chance(np.full((2, 1, 2), np.nan), labels, np.array([True])) == np.inf
    assert lift_over_chance(told(2, labels=labels)[:, None], labels, np.array([False])) == np.inf


def test_rows_of_a_labels_only_example_are_skipped():
    labels = np.array([0, 0, 1])
    chances = told(2, labels=labels)[:, None].copy()
    chances[2] = np.nan
    assert lift_over_chance(chances, labels, np.array([True])) == 1.0


def test_without_problems_the_rules_are_the_default_ones():
    assert tune_rules([]) == Rules()


def test_rules_lean_to_the_kind_that_answers_best():
    trusting = tune_rules([problem(1.0, 1.0, 0.5, 0.5)] * 3)
    wary = tune_rules([problem(0.5, 0.5, 1.0, 1.0)] * 3)
    assert trusting.shares["learned"] > 0.9
    assert wary.shares["learned"] < 0.1
    assert sum(wary.shares.values()) == pytest.approx(1, abs=1e-3)


def test_shots_that_mislead_give_a_strong_prior_and_shots_that_tell_a_weak_one():
    honest = problem(1.0, 0.0, 0.5, 0.5)
    misleading = replace(honest, left_out=honest.left_out[:, [1, 0, 2, 3]])
    assert tune_rules([honest] * 3).strength < tune_rules([misleading] * 3).strength


def test_metrics_that_speak_for_clusters_are_weighed_by_a_posterior_that_never_trusts_a_shot_wholly():
    honest = problem(1.0, 0.0, 0.5, 0.5, voices=np.array([0, 1, 2, 3]))
    rules = tune_rules([honest] * 3)
    assert rules.strength == LEAST_STRENGTH
    assert tune_rules([replace(honest, voices=None)] * 3).strength < LEAST_STRENGTH
    left_out, labels, prior = honest.left_out, honest.labels, np.full(4, 0.25)
    weights = rules.weigh(left_out, labels, prior=prior, voices=honest.voices).weights
    likelihood = left_out[np.arange(len(labels)), :, labels].prod(axis=0) ** (1 / LEAST_STRENGTH)
    np.testing.assert_allclose(weights, likelihood / likelihood.sum())
    mixed = rules.weigh(left_out, labels, prior=prior, voices=None)
    np.testing.assert_allclose(mixed.weights, fit_mix(left_out, labels, prior=prior, strength=rules.strength).weights)


def test_falling_back_is_learned_where_the_single_task_model_is_better():
    lost = problem(0.5, 0.5, 0.5, 0.5, alone=1.0)
    found = problem(1.0, 1.0, 1.0, 1.0, alone=0.5)
    assert tune_rules([lost, found]).threshold > 0
    assert tune_rules([found]).threshold == NEVER
    assert tune_rules([found], [lost]).threshold > 0
