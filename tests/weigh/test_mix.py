import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manymetrics.errors import DataError, DidNotConverge
from manymetrics.weigh import fit_mix, fit_mix_as_published
from manymetrics.weigh.mix import blend, fit_posterior


def answers(seed, *, shots=12, metrics=3, classes=3, sharp=1.0):
    """Probabilities of several metrics for some shots, and the shots' labels."""
    rng = np.random.default_rng(seed)
    logits = sharp * rng.standard_normal((shots, metrics, classes))
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    return probabilities, rng.integers(classes, size=shots)


def objective(weights, probabilities, labels, prior, prior_shots):
    """What fit_mix minimises, per shot and per shot that the prior weighs as much as, as its docstring says."""
    right = np.maximum(probabilities[np.arange(len(labels)), :, labels], 1e-12)
    spread = np.sum(np.where(weights > 0, weights * np.log(np.maximum(weights, 1e-300) / prior), 0))
    return (-np.log(right @ weights).sum() + prior_shots * spread) / (len(labels) + prior_shots)


WORLDS = st.builds(
    answers,
    st.integers(0, 2**32 - 1),
    shots=st.integers(1, 30),
    metrics=st.integers(1, 6),
    classes=st.integers(2, 5),
    sharp=st.sampled_from([0.1, 1.0, 10.0, 100.0]),
)
POSITIVE = st.floats(0.01, 100)


@settings(deadline=None, max_examples=60)
@given(WORLDS, POSITIVE)
def test_weights_lie_on_the_simplex(world, prior_shots):
    probabilities, labels = world
    count = probabilities.shape[1]
    mix = fit_mix(probabilities, labels, prior=np.full(count, 1 / count), prior_shots=prior_shots)
    assert (mix.weights >= 0).all()
    assert mix.weights.sum() == pytest.approx(1, abs=1e-9)
    assert mix.gap <= 1e-6


@settings(deadline=None, max_examples=30)
@given(WORLDS, POSITIVE, st.randoms(use_true_random=False))
def test_the_order_of_the_metrics_only_orders_the_weights(world, prior_shots, random):
    probabilities, labels = world
    order = random.sample(range(probabilities.shape[1]), probabilities.shape[1])
    prior = np.arange(1.0, 1 + probabilities.shape[1])
    straight = fit_mix(probabilities, labels, prior=prior, prior_shots=prior_shots).weights
    shuffled = fit_mix(probabilities[:, order], labels, prior=prior[order], prior_shots=prior_shots).weights
    np.testing.assert_allclose(shuffled, straight[order], atol=1e-9)


@pytest.mark.filterwarnings("ignore:fit_mix stopped")
@settings(deadline=None, max_examples=30)
@given(WORLDS, st.floats(0.5, 50), st.integers(0, 99))
def test_the_gap_is_no_smaller_than_what_any_other_weights_gain(world, prior_shots, seed):
    probabilities, labels = world
    count = probabilities.shape[1]
    prior = np.full(count, 1 / count)
    best = fit_mix(probabilities, labels, prior=prior, prior_shots=prior_shots).weights
    others = [best, *np.random.default_rng(seed).dirichlet(np.ones(count), 50)]
    lowest = min(objective(other, probabilities, labels, prior, prior_shots) for other in others)
    for most in (1, 3, 10):
        mix = fit_mix(probabilities, labels, prior=prior, prior_shots=prior_shots, max_steps=most)
        assert objective(mix.weights, probabilities, labels, prior, prior_shots) - lowest <= mix.gap + 1e-9


def test_no_weights_on_a_fine_grid_are_better():
    prior, steps = np.array([0.5, 0.3, 0.2]), np.linspace(0, 1, 41)
    grid = [np.array([a, b, 1 - a - b]) for a, b in itertools.product(steps, steps) if a + b <= 1]
    for seed, prior_shots in itertools.product(range(5), (0.5, 5.0)):
        probabilities, labels = answers(seed)
        mix = fit_mix(probabilities, labels, prior=prior, prior_shots=prior_shots)
        best = min(objective(weights, probabilities, labels, prior, prior_shots) for weights in grid)
        assert objective(mix.weights, probabilities, labels, prior, prior_shots) <= best + 1e-6


