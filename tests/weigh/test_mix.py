import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manymetrics.errors import DataError, DidNotConverge
from manymetrics.weigh import fit_mix, fit_mix_as_published
from manymetrics.weigh.mix import blend, fit_posterior


def answers(seed, *, shots=12, metrics=3, classes=3, sharp=1.0):
    """Chances of several metrics for some shots, and the shots' labels."""
    rng = np.random.default_rng(seed)
    logits = sharp * rng.standard_normal((shots, metrics, classes))
    chances = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    return chances, rng.integers(classes, size=shots)


def objective(weights, chances, labels, prior, strength):
    """What fit_mix minimises, per shot and per shot's worth of prior, as its docstring says."""
    right = np.maximum(chances[np.arange(len(labels)), :, labels], 1e-12)
    spread = np.sum(np.where(weights > 0, weights * np.log(np.maximum(weights, 1e-300) / prior), 0))
    return (-np.log(right @ weights).sum() + strength * spread) / (len(labels) + strength)


WORLDS = st.builds(
    answers,
    st.integers(0, 2**32 - 1),
    shots=st.integers(1, 30),
    metrics=st.integers(1, 6),
    classes=st.integers(2, 5),
    sharp=st.sampled_from([0.1, 1.0, 10.0, 100.0]),
)
STRENGTHS = st.floats(0.01, 100)


@settings(deadline=None, max_examples=60)
@given(WORLDS, STRENGTHS)
def test_weights_lie_on_the_simplex(world, strength):
    chances, labels = world
    count = chances.shape[1]
    mix = fit_mix(chances, labels, prior=np.full(count, 1 / count), strength=strength)
    assert (mix.weights >= 0).all()
    assert mix.weights.sum() == pytest.approx(1, abs=1e-9)
    assert mix.gap <= 1e-6


@settings(deadline=None, max_examples=30)
@given(WORLDS, STRENGTHS, st.randoms(use_true_random=False))
def test_the_order_of_the_metrics_only_orders_the_weights(world, strength, random):
    chances, labels = world
    order = random.sample(range(chances.shape[1]), chances.shape[1])
    prior = np.arange(1.0, 1 + chances.shape[1])
    straight = fit_mix(chances, labels, prior=prior, strength=strength).weights
    shuffled = fit_mix(chances[:, order], labels, prior=prior[order], strength=strength).weights
    np.testing.assert_allclose(shuffled, straight[order], atol=1e-9)


@pytest.mark.filterwarnings("ignore:fit_mix stopped")
@settings(deadline=None, max_examples=30)
@given(WORLDS, st.floats(0.5, 50), st.integers(0, 99))
def test_the_gap_is_no_smaller_than_what_any_other_weights_gain(world, strength, seed):
    chances, labels = world
    count = chances.shape[1]
    prior = np.full(count, 1 / count)
    best = fit_mix(chances, labels, prior=prior, strength=strength).weights
    others = [best, *np.random.default_rng(seed).dirichlet(np.ones(count), 50)]
    lowest = min(objective(other, chances, labels, prior, strength) for other in others)
    for most in (1, 3, 10):
        mix = fit_mix(chances, labels, prior=prior, strength=strength, max_steps=most)
        assert objective(mix.weights, chances, labels, prior, strength) - lowest <= mix.gap + 1e-9


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("strength", [0.5, 5.0])
def test_no_weights_on_a_fine_grid_are_better(seed, strength):
    chances, labels = answers(seed)
    prior = np.array([0.5, 0.3, 0.2])
    mix = fit_mix(chances, labels, prior=prior, strength=strength)
    steps = np.linspace(0, 1, 41)
    grid = [np.array([a, b, 1 - a - b]) for a, b in itertools.product(steps, steps) if a + b <= 1]
    best = min(objective(weights, chances, labels, prior, strength) for weights in grid)
    assert objective(mix.weights, chances, labels, prior, strength) <= best + 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_the_objective_is_the_optimum_that_cvxpy_finds(seed):
    cvxpy = pytest.importorskip("cvxpy", reason="cvxpy is not installed: nothing to compare the optimum with")
    chances, labels = answers(seed, shots=20, metrics=5, sharp=2.0)
    prior, strength = np.full(5, 0.2), 2.0
    right = chances[np.arange(20), :, labels]
    weights = cvxpy.Variable(5, nonneg=True)
    cost = -cvxpy.sum(cvxpy.log(right @ weights)) + strength * cvxpy.sum(cvxpy.kl_div(weights, prior))
    cvxpy.Problem(cvxpy.Minimize(cost), [cvxpy.sum(weights) == 1]).solve()
    mix = fit_mix(chances, labels, prior=prior, strength=strength)
    ours = objective(mix.weights, chances, labels, prior, strength)
    theirs = objective(np.maximum(weights.value, 0), chances, labels, prior, strength)
    assert ours == pytest.approx(theirs, abs=1e-5)
    np.testing.assert_allclose(mix.weights, weights.value, atol=1e-2)


