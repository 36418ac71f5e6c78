import numpy as np
import pytest

from manymetrics.classifier import FewShotClassifier
from manymetrics.classifier.scope import Scope, TaskScope, learn_scope
from manymetrics.encode import Features
from manymetrics.errors import DataError, InputError
from manymetrics.specialize import SimilarityMetric
from manymetrics.values import Texts
from manymetrics.weigh.comparison import Comparison, choose_landmarks

NEW = ["lamp on", "any music", "a meeting", "", "something else entirely"]
STRANGE = ["qzx vkq wjj", "0123 !!! 777"]


def planted(level, rng, count=60):
    """What is known of texts that two metrics find about so near the examples."""
    nearness = np.clip(level + 0.1 * rng.standard_normal((count, 2)), -1, 1)
    sizes = np.column_stack([np.log(rng.integers(1, 20, count)), np.full(count, np.log(25))])
    return np.hstack([nearness, nearness - [0.5, 0.3], sizes])


def test_planted_texts_out_of_scope_are_told_apart():
    rng = np.random.default_rng(0)
    inside, outside = ([planted(level, rng) for _ in range(count)] for level, count in ((0.7, 5), (0.3, 8)))
    scope = learn_scope(inside, outside, ["one", "two"])
    assert set(scope.weights) == {"one", "two"}
    assert (scope.log_odds(planted(0.7, rng), ["one", "two"]) > 0).mean() > 0.9
    assert (scope.log_odds(planted(0.3, rng), ["one", "two"]) < 0).mean() > 0.9


def test_the_odds_are_a_linear_function_of_what_is_known():
    scope = Scope(1.0, {"one": (2.0, 3.0)}, length=4.0, examples=5.0)
    known = np.array([[0.1, 0.7, 0.2, 0.9, 0.3, 0.4]])  # nearness of both, less the usual one of both, sizes
    expected = 1 + 2 * 0.1 + 3 * 0.2 + 4 * 0.3 + 5 * 0.4  # of a metric it never met it makes nothing
    assert scope.log_odds(known, ["one", "other"]) == pytest.approx([expected])


def test_weights_that_cannot_be_used_are_refused():
    for broken in ({"offset": np.nan}, {"length": 1e308}, {"weights": {"one": (np.inf, 0.0)}}):
        with pytest.raises(DataError, match="The scope has weights that cannot be used"):
            Scope(**broken)


def test_what_is_known_of_a_text_is_its_nearness_and_sizes(vectors):
    examples = Features(Texts(["lamp on", "lamp off", "the music"]))
    compared = Comparison(examples, examples, choose_landmarks(3), 3)
    scope = TaskScope(Scope(), [SimilarityMetric("words", "frozen", vectors, "matching", 9.0)], compared, Texts())
    asked = Comparison(Features(Texts(["lamp on", "a b c"])), examples, choose_landmarks(3), 3)
    found = scope.features(asked)
    assert found.shape == (2, 4)
    assert found[0, 0] == pytest.approx(1)
    np.testing.assert_allclose(found[:, 0] - found[:, 1], compared.nearest_others(vectors).mean(), atol=1e-6)
    np.testing.assert_allclose(found[:, 2:], np.log([[2, 3], [3, 3]]))


# --- of a classifier


def test_examples_are_in_scope_and_gibberish_is_not(classifier, shots):
    assert classifier.scope_proba(shots.texts).min() > classifier.scope_proba(STRANGE).max()
    assert classifier.scope_proba([]).shape == (0,)


def test_rejection_is_a_live_setting_and_needs_no_refit(classifier, by_letters, shots):
    own = FewShotClassifier(by_letters).fit(shots.texts, shots.labels)
    asked, adapted = ["turn on the lamp", *STRANGE], own.adapted_
    assert None not in own.predict(asked)
    assert own.set_params(reject=True).predict(asked).tolist() == ["lamp", None, None]
    assert own.set_params(reject=True, rejected="other").predict(asked).tolist() == ["lamp", "other", "other"]
    assert "other" not in own.set_params(reject=0.0).predict(asked)
    assert own.set_params(reject=1.0).predict(asked).tolist() == ["other"] * 3
    own.set_params(reject=False, margin=0.0)
    assert own.adapted_ is adapted
    assert (own.predict_proba(NEW) == classifier.predict_proba(NEW)).all()


def test_rejecting_never_changes_another_answer(by_letters, shots, classifier):
    rejecting = FewShotClassifier(by_letters, reject=True).fit(shots.texts, shots.labels)
    for plain, answer in zip(classifier.predict(NEW), rejecting.predict(NEW), strict=True):
        assert answer in (plain, None)
    assert len(rejecting.predict([])) == 0


def test_numbers_as_labels_can_be_rejected(by_letters):
    classifier = FewShotClassifier(by_letters, reject=True, rejected=-1)
    classifier.fit(["lamp on", "lamp off", "music"], [7, 7, 8])
    assert classifier.predict(["lamp on", *STRANGE]).tolist() == [7, -1, -1]


def test_an_ambiguous_text_is_rejected_by_the_margin(by_letters, shots):
    wide = FewShotClassifier(by_letters, margin=0.999).fit(shots.texts, shots.labels)
    assert set(wide.predict(NEW)) == {None}


def test_limits_that_are_no_probabilities_are_refused_when_fitting_and_when_asked(by_letters, shots, classifier):
    for name in ("reject", "margin"):
        for value in (-0.1, 1.5, np.nan, "half", None):
            broken = FewShotClassifier(by_letters, **{name: value})
            with pytest.raises(InputError, match=rf"Found {name}=.*between 0 and 1"):
                broken.fit(shots.texts, shots.labels)
            own = FewShotClassifier(by_letters).fit(shots.texts, shots.labels).set_params(**{name: value})
            for ask in (own.predict, own.predict_proba, own.answer):
                with pytest.raises(InputError, match=rf"Found {name}=.*between 0 and 1"):
                    ask(NEW)


def test_counter_examples_and_what_is_like_them_are_out_of_scope(by_letters, shots, classifier):
    warned = FewShotClassifier(by_letters, reject=True).fit(shots.texts, shots.labels, ["lamp shop opening hours"])
    asked = ["lamp shop opening hours", "the lamp shop opening hours", "lamp on please"]
    assert warned.predict(asked).tolist() == [None, None, "lamp"]
    assert warned.scope_proba(asked)[0] < 0.01 < classifier.scope_proba(asked)[0]
    assert warned.add_examples(["dim it"], ["lamp"]).counter_examples_ == ("lamp shop opening hours",)
    assert warned.predict(asked).tolist() == [None, None, "lamp"]


def test_a_text_that_is_no_nearer_to_a_counter_example_keeps_its_odds(by_letters, shots, classifier):
    warned = FewShotClassifier(by_letters).fit(shots.texts, shots.labels, ["zzyzx"])
    np.testing.assert_allclose(warned.scope_proba(shots.texts), classifier.scope_proba(shots.texts), atol=1e-12)
