import numpy as np
import pytest

from manymetrics.classifier import FewShotClassifier
from manymetrics.errors import DataError, InputError, NotEnoughExamples

NEW = ["lamp on", "any music", "a meeting", "", "something else entirely"]


def test_shuffled_examples_give_the_same_bits(assert_same, classifier, by_letters, shots):
    for seed in range(3):
        mixed = shots.take(np.random.default_rng(seed).permutation(len(shots)))
        assert_same(FewShotClassifier(by_letters).fit(mixed.texts, mixed.labels), classifier)


@pytest.mark.parametrize("falls_back", [False, True])
def test_growing_is_the_same_as_starting_over(assert_same, by_letters, picky, shots, falls_back):
    model = picky if falls_back else by_letters
    grown = FewShotClassifier(model).fit(shots.texts[:8], shots.labels[:8])
    assert grown.add_examples(shots.texts[8:], shots.labels[8:]) is grown
    whole = FewShotClassifier(model).fit(shots.texts, shots.labels)
    assert (whole.fallback_ is not None) == falls_back
    assert_same(grown, whole)
    grown.add_examples(["a lone duck", "two ducks"], ["duck", "duck"])
    assert grown.predict(["a lone duck"]).tolist() == ["duck"]
    assert_same(grown.forget("duck"), whole)
    grown.add_examples(["no lamp"], ["lamp"]).remove_examples(["no lamp"])
    assert_same(grown, whole)


def test_growth_that_cannot_be_is_refused_and_changes_nothing(assert_same, by_letters, shots, classifier):
    own = FewShotClassifier(by_letters).fit(shots.texts, shots.labels)
    adapted = own.classifier_
    for grow, kind, message in (
        (lambda: own.remove_examples(["not said"]), InputError, "There is no example 'not said' to remove"),
        (lambda: own.forget("duck"), InputError, "There is no label 'duck' to forget"),
        (lambda: own.add_examples(["a"], ["x", "y"]), DataError, "Found 1 texts and 2 labels"),
        (lambda: own.add_examples(["a"], [3]), DataError, "Some labels are strings and some are not"),
        (lambda: own.remove_examples(shots.texts[:10]), NotEnoughExamples, "examples of one label"),
    ):
        with pytest.raises(kind, match=message):
            grow()
        assert own.classifier_ is adapted
    assert_same(own, classifier)
