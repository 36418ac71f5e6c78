"""Which texts are in scope: planted features, and a classifier that rejects."""

import numpy as np
import pytest
from sklearn.metrics import classification_report

from manymetrics.classifier import FewShotClassifier
from manymetrics.classifier.confidence import DEFAULTS, Scope, TaskScope
from manymetrics.classifier.learn_scope import learn_scope
from manymetrics.encode import CharNgramEncoder, EmbeddedTexts
from manymetrics.errors import DataError, InputError

NEW = ["lamp on", "any music", "a meeting", "", "something else entirely"]
STRANGE = ["qzx vkq wjj", "0123 !!! 777"]


def planted(level, rng, count=60):
    """The features of texts that two encoders find about so near the examples."""
    nearest = np.clip(level + 0.1 * rng.standard_normal((count, 2)), -1, 1)
    sizes = np.column_stack([np.log(rng.integers(1, 20, count)), np.full(count, np.log(25))])
    return np.hstack([nearest, nearest - [0.5, 0.3], sizes])


def log_odds(scope, features):
    return scope.coefficients[0] + features @ scope.coefficients[1:]


def test_planted_texts_out_of_scope_are_detected():
    rng = np.random.default_rng(0)
    inside, outside = ([planted(level, rng) for _ in range(count)] for level, count in ((0.7, 5), (0.3, 8)))
    scope = learn_scope(inside, outside, 8)
    assert (log_odds(scope, planted(0.7, rng)) > 0).mean() > 0.9
    assert (log_odds(scope, planted(0.3, rng)) < 0).mean() > 0.9


def test_the_fewer_the_tasks_the_nearer_the_defaults():
    rng = np.random.default_rng(0)
    inside, outside = ([planted(level, rng) for _ in range(4)] for level in (0.9, 0.8))
    moved = [
        np.abs(np.subtract(learn_scope(inside, outside, n_tasks).coefficients, DEFAULTS)).sum()
        for n_tasks in (1, 10, 1000)
    ]
    assert moved == sorted(moved)


@pytest.mark.parametrize("broken", [(0.0,) * 6, (np.nan,) * 7, (1e308,) * 7, (0.0,) * 6 + (np.inf,)])
def test_coefficients_that_cannot_be_used_are_refused(broken):
    with pytest.raises(DataError, match="The scope model has coefficients that cannot be used"):
        Scope(broken)


EXAMPLES = ["lamp on", "lamp off", "the music"]


def test_the_features_of_a_text_are_its_nearest_examples_and_sizes(vectors):
    letters = CharNgramEncoder.from_texts(EXAMPLES, buckets=2**10)
    scope = TaskScope(Scope(), [vectors, letters], EmbeddedTexts(EXAMPLES))
    found = scope.features(EmbeddedTexts(["lamp on", "a b c"]))
    assert found.shape == (2, 6)
    np.testing.assert_allclose(scope.log_odds(EmbeddedTexts(["lamp on", "a b c"])), log_odds(Scope(), found))
    np.testing.assert_allclose(found[0, :2], 1, atol=1e-5)
    usual = found[:, :2] - found[:, 2:4]
    np.testing.assert_allclose(usual[0], usual[1], atol=1e-6)
    np.testing.assert_allclose(found[:, 4:], np.log([[2, 3], [3, 3]]))


def test_copies_of_examples_do_not_change_what_is_in_scope(vectors):
    asked = EmbeddedTexts(["lamp on", "a lamp", "a b c", ""])
    plain = TaskScope(Scope(), [vectors], EmbeddedTexts(EXAMPLES))
    copied = TaskScope(Scope(), [vectors], EmbeddedTexts([*EXAMPLES, *EXAMPLES, "LAMP  on"]))
    np.testing.assert_array_equal(copied.log_odds(asked), plain.log_odds(asked))
    np.testing.assert_array_equal(copied.log_odds(), plain.log_odds())


