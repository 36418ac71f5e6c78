"""Members' probabilities -> one answer: products of planted experts, and exponents that planted episodes teach."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from manymetrics.values import Mix
from manymetrics.weigh.pooling import (
    PooledEpisode,
    ProblemSize,
    alike,
    answer_with,
    exponents_of,
    group_logs,
    learn_exponents,
    pool,
    pooled_mix,
    share_by_group,
)


def mixed(weights):
    return Mix(np.array(weights), 0, 0.0)


def product(*powers):
    """Probabilities and the power of each, multiplied and scaled to sum to one."""
    found = np.prod([np.asarray(answer) ** power for answer, power in powers], axis=0)
    return found / found.sum(axis=-1, keepdims=True)


def planted(seed, *, members=3, texts=5, classes=4):
    return np.random.default_rng(seed).dirichlet(np.ones(classes), (texts, members))


# --- the answer


def test_an_answer_is_the_product_of_its_experts_each_to_its_power():
    probabilities = planted(0)
    mix = pooled_mix(mixed([0.2, 0.3, 0.5]), np.array([0, 1, 2]), np.array([0.5, 2.0, 1.5]))
    expected = product(*((probabilities[:, place], power) for place, power in enumerate((0.5, 2.0, 1.5))))
    np.testing.assert_allclose(pool(mix, probabilities), expected, atol=1e-12)
    np.testing.assert_allclose(mix.weights, [0.125, 0.5, 0.375])
    assert mix.exponent_sum == 4


def test_what_one_expert_rules_out_no_other_brings_back():
    sure, torn = [0.5, 0.5, 1e-9], [0.05, 0.45, 0.5]
    mix = pooled_mix(mixed([0.5, 0.5]), np.array([0, 1]), np.ones(2))
    (answer,) = pool(mix, np.array([[sure, torn]]))
    assert answer.argmax() == 1
    assert answer[2] < 1e-8


def test_members_of_a_group_are_added_up_by_their_weights_before_groups_are_multiplied():
    probabilities = planted(1)
    mix = pooled_mix(mixed([0.1, 0.3, 0.6]), np.array([0, 0, 1]), np.array([2.0, 0.5]))
    together = 0.25 * probabilities[:, 0] + 0.75 * probabilities[:, 1]
    np.testing.assert_allclose(pool(mix, probabilities), product((together, 2.0), (probabilities[:, 2], 0.5)))
    np.testing.assert_allclose(
        group_logs(probabilities, mix.weights, mix.groups),
        np.log(np.stack([together, probabilities[:, 2]], axis=1)),
    )


def test_members_that_hardly_count_need_not_be_asked():
    probabilities, mix = planted(2), pooled_mix(mixed([0.5, 0.3, 0.2]), np.array([0, 1, 2]), np.array([1.0, 2.0, 1e-9]))
    asked = np.array([0, 1])
    few = answer_with(mix, probabilities[:, asked], asked)
    np.testing.assert_allclose(few, answer_with(mix, probabilities), atol=1e-7)


def test_a_mix_without_groups_is_added_up():
    probabilities, weights = planted(3), np.array([0.2, 0.5, 0.3])
    expected = np.einsum("k,ikc->ic", weights, probabilities)
    np.testing.assert_allclose(answer_with(mixed(weights), probabilities), expected)


def test_many_members_that_hardly_count_can_be_left_out_of_a_sum_together():
    few, some = 9e-7, np.array([0, 1])
    probabilities, weights = planted(3, members=9), np.array([0.6, 0.4 - 7 * few, *[few] * 7])
    found = answer_with(mixed(weights), probabilities[:, some], some)
    np.testing.assert_allclose(found, answer_with(mixed(weights), probabilities), atol=1e-5)


def test_weights_that_may_be_negative_are_scores():
    probabilities, weights = planted(3), np.array([2.0, -0.5, 0.1])
    expected = softmax(np.einsum("k,ikc->ic", weights, probabilities), axis=1)
    np.testing.assert_allclose(answer_with(mixed(weights), probabilities), expected)


def test_rows_of_nan_stay_so_and_leave_the_others_alone():
    probabilities = planted(4)
    mix = pooled_mix(mixed([0.4, 0.4, 0.2]), np.array([0, 0, 1]), np.array([1.0, 2.0]))
    whole = pool(mix, probabilities)
    probabilities[2] = np.nan
    found = pool(mix, probabilities)
    assert np.isnan(found).all(axis=1).tolist() == [False, False, True, False, False]
    np.testing.assert_array_equal(np.delete(found, 2, axis=0), np.delete(whole, 2, axis=0))


def test_probabilities_of_zero_do_not_break_a_product():
    certain = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]])
    found = pool(pooled_mix(mixed([0.5, 0.5]), np.array([0, 1]), np.ones(2)), certain)
    np.testing.assert_allclose(found, [[0.5, 0.5], [1.0, 0.0]], atol=1e-12)


# --- exponents


def test_an_exponent_is_log_linear_in_the_examples_and_labels_and_kept_in_bounds():
    size = ProblemSize(5, 20)
    found = exponents_of([(0.5, -1.0, 2.0), (100.0, 0.0, 0.0), (-100.0, 0.0, 0.0)], size)
    np.testing.assert_allclose(found, [np.exp(0.5) / 5 * 4, np.exp(4), np.exp(-12)])
    nothing, little = (exponents_of([(0.0, 1.0, 0.0)], ProblemSize(count, 10)) for count in (0, 0.25))
    assert nothing == little == pytest.approx(0.25)


def test_groups_that_nothing_is_known_of_make_a_geometric_mean():
    assert learn_exponents([], ["a", "b"]) == alike(["a", "b"])
    for size in (ProblemSize(1, 2), ProblemSize(50, 150)):
        np.testing.assert_allclose(exponents_of(list(alike("abc").values()), size), [1 / 3] * 3)
        assert share_by_group(alike("abc"), size) == pytest.approx({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})


def expert(answers, classes, right, rng):
    """Logarithms of what an expert says that is right about a share of the texts and never quite sure."""
    believed = np.where(rng.random(len(answers)) < right, answers, rng.integers(classes, size=len(answers)))
    return log_softmax(2 * np.eye(classes)[believed], axis=1)


def episode(*rights, examples=5.0, classes=10, seed=0, texts=100):
    rng = np.random.default_rng(seed)
    answers = rng.integers(classes, size=texts)
    logs = np.stack([expert(answers, classes, right, rng) for right in rights], axis=1)
    return PooledEpisode(ProblemSize(examples, classes), logs, answers)


def likelihood(exponents, one):
    powers = exponents_of(list(exponents.values()), one.size)
    logs = log_softmax(np.einsum("g,igc->ic", powers, one.logs), axis=1)
    return logs[np.arange(len(one.answers)), one.answers].mean()


def test_exponents_lean_to_the_expert_that_is_right():
    good, bad = (
        learn_exponents([episode(*rights, seed=seed) for seed in range(4)], ["first", "second"])
        for rights in ((0.9, 0.0), (0.0, 0.9))
    )
    size = ProblemSize(5, 10)
    assert share_by_group(good, size)["first"] > 0.8
    assert share_by_group(bad, size)["first"] < 0.2


def test_with_many_examples_exponents_lean_to_the_expert_that_is_right_there():
    few = [episode(0.9, 0.0, examples=1.0, seed=seed) for seed in range(4)]
    many = [episode(0.0, 0.95, examples=50.0, seed=seed) for seed in range(4, 8)]
    found = learn_exponents(few + many, ["prototypes", "regression"])
    shares = [share_by_group(found, ProblemSize(examples, 10))["regression"] for examples in (1, 7, 50)]
    assert shares == sorted(shares)
    assert shares[0] < 0.2
    assert shares[2] > 0.8


def test_with_many_labels_exponents_lean_to_the_expert_that_is_right_there():
    few = [episode(0.9, 0.0, classes=4, seed=seed) for seed in range(4)]
    many = [episode(0.0, 0.9, classes=60, seed=seed) for seed in range(4, 8)]
    found = learn_exponents(few + many, ["a", "b"])
    assert share_by_group(found, ProblemSize(5, 4))["b"] < 0.3
    assert share_by_group(found, ProblemSize(5, 60))["b"] > 0.7


def test_experts_that_are_too_unsure_are_sharpened_and_no_exponents_nearby_are_much_better():
    episodes = [episode(0.95, 0.6, examples=examples, seed=seed) for seed, examples in enumerate((1, 5, 20))]
    found = learn_exponents(episodes, ["first", "second"])
    assert exponents_of([found["first"]], ProblemSize(5, 10))[0] > 1.2
    best = np.mean([likelihood(found, one) for one in episodes])
    assert best > np.mean([likelihood(alike(["first", "second"]), one) for one in episodes]) + 0.1
    rng = np.random.default_rng(0)
    for _ in range(30):
        moved = {group: tuple(np.array(row) + 0.3 * rng.standard_normal(3)) for group, row in found.items()}
        assert np.mean([likelihood(moved, one) for one in episodes]) < best + 1e-3


def test_every_episode_weighs_alike_however_many_texts_it_has():
    long, short = episode(0.9, 0.1, texts=2000), episode(0.1, 0.9, texts=200, seed=1)
    found = share_by_group(learn_exponents([long, short], ["a", "b"]), ProblemSize(5, 10))
    assert found["a"] == pytest.approx(0.5, abs=0.1)
