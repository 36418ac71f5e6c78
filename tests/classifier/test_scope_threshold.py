"""A threshold of scope chosen by the share of in-scope texts that may be lost."""

import numpy as np
import pytest

from manymetrics.classifier.scope import lower_bound
from manymetrics.errors import InputError, NotEnoughExamples


def test_the_bound_is_students():
    found = lower_bound(np.array([1.0, 2.0, 3.0]), 0.05)
    assert found == pytest.approx(2 - 2.919985580355516 * np.sqrt(1 + 1 / 3))  # t at 95 % with two degrees of freedom


def test_about_the_share_asked_for_lies_below_the_bound():
    rng = np.random.default_rng(0)
    for count in (3, 10, 100):
        below = [rng.standard_normal() < lower_bound(rng.standard_normal(count), 0.1) for _ in range(3000)]
        assert np.mean(below) == pytest.approx(0.1, abs=0.02)


def test_a_larger_share_is_a_higher_threshold(model, shots):
    classifier = model.adapt(shots.texts, shots.labels)
    thresholds = [classifier.scope_threshold(share) for share in (0.01, 0.05, 0.2, 0.5)]
    assert thresholds == sorted(thresholds)
    assert 0 < thresholds[0] < thresholds[-1] < 1


def test_examples_are_judged_without_themselves(model, shots):
    classifier = model.adapt(shots.texts, shots.labels)
    alone = classifier.adapted_.scope.leave_one_out()
    texts = [text for text, _ in classifier.examples_]
    given = classifier.adapted_.examine(classifier.adapted_.support.texts).log_odds
    assert alone.shape == (len(texts),)
    assert (alone < given).all()
    row = texts.index("play some jazz")
    others = [(text, label) for text, label in classifier.examples_ if text != "play some jazz"]
    without = model.adapt(*zip(*others, strict=True)).adapted_
    assert alone[row] == pytest.approx(float(without.examine(classifier.adapted_.support.texts).log_odds[row]), abs=0.1)


def test_counter_examples_lower_the_examples_that_are_like_them(model, shots):
    plain, pulled = model.adapt(shots.texts, shots.labels), model.adapt(shots.texts, shots.labels)
    pulled.fit(shots.texts, shots.labels, ["play some jazz please"])
    before, after = (one.adapted_.scope.leave_one_out() for one in (plain, pulled))
    row = [text for text, _ in plain.examples_].index("play some jazz")
    assert after[row] < before[row]
    assert (after <= before).all()


def test_copies_and_only_examples_do_not_count(model, shots):
    classifier = model.adapt(shots.texts, shots.labels)
    wanted = classifier.scope_threshold(0.1)
    copied = model.adapt((*shots.texts, "a duck", "Play  some JAZZ"), (*shots.labels, "duck", "music"))
    assert copied.scope_threshold(0.1) == pytest.approx(wanted, abs=0.1)
    with pytest.raises(NotEnoughExamples, match=r"fewer than two can be\. Give labels two different examples"):
        model.adapt(["on", "off", "play"], ["lamp", "lamps", "music"]).scope_threshold(0.1)


@pytest.mark.parametrize("share", [0, 1, -0.1, "much", None, float("nan")])
def test_a_share_that_is_none_is_refused(model, shots, share):
    with pytest.raises(InputError, match=r"Found a share of .*\. Give one between 0 and 1, such as 0\.05\."):
        model.adapt(shots.texts, shots.labels).scope_threshold(share)