def test_an_example_that_is_left_out_is_compared_with_the_others_alone(vectors):
    scope = TaskScope(Scope(), [vectors], EmbeddedTexts(EXAMPLES))
    assert (scope.log_odds() < scope.log_odds(EmbeddedTexts(EXAMPLES))).all()


# --- of a classifier


def test_examples_are_in_scope_and_gibberish_is_not(classifier, shots):
    assert classifier.scope_proba(shots.texts).min() > classifier.scope_proba(STRANGE).max()


def test_rejection_is_a_live_setting_and_needs_no_refit(classifier, by_letters, shots):
    own = FewShotClassifier(by_letters).fit(shots.texts, shots.labels)
    asked, adapted = ["turn on the lamp", *STRANGE], own.classifier_
    assert "rejected" not in own.predict(asked)
    assert own.set_params(reject=True).predict(asked).tolist() == ["lamp", "rejected", "rejected"]
    assert own.set_params(reject=True, rejected="other").predict(asked).tolist() == ["lamp", "other", "other"]
    assert "other" not in own.set_params(reject=0.0).predict(asked)
    assert own.set_params(reject=1.0).predict(asked).tolist() == ["other"] * 3
    own.set_params(reject=False, margin=0.0)
    assert own.classifier_ is adapted
    assert (own.predict_proba(NEW) == classifier.predict_proba(NEW)).all()


def test_rejecting_never_changes_another_answer(by_letters, shots, classifier):
    rejecting = FewShotClassifier(by_letters, reject=True).fit(shots.texts, shots.labels)
    for plain, answer in zip(classifier.predict(NEW), rejecting.predict(NEW), strict=True):
        assert answer in (plain, "rejected")


@pytest.mark.parametrize("labels", [("lamp", "music"), (7, 8), (False, True), (0.5, 1.5)])
def test_rejected_texts_are_a_label_of_their_own_in_a_report(by_letters, labels):
    classifier = FewShotClassifier(by_letters, reject=True)
    classifier.fit(["lamp on", "lamp off", "music"], [labels[place] for place in (0, 0, 1)])
    answers = classifier.predict(["lamp on", *STRANGE])
    expected = "rejected" if isinstance(labels[0], str) else -1
    assert answers.tolist() == [labels[0], expected, expected]
    if not isinstance(labels[0], float):  # of which scikit-learn makes no classes
        report = classification_report([labels[0], expected, expected], answers, output_dict=True)
        assert report[str(expected)]["support"] == 2


@pytest.mark.parametrize("labels", [("lamp", "rejected"), (7, -1)])
def test_a_label_that_rejected_texts_would_have_is_refused_until_another_is_set(by_letters, labels):
    classifier = FewShotClassifier(by_letters).fit(["lamp on", "music"], labels)
    assert classifier.predict(["lamp on"]).tolist() == [labels[0]]
    with pytest.raises(InputError, match=rf"The examples have the label {labels[1]!r}, as rejected texts would"):
        classifier.set_params(reject=True).predict(STRANGE)
    assert classifier.set_params(rejected=None).predict(STRANGE).tolist() == [None, None]


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
    assert warned.predict(asked).tolist() == ["rejected", "rejected", "lamp"]
    assert warned.scope_proba(asked)[0] < 0.01 < classifier.scope_proba(asked)[0]
    assert warned.add_examples(["dim it"], ["lamp"]).counter_examples_ == ("lamp shop opening hours",)
    assert warned.predict(asked).tolist() == ["rejected", "rejected", "lamp"]


def test_a_text_that_is_no_nearer_to_a_counter_example_keeps_its_odds(by_letters, shots, classifier):
    warned = FewShotClassifier(by_letters).fit(shots.texts, shots.labels, ["zzyzx"])
    np.testing.assert_allclose(warned.scope_proba(shots.texts), classifier.scope_proba(shots.texts), atol=1e-12)
