"""The rate and the steps of the paper's mix, chosen on episodes with planted answers."""

import numpy as np
import pytest

from manymetrics.encode import random_vectors
from manymetrics.measure import Head
from manymetrics.specialize import SharedLabelMetric
from manymetrics.specialize.metric import FROZEN, LEARNED
from manymetrics.values import Episode, LabelledTexts, Texts
from manymetrics.weigh.published import RATES, STEPS, Descent, choose_descent, tune_descent

WORDS = random_vectors(rows=64, dimensions=8)
LABELS = ("bad", "good")


def metric(name, *, right, kind=LEARNED):
    bad, good = WORDS.encode(Texts(LABELS))
    weights = np.stack([bad - good, good - bad], axis=1) * (3 if right else -3)
    return SharedLabelMetric(name, kind, WORDS, Head(weights, np.zeros(2)), LABELS, np.full(2, 0.5))


def episode(shots=2):
    support, query = (LabelledTexts(Texts(LABELS * count), np.array([0, 1] * count)) for count in (shots, 10))
    return Episode("one", LABELS, support, query, Texts(LABELS))


def test_weights_move_as_far_as_the_episodes_ask_for():
    right, wrong = metric("right", right=True), [metric(f"wrong {number}", right=False) for number in range(2)]
    chosen = tune_descent([right, *wrong], [episode(), episode(4)])
    assert chosen.rate * chosen.steps > 0.1, "even weights answer wrongly, two against one"
    assert tune_descent([right, metric("right too", right=True)], [episode()]) == Descent(RATES[0], STEPS[0])


@pytest.mark.parametrize("shots", [0, 51])
def test_with_nothing_to_choose_on_they_stay_as_they_were(shots):
    pair = [metric("right", right=True), metric("wrong", right=False)]
    assert tune_descent(pair, [episode(shots)] if shots else []) == Descent(0.1, 40)
    others = [metric("right", right=True), metric("frozen", right=False, kind=FROZEN)]
    assert tune_descent(others, [episode()]) == Descent(0.1, 40), "there is one metric to mix"
    assert choose_descent([]) == (Descent(RATES[0], STEPS[0]), 0.0)
