"""The paper's mix: its weights, its rate and steps chosen on planted episodes, and its fallback."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.encode import EmbeddedTexts, random_vectors
from manymetrics.errors import InputError
from manymetrics.measure import Head
from manymetrics.specialize import LabelHead, Metric
from manymetrics.specialize.metric import FROZEN, LEARNED
from manymetrics.values import Episode, Examples
from manymetrics.weigh.published import (
    RATES,
    STEPS,
    GradientSettings,
    MetricAnswers,
    PublishedTask,
    SingleTaskNetwork,
    answer_task,
    blend,
    choose_gradient,
    descend,
    tune_gradient,
)

WORDS = random_vectors(rows=64, dimensions=8)
LABELS = ("bad", "good")


def fit_alpha(probabilities, labels, gradient):
    return descend(probabilities, labels, gradient)[-1]


def metric(name, *, right, kind=LEARNED):
    bad, good = WORDS.encode(LABELS)
    weights = np.stack([bad - good, good - bad], axis=1) * (3 if right else -3)
    return Metric(name, kind, WORDS, shared=LabelHead(Head(weights, np.zeros(2)), LABELS, np.full(2, 0.5)))


def episode(shots=2):
    support, query = (Examples(LABELS * count, LABELS * count) for count in (shots, 10))
    return Episode("one", support, query, LABELS)


def test_weights_move_as_far_as_the_episodes_ask_for():
    right, wrong = metric("right", right=True), [metric(f"wrong {number}", right=False) for number in range(2)]
    chosen = tune_gradient([right, *wrong], [episode(), episode(4)])
    assert chosen.rate * chosen.steps > 0.1, "even weights answer wrongly, two against one"
    assert tune_gradient([right, metric("right too", right=True)], [episode()]) == GradientSettings(RATES[0], STEPS[0])


@pytest.mark.parametrize("shots", [0, 51])
def test_with_nothing_to_choose_on_they_stay_as_they_were(shots):
    pair = [metric("right", right=True), metric("wrong", right=False)]
    assert tune_gradient(pair, [episode(shots)] if shots else []) == GradientSettings(0.1, 40)
    others = [metric("right", right=True), metric("frozen", right=False, kind=FROZEN)]
    assert tune_gradient(others, [episode()]) == GradientSettings(0.1, 40), "there is one metric to mix"
    assert choose_gradient([]) == (GradientSettings(RATES[0], STEPS[0]), 0.0)


# --- the weights


def answers(seed, *, shots=12, metrics=3, classes=3, sharp=1.0):
    """Probabilities of several metrics for some shots, and the shots' labels."""
    rng = np.random.default_rng(seed)
    logits = sharp * rng.standard_normal((shots, metrics, classes))
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    return probabilities, rng.integers(classes, size=shots)


def test_the_weights_start_uniform_and_stay_so_where_no_shot_can_be_left_out():
    probabilities, labels = answers(1)
    path = descend(probabilities, labels, GradientSettings())
    assert path.shape == (41, 3)
    assert path[0].tolist() == [1 / 3] * 3
    assert fit_alpha(np.full_like(probabilities, np.nan), labels, GradientSettings()).tolist() == [1 / 3] * 3
    np.testing.assert_array_equal(fit_alpha(probabilities, labels, GradientSettings(0.1, 7)), path[7])


def test_the_descent_is_adam_on_the_cross_entropy():
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare the steps with")
    probabilities, labels = answers(2, metrics=4)
    weights = torch.full((4,), 0.25, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        scores = torch.einsum("k,ikc->ic", weights, torch.from_numpy(probabilities))
        torch.nn.functional.cross_entropy(scores, torch.from_numpy(labels)).backward()
        optimizer.step()
    np.testing.assert_allclose(fit_alpha(probabilities, labels, GradientSettings()), weights.detach(), atol=1e-6)


WORLDS = st.builds(answers, st.integers(0, 99), metrics=st.integers(1, 6), sharp=st.sampled_from([0.1, 1.0, 10.0]))


@given(WORLDS, st.lists(st.floats(-3, 3), min_size=6, max_size=6))
def test_a_blend_sums_to_one_wherever_the_weights_are(world, numbers):
    probabilities, _ = world
    weights = np.array(numbers[: probabilities.shape[1]])
    for used in (weights, np.full(len(weights), 1 / len(weights))):
        blended = blend(used, probabilities)
        assert (blended >= 0).all()
        np.testing.assert_allclose(blended.sum(axis=1), 1)


# --- a task


def test_every_metric_answers_the_shots_and_the_texts_of_a_task():
    pair, one = [metric("right", right=True), metric("wrong", right=False)], episode()
    found = answer_task(pair, one.support, one.query.texts)
    assert found.shots.shape == (4, 2, 2)
    assert found.texts.shape == (20, 2, 2)
    assert found.best_accuracy == 1.0
    assert MetricAnswers(np.full((2, 1, 2), np.nan), np.array([0, 1]), found.texts).best_accuracy == np.inf
    np.testing.assert_allclose(found.probabilities(GradientSettings(0.1, 0)), found.texts.mean(axis=1))


def test_a_published_task_answers_by_the_blend_of_its_metrics():
    pair, one = (metric("right", right=True), metric("wrong", right=False)), episode()
    task = PublishedTask.fit(pair, one.support, GradientSettings(), adaptive=True)
    assert (task.network, task.reason) == (None, None)
    expected = answer_task(pair, one.support, one.query.texts).probabilities(GradientSettings())
    np.testing.assert_allclose(np.exp(task.logits(EmbeddedTexts(one.query.texts))), expected, atol=1e-6)
    with pytest.raises(InputError, match="nothing to mix as published"):
        PublishedTask.fit((), one.support, GradientSettings(), adaptive=True)


def test_the_published_fallback_needs_a_network_over_word_vectors():
    wrong, one = (metric("wrong", right=False),), episode()
    with pytest.raises(InputError, match="this model has none"):
        PublishedTask.fit(wrong, one.support, GradientSettings(), adaptive=True)
    assert PublishedTask.fit(wrong, one.support, GradientSettings(), adaptive=False).reason is None


def test_the_network_learns_its_own_shots_and_the_same_ones_to_the_same_bits():
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    texts = ["lamp on", "lamp off", "the lamp", "play music", "music now", "loud music", "call anna", "anna"]
    shots, asked = Examples(texts, "aaabbbcc"), EmbeddedTexts(["a lamp", "music", "anna"])
    first, again = (SingleTaskNetwork.fit(WORDS, shots).logits(asked) for _ in range(2))
    assert first.argmax(axis=1).tolist() == [0, 1, 2]
    assert (first == again).all()