def test_an_infinite_strength_gives_the_prior():
    chances, labels = answers(0)
    mix = fit_mix(chances, labels, prior=np.array([2.0, 1.0, 1.0]), strength=np.inf)
    assert mix.weights.tolist() == [0.5, 0.25, 0.25]


def test_a_metric_that_is_always_right_gets_nearly_all_the_weight_as_shots_come_in():
    def weight(shots):
        chances = np.tile([[[0.99, 0.01], [0.5, 0.5]]], (shots, 1, 1))
        return fit_mix(chances, np.zeros(shots, int), prior=np.array([0.5, 0.5]), strength=5.0).weights[0]

    assert 0.5 < weight(1) < weight(10) < weight(1000)
    assert weight(1000) > 0.99


def test_with_a_strength_of_one_a_weight_is_the_chance_that_the_task_is_the_clusters_own():
    chances = np.array([[[0.8, 0.2], [0.4, 0.6]], [[0.5, 0.5], [0.25, 0.75]]])
    voices, prior = np.array([0, 1]), np.array([0.2, 0.8])
    mix = fit_posterior(chances, np.zeros(2, int), prior=prior, strength=1.0, voices=voices)
    assert mix.weights == pytest.approx([0.2 * 0.4 / (0.2 * 0.4 + 0.8 * 0.1), 0.8 * 0.1 / (0.2 * 0.4 + 0.8 * 0.1)])


@pytest.mark.parametrize("strength", [2, 5])
def test_in_a_posterior_as_many_shots_as_the_strength_count_as_one(strength):
    (chances, labels), prior, voices = answers(0, shots=6), np.array([0.5, 0.3, 0.2]), np.array([0, 1, 0])
    one = fit_posterior(chances, labels, prior=prior, strength=1.0, voices=voices)
    chances, labels = chances.repeat(strength, axis=0), labels.repeat(strength)
    many = fit_posterior(chances, labels, prior=prior, strength=strength, voices=voices)
    np.testing.assert_allclose(many.weights, one.weights)


@settings(deadline=None, max_examples=30)
@given(WORLDS, STRENGTHS)
def test_a_posterior_lies_on_the_simplex_and_is_the_prior_where_shots_tell_nothing(world, strength):
    chances, labels = world
    prior, voices = np.arange(1.0, 1 + chances.shape[1]), np.arange(chances.shape[1]) % 2
    weights = fit_posterior(chances, labels, prior=prior, strength=strength, voices=voices).weights
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1, abs=1e-9)
    for nothing, told in ((np.full_like(chances, np.nan), strength), (chances, np.inf)):
        weights = fit_posterior(nothing, labels, prior=prior, strength=told, voices=voices).weights
        np.testing.assert_allclose(weights, prior / prior.sum())


@pytest.mark.parametrize("seed", range(4))
def test_metrics_of_one_voice_keep_the_prior_among_themselves_and_weigh_as_their_mixture(seed):
    chances, labels = answers(seed, metrics=4)
    prior = np.array([0.3, 0.2, 0.1, 0.4])
    mix = fit_posterior(chances, labels, prior=prior, strength=1.0, voices=np.array([7, 3, 7, 5]))
    assert mix.weights[0] / mix.weights[2] == pytest.approx(3)
    spoken = np.stack([0.75 * chances[:, 0] + 0.25 * chances[:, 2], chances[:, 1], chances[:, 3]], axis=1)
    three = fit_posterior(spoken, labels, prior=np.array([0.4, 0.2, 0.4]), strength=1.0, voices=np.arange(3))
    np.testing.assert_allclose(mix.weights[[0, 1, 3]], three.weights * [0.75, 1, 1])


@pytest.mark.parametrize("strength", [0.0, -1.0, np.nan])
def test_a_posterior_of_a_strength_that_is_not_above_zero_is_refused(strength):
    with pytest.raises(DataError, match="Give a number above 0"):
        fit_posterior(*answers(0), prior=np.full(3, 1 / 3), strength=strength, voices=np.arange(3))