@pytest.mark.parametrize("seed", range(2))
def test_the_objective_is_the_optimum_that_cvxpy_finds(seed):
    cvxpy = pytest.importorskip("cvxpy", reason="cvxpy is not installed: nothing to compare the optimum with")
    probabilities, labels = answers(seed, shots=20, metrics=5, sharp=2.0)
    prior, prior_shots = np.full(5, 0.2), 2.0
    right = probabilities[np.arange(20), :, labels]
    weights = cvxpy.Variable(5, nonneg=True)
    cost = -cvxpy.sum(cvxpy.log(right @ weights)) + prior_shots * cvxpy.sum(cvxpy.kl_div(weights, prior))
    cvxpy.Problem(cvxpy.Minimize(cost), [cvxpy.sum(weights) == 1]).solve()
    mix = fit_mix(probabilities, labels, prior=prior, prior_shots=prior_shots)
    ours = objective(mix.weights, probabilities, labels, prior, prior_shots)
    theirs = objective(np.maximum(weights.value, 0), probabilities, labels, prior, prior_shots)
    assert ours == pytest.approx(theirs, abs=1e-5)
    np.testing.assert_allclose(mix.weights, weights.value, atol=1e-2)


def test_infinitely_many_prior_shots_give_the_prior():
    probabilities, labels = answers(0)
    mix = fit_mix(probabilities, labels, prior=np.array([2.0, 1.0, 1.0]), prior_shots=np.inf)
    assert mix.weights.tolist() == [0.5, 0.25, 0.25]


def test_a_metric_that_is_always_right_gets_nearly_all_the_weight_as_shots_come_in():
    def weight(shots):
        probabilities = np.tile([[[0.99, 0.01], [0.5, 0.5]]], (shots, 1, 1))
        return fit_mix(probabilities, np.zeros(shots, int), prior=np.array([0.5, 0.5]), prior_shots=5.0).weights[0]

    assert 0.5 < weight(1) < weight(10) < weight(1000)
    assert weight(1000) > 0.99


def test_at_a_temperature_of_one_a_weight_is_the_probability_that_the_task_is_the_clusters_own():
    probabilities = np.array([[[0.8, 0.2], [0.4, 0.6]], [[0.5, 0.5], [0.25, 0.75]]])
    clusters, prior = np.array([0, 1]), np.array([0.2, 0.8])
    mix = fit_posterior(probabilities, np.zeros(2, int), prior=prior, temperature=1.0, clusters=clusters)
    assert mix.weights == pytest.approx([0.2 * 0.4 / (0.2 * 0.4 + 0.8 * 0.1), 0.8 * 0.1 / (0.2 * 0.4 + 0.8 * 0.1)])


def test_in_a_posterior_as_many_shots_as_the_temperature_count_as_one():
    temperature = 5
    (probabilities, labels), prior, clusters = answers(0, shots=6), np.array([0.5, 0.3, 0.2]), np.array([0, 1, 0])
    one = fit_posterior(probabilities, labels, prior=prior, temperature=1.0, clusters=clusters)
    probabilities, labels = probabilities.repeat(temperature, axis=0), labels.repeat(temperature)
    many = fit_posterior(probabilities, labels, prior=prior, temperature=temperature, clusters=clusters)
    np.testing.assert_allclose(many.weights, one.weights)


@settings(deadline=None, max_examples=30)
@given(WORLDS, POSITIVE)
def test_a_posterior_lies_on_the_simplex_and_is_the_prior_where_shots_tell_nothing(world, temperature):
    probabilities, labels = world
    prior, clusters = np.arange(1.0, 1 + probabilities.shape[1]), np.arange(probabilities.shape[1]) % 2
    weights = fit_posterior(probabilities, labels, prior=prior, temperature=temperature, clusters=clusters).weights
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1, abs=1e-9)
    for nothing, told in ((np.full_like(probabilities, np.nan), temperature), (probabilities, np.inf)):
        weights = fit_posterior(nothing, labels, prior=prior, temperature=told, clusters=clusters).weights
        np.testing.assert_allclose(weights, prior / prior.sum())


def test_metrics_of_one_cluster_keep_the_prior_among_themselves_and_weigh_as_their_mixture():
    probabilities, labels = answers(0, metrics=4)
    prior = np.array([0.3, 0.2, 0.1, 0.4])
    mix = fit_posterior(probabilities, labels, prior=prior, temperature=1.0, clusters=np.array([7, 3, 7, 5]))
    assert mix.weights[0] / mix.weights[2] == pytest.approx(3)
    spoken = np.stack(
        [0.75 * probabilities[:, 0] + 0.25 * probabilities[:, 2], probabilities[:, 1], probabilities[:, 3]], axis=1
    )
    three = fit_posterior(spoken, labels, prior=np.array([0.4, 0.2, 0.4]), temperature=1.0, clusters=np.arange(3))
    np.testing.assert_allclose(mix.weights[[0, 1, 3]], three.weights * [0.75, 1, 1])


def test_a_posterior_at_a_temperature_that_is_not_above_zero_is_refused():
    for temperature in (0.0, -1.0, np.nan):
        with pytest.raises(DataError, match=rf"Found the temperature {temperature}\. Give a number above 0"):
            fit_posterior(*answers(0), prior=np.full(3, 1 / 3), temperature=temperature, clusters=np.arange(3))


