"""A threshold of scope chosen by the share of in-scope texts that may be lost."""

import numpy as np
import pytest

from manymetrics.classifier.confidence import lower_bound
from manymetrics.encode import EmbeddedTexts
from manymetrics.errors import InputError, NotEnoughExamples


def test_the_bound_is_students():
    found = lower_bound(np.array([1.0, 2.0, 3.0]), 0.05)
    assert found == pytest.approx(2 - 2.919985580355516 * np.sqrt(1 + 1 / 3))  # t at 95 % with two degrees of freedom


def test_a_larger_share_is_a_higher_threshold(model, shots):
    classifier = model.adapt(shots.texts, shots.labels)
    thresholds = [classifier.scope_threshold(share) for share in (0.01, 0.05, 0.2, 0.5)]
    assert thresholds == sorted(thresholds)
    assert 0 < thresholds[0] < thresholds[-1] < 1


def test_examples_are_judged_without_themselves(model, shots):
    classifier = model.adapt(shots.texts, shots.labels)
    alone = classifier.classifier_.scope.log_odds()
    texts = [text for text, _ in classifier.examples_]
    given = classifier.classifier_.scope.log_odds(EmbeddedTexts(texts))
    assert alone.shape == (len(texts),)
    assert (alone < given).all()
    row = texts.index("play some jazz")
    others = [(text, label) for text, label in classifier.examples_ if text != "play some jazz"]
    without = model.adapt(*zip(*others, strict=True)).classifier_.scope
    assert alone[row] == pytest.approx(float(without.log_odds(EmbeddedTexts(["play some jazz"]))[0]), abs=0.3)


def test_counter_examples_lower_the_examples_that_are_like_them(model, shots):
    plain, pulled = model.adapt(shots.texts, shots.labels), model.adapt(shots.texts, shots.labels)
    pulled.fit(shots.texts, shots.labels, ["play some jazz please"])
    before, after = (one.classifier_.scope.log_odds() for one in (plain, pulled))
    row = [text for text, _ in plain.examples_].index("play some jazz")
    assert after[row] < before[row]
    assert (after <= before).all()


def test_only_examples_do_not_count(model, shots):
    wanted = model.adapt(shots.texts, shots.labels).scope_threshold(0.1)
    lone = model.adapt((*shots.texts, "a duck"), (*shots.labels, "duck"))
    assert lone.scope_threshold(0.1) == pytest.approx(wanted, abs=0.1)
    with pytest.raises(NotEnoughExamples, match=r"fewer than two can be\. Give labels two different examples"):
        model.adapt(["on", "off", "play"], ["lamp", "lamps", "music"]).scope_threshold(0.1)


@pytest.mark.parametrize("share", [0, 1, -0.1, "much", None, float("nan")])
def test_a_share_that_is_none_is_refused(model, shots, share):
    with pytest.raises(InputError, match=r"Found a share of .*\. Give one between 0 and 1, such as 0\.05\."):
        model.adapt(shots.texts, shots.labels).scope_threshold(share)