def test_shots_that_cannot_be_left_out_say_nothing():
    chances, labels = answers(3)
    prior = np.full(3, 1 / 3)
    kept = np.arange(12) % 3 > 0
    missing = chances.copy()
    missing[~kept] = np.nan
    np.testing.assert_allclose(
        fit_mix(missing, labels, prior=prior, strength=1.0).weights,
        fit_mix(chances[kept], labels[kept], prior=prior, strength=1.0).weights,
    )
    assert fit_mix(missing[~kept], labels[~kept], prior=prior, strength=1.0).weights.tolist() == prior.tolist()


def test_a_shot_one_metric_knows_nothing_of_is_skipped_for_all():
    chances, labels = answers(4, shots=6)
    chances[2, 1] = np.nan
    others = [0, 1, 3, 4, 5]
    prior = np.full(3, 1 / 3)
    np.testing.assert_allclose(
        fit_mix(chances, labels, prior=prior, strength=1.0).weights,
        fit_mix(chances[others], labels[others], prior=prior, strength=1.0).weights,
    )


def test_metrics_that_all_rule_out_the_right_answer_leave_the_prior():
    chances = np.tile([[[0.0, 1.0], [0.0, 1.0]]], (4, 1, 1))
    mix = fit_mix(chances, np.zeros(4, int), prior=np.array([0.7, 0.3]), strength=1.0)
    np.testing.assert_allclose(mix.weights, [0.7, 0.3], atol=1e-6)


def test_chances_of_the_wrong_shape_are_refused():
    with pytest.raises(
        DataError, match=r"chances of shape \(12, 3, 3\) for 12 labels and 2 metrics\. Give \(shots, metrics"
    ):
        fit_mix(answers(0)[0], np.zeros(12, int), prior=np.ones(2), strength=1.0)
    with pytest.raises(DataError, match=r"for 5 labels and 3 metrics"):
        fit_mix(answers(0)[0], np.zeros(5, int), prior=np.ones(3), strength=1.0)


@pytest.mark.parametrize("prior", [[1.0, 0.0, 1.0], [1.0, -1.0, 1.0], [np.nan, 1.0, 1.0]])
def test_a_prior_that_rules_a_metric_out_is_refused(prior):
    with pytest.raises(DataError, match="prior"):
        fit_mix(*answers(0), prior=np.array(prior), strength=1.0)


def test_stopping_early_is_a_warning_that_says_what_to_turn():
    with pytest.warns(DidNotConverge, match=r"fit_mix stopped after 1 steps with gap .* Raise max_steps, or loosen"):
        fit_mix(*answers(0, sharp=5.0), prior=np.full(3, 1 / 3), strength=0.1, max_steps=1)


def test_the_published_fit_takes_forty_steps_from_uniform():
    chances, labels = answers(1)
    mix = fit_mix_as_published(chances, labels)
    assert mix.steps == 40
    assert fit_mix_as_published(np.full_like(chances, np.nan), labels).weights.tolist() == [1 / 3] * 3


def test_the_published_weights_can_leave_the_simplex():
    good, bad = [0.9, 0.1], [0.1, 0.9]
    chances = np.tile([[good, bad]], (6, 1, 1))
    weights = fit_mix_as_published(chances, np.zeros(6, int)).weights
    assert weights[0] > 1
    assert weights[1] < 0


def test_the_published_fit_is_adam_on_the_cross_entropy():
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare the steps with")
    chances, labels = answers(2, metrics=4)
    weights = torch.full((4,), 0.25, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        scores = torch.einsum("k,ikc->ic", weights, torch.from_numpy(chances))
        torch.nn.functional.cross_entropy(scores, torch.from_numpy(labels)).backward()
        optimizer.step()
    np.testing.assert_allclose(fit_mix_as_published(chances, labels).weights, weights.detach(), atol=1e-6)


@given(WORLDS, st.lists(st.floats(-3, 3), min_size=6, max_size=6))
def test_a_blend_sums_to_one_wherever_the_weights_are(world, numbers):
    chances, _ = world
    weights = np.array(numbers[: chances.shape[1]])
    for used in (weights, np.full(len(weights), 1 / len(weights))):
        blended = blend(used, chances)
        assert (blended >= 0).all()
        np.testing.assert_allclose(blended.sum(axis=1), 1)


def test_a_blend_on_the_simplex_is_the_weighted_mean():
    chances = np.array([[[0.9, 0.1], [0.3, 0.7]]])
    np.testing.assert_allclose(blend(np.array([0.25, 0.75]), chances), [[0.45, 0.55]])