def test_shots_that_cannot_be_left_out_say_nothing():
    probabilities, labels = answers(3)
    prior = np.full(3, 1 / 3)
    kept = np.arange(12) % 3 > 0
    missing = probabilities.copy()
    missing[~kept] = np.nan
    np.testing.assert_allclose(
        fit_mix(missing, labels, prior=prior, prior_shots=1.0).weights,
        fit_mix(probabilities[kept], labels[kept], prior=prior, prior_shots=1.0).weights,
    )
    assert fit_mix(missing[~kept], labels[~kept], prior=prior, prior_shots=1.0).weights.tolist() == prior.tolist()


def test_a_shot_one_metric_knows_nothing_of_is_skipped_for_all():
    probabilities, labels = answers(4, shots=6)
    probabilities[2, 1] = np.nan
    others = [0, 1, 3, 4, 5]
    prior = np.full(3, 1 / 3)
    np.testing.assert_allclose(
        fit_mix(probabilities, labels, prior=prior, prior_shots=1.0).weights,
        fit_mix(probabilities[others], labels[others], prior=prior, prior_shots=1.0).weights,
    )


def test_metrics_that_all_rule_out_the_right_answer_leave_the_prior():
    probabilities = np.tile([[[0.0, 1.0], [0.0, 1.0]]], (4, 1, 1))
    mix = fit_mix(probabilities, np.zeros(4, int), prior=np.array([0.7, 0.3]), prior_shots=1.0)
    np.testing.assert_allclose(mix.weights, [0.7, 0.3], atol=1e-6)


def test_probabilities_of_the_wrong_shape_are_refused():
    with pytest.raises(
        DataError, match=r"probabilities of shape \(12, 3, 3\) for 12 labels and 2 metrics\. Give \(shots, metrics"
    ):
        fit_mix(answers(0)[0], np.zeros(12, int), prior=np.ones(2), prior_shots=1.0)
    with pytest.raises(DataError, match=r"for 5 labels and 3 metrics"):
        fit_mix(answers(0)[0], np.zeros(5, int), prior=np.ones(3), prior_shots=1.0)


def test_a_prior_that_rules_a_metric_out_is_refused():
    for prior in ([1.0, 0.0, 1.0], [1.0, -1.0, 1.0], [np.nan, 1.0, 1.0]):
        with pytest.raises(DataError, match=r"Found the prior .*Give every metric a prior weight above 0"):
            fit_mix(*answers(0), prior=np.array(prior), prior_shots=1.0)


def test_stopping_early_is_a_warning_that_says_what_to_turn():
    with pytest.warns(DidNotConverge, match=r"fit_mix stopped after 1 steps with gap .* Raise max_steps, or loosen"):
        fit_mix(*answers(0, sharp=5.0), prior=np.full(3, 1 / 3), prior_shots=0.1, max_steps=1)


def test_the_published_fit_takes_forty_steps_from_uniform():
    probabilities, labels = answers(1)
    mix = fit_mix_as_published(probabilities, labels)
    assert mix.steps == 40
    assert fit_mix_as_published(np.full_like(probabilities, np.nan), labels).weights.tolist() == [1 / 3] * 3


def test_the_published_weights_can_leave_the_simplex():
    good, bad = [0.9, 0.1], [0.1, 0.9]
    probabilities = np.tile([[good, bad]], (6, 1, 1))
    weights = fit_mix_as_published(probabilities, np.zeros(6, int)).weights
    assert weights[0] > 1
    assert weights[1] < 0


def test_the_published_fit_is_adam_on_the_cross_entropy():
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare the steps with")
    probabilities, labels = answers(2, metrics=4)
    weights = torch.full((4,), 0.25, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        scores = torch.einsum("k,ikc->ic", weights, torch.from_numpy(probabilities))
        torch.nn.functional.cross_entropy(scores, torch.from_numpy(labels)).backward()
        optimizer.step()
    np.testing.assert_allclose(fit_mix_as_published(probabilities, labels).weights, weights.detach(), atol=1e-6)


@given(WORLDS, st.lists(st.floats(-3, 3), min_size=6, max_size=6))
def test_a_blend_sums_to_one_wherever_the_weights_are(world, numbers):
    probabilities, _ = world
    weights = np.array(numbers[: probabilities.shape[1]])
    for used in (weights, np.full(len(weights), 1 / len(weights))):
        blended = blend(used, probabilities)
        assert (blended >= 0).all()
        np.testing.assert_allclose(blended.sum(axis=1), 1)


def test_a_blend_on_the_simplex_is_the_weighted_mean():
    probabilities = np.array([[[0.9, 0.1], [0.3, 0.7]]])
    np.testing.assert_allclose(blend(np.array([0.25, 0.75]), probabilities), [[0.45, 0.55]])
