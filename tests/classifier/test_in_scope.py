"""Which texts a classifier rejects, and a threshold chosen by the share of in-scope texts that may be lost."""

import numpy as np
import pytest
from sklearn.metrics import classification_report

from manymetrics.classifier import FewShotClassifier
from manymetrics.encode import EmbeddedTexts
from manymetrics.errors import InputError, NotEnoughExamples

NEW = ["lamp on", "any music", "a meeting", "", "something else entirely"]
STRANGE = ["qzx vkq wjj", "0123 !!! 777"]


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


# --- a threshold by the share that is lost


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
