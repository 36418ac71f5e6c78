"""Whether label names are informative, on planted similarities."""

import numpy as np
import pytest

from manymetrics.weigh.task_metric import are_words, log_odds_of_names


def similarity(labels, *, n_classes, gain, seed):
    """Of shots to names: higher for the name of the own label by `gain`."""
    rng = np.random.default_rng(seed)
    return 0.5 + 0.1 * rng.standard_normal((len(labels), n_classes)) + gain * np.eye(n_classes)[labels]


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_names_that_resemble_their_shots_are_informative_and_shuffled_or_random_ones_are_not(n_classes):
    labels, sizes = np.arange(5 * n_classes) % n_classes, {"n_classes": n_classes}
    for seed in range(10):
        assert log_odds_of_names(similarity(labels, gain=0.2, seed=seed, **sizes), labels) > 0
        assert log_odds_of_names(similarity((labels + 1) % n_classes, gain=0.2, seed=seed, **sizes), labels) < 0
    odds = [log_odds_of_names(similarity(labels, gain=0.0, seed=seed, **sizes), labels) for seed in range(100)]
    assert np.mean(np.array(odds) > 0) <= 0.2


def test_a_name_that_is_similar_to_every_text_says_nothing():
    labels = np.array([0, 0, 0, 1, 1, 1])
    assert log_odds_of_names(np.tile([0.9, 0.1], (6, 1)), labels) == pytest.approx(0)
    told = np.eye(2)[labels] * 0.3
    assert log_odds_of_names(told + np.array([0.4, 0.0]), labels) == pytest.approx(log_odds_of_names(told, labels))


def test_without_shots_the_odds_are_even():
    assert log_odds_of_names(np.zeros((0, 3)), np.zeros(0, dtype=int)) == 0.0


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["turn on", "turn off"], True),
        (["class 3", "class 4"], False),
        (["1", "2"], False),
        (["a", "b"], False),
        (["intent 1", "play music"], True),
        (["label", "category", "music"], False),
    ],
)
def test_numbers_letters_and_words_for_any_label_are_no_names(names, expected):
    assert are_words(names) is expected
