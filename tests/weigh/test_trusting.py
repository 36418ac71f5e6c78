"""Scope, calibration and growth of the text classifier, on a model small enough to see through."""

import gc
import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from manymetrics.errors import DataError, InputError, ModelError, NotEnoughExamples
from manymetrics.store import load_classifier
from manymetrics.weigh import FewShotClassifier, Rules
from manymetrics.weigh.lessons import Parts, make_gibberish
from manymetrics.weigh.scope import Scope
from manymetrics.weigh.trust import Trust

NEW = ["lamp on", "any music", "a meeting", "", "something else entirely"]
STRANGE = ["qzx vkq wjj", "0123 !!! 777"]


@pytest.fixture(scope="module")
def model(make_model):
    """Random vectors of 16 dimensions are all somewhat alike, so this one judges by letters alone."""
    return replace(make_model(), trust=Trust(Scope(-3.0, 0.0, 10.0, 0.0, 0.0, 0.0, 0.0)))


@pytest.fixture(scope="module")
def classifier(model, shots):
    return FewShotClassifier(model).fit(shots.texts, shots.labels)


def assert_same(one, other):
    assert one.classes_.tolist() == other.classes_.tolist()
    assert one.weights_ == other.weights_
    assert one.sharpness_ == other.sharpness_
    assert (one.predict_proba(NEW) == other.predict_proba(NEW)).all()
    assert (one.scope_proba(NEW) == other.scope_proba(NEW)).all()


# --- out of scope


def test_examples_are_in_scope_and_gibberish_is_not(classifier, shots):
    assert classifier.scope_proba(shots.texts).min() > classifier.scope_proba(STRANGE).max()
    assert classifier.scope_proba([]).shape == (0,)


def test_rejection_is_a_live_setting_and_needs_no_refit(classifier, model, shots):
    own = FewShotClassifier(model).fit(shots.texts, shots.labels)
    asked = ["turn on the lamp", *STRANGE]
    assert None not in own.predict(asked)
    assert own.set_params(reject=True).predict(asked).tolist() == ["lamp", None, None]
    assert own.set_params(reject=True, rejected="other").predict(asked).tolist() == ["lamp", "other", "other"]
    assert "other" not in own.set_params(reject=0.0).predict(asked)
    assert own.set_params(reject=1.0).predict(asked).tolist() == ["other"] * 3
    own.set_params(reject=False, margin=0.0)
    assert_same(own, classifier)


def test_rejecting_never_changes_another_answer(model, shots, classifier):
    rejecting = FewShotClassifier(model, reject=True).fit(shots.texts, shots.labels)
    for plain, answer in zip(classifier.predict(NEW), rejecting.predict(NEW), strict=True):
        assert answer in (plain, None)
    assert len(rejecting.predict([])) == 0


def test_numbers_as_labels_can_be_rejected(model):
    classifier = FewShotClassifier(model, reject=True, rejected=-1).fit(["lamp on", "lamp off", "music"], [7, 7, 8])
    assert classifier.predict(["lamp on", *STRANGE]).tolist() == [7, -1, -1]


def test_an_ambiguous_text_is_rejected_by_the_margin(model, shots):
    wide = FewShotClassifier(model, margin=0.999).fit(shots.texts, shots.labels)
    assert set(wide.predict(NEW)) == {None}


@pytest.mark.parametrize("reject", [-0.1, 1.5])
def test_a_threshold_that_is_no_probability_is_refused(model, shots, reject):
    with pytest.raises(InputError, match=r"Found reject=.*between 0 and 1"):
        FewShotClassifier(model, reject=reject).fit(shots.texts, shots.labels).predict(NEW)


def test_counter_examples_and_what_is_like_them_are_out_of_scope(model, shots, classifier):
    warned = FewShotClassifier(model, reject=True).fit(shots.texts, shots.labels, ["lamp shop opening hours"])
    asked = ["lamp shop opening hours", "the lamp shop opening hours", "lamp on please"]
    assert warned.predict(asked).tolist() == [None, None, "lamp"]
    assert warned.scope_proba(asked)[0] < 0.01 < classifier.scope_proba(asked)[0]
    assert_same(warned.add_examples(["dim it"], ["lamp"]), warned)
    assert warned.counter_examples_ == ("lamp shop opening hours",)


# --- probabilities


def test_gibberish_never_gets_much_confidence(classifier, model):
    nonsense = make_gibberish(300, np.random.default_rng(0))
    assert classifier.predict_proba(nonsense).max() < 0.9
    two = FewShotClassifier(model).fit(["lamp on", "lamp off", "play music", "music"], [0, 0, 1, 1])
    assert two.predict_proba(nonsense).max() < 0.9


def test_calibrating_keeps_the_likeliest_label(classifier, model, shots):
    raw = classifier._chances(model.vectors.read(NEW))
    assert (raw.argmax(axis=1) == classifier.predict_proba(NEW).argmax(axis=1)).all()


def test_the_published_way_keeps_its_probabilities_as_they_come(model, shots):
    paper = FewShotClassifier(model, mix="paper", adaptive=False).fit(shots.texts, shots.labels)
    assert (paper.predict_proba(NEW) == paper._chances(model.vectors.read(NEW))).all()
    assert paper.sharpness_ == 1
    assert paper.set_params(reject=True).predict(STRANGE).tolist() == [None, None]


# --- growth


def test_shuffled_examples_give_the_same_bits(classifier, model, shots):
    for seed in range(3):
        mixed = shots.take(np.random.default_rng(seed).permutation(len(shots)))
        assert_same(FewShotClassifier(model).fit(mixed.texts, mixed.labels), classifier)


@pytest.mark.parametrize("threshold", [-np.inf, 1.1])
def test_growing_is_the_same_as_starting_over(model, shots, threshold):
    model = replace(model, rules=Rules({}, 5.0, threshold))
    grown = FewShotClassifier(model).fit(shots.texts[:8], shots.labels[:8])
    assert grown.add_examples(shots.texts[8:], shots.labels[8:]) is grown
    whole = FewShotClassifier(model).fit(shots.texts, shots.labels)
    assert (whole.fallback_ is None) == (threshold < 0)
    assert_same(grown, whole)
    grown.add_examples(["a lone duck", "two ducks"], ["duck", "duck"])
    assert grown.predict(["a lone duck"]).tolist() == ["duck"]
    assert_same(grown.forget("duck"), whole)
    grown.add_examples(["no lamp"], ["lamp"]).remove_examples(["no lamp"])
    assert_same(grown, whole)


def test_growth_that_cannot_be_is_refused_and_changes_nothing(classifier, model, shots):
    own = FewShotClassifier(model).fit(shots.texts, shots.labels)
    with pytest.raises(InputError, match="There is no example 'nobody said this' to remove"):
        own.remove_examples(["nobody said this"])
    with pytest.raises(InputError, match="There is no label 'duck' to forget"):
        own.forget("duck")
    with pytest.raises(DataError, match="Found 1 texts and 2 labels"):
        own.add_examples(["a"], ["x", "y"])
    with pytest.raises(NotEnoughExamples, match="examples of one label"):
        own.forget("lamp").forget("music")


def test_five_examples_of_a_fifty_first_label_take_milliseconds(model):
    texts = [f"word{label} sort{number} of thing{label}" for label in range(50) for number in range(5)]
    classifier = FewShotClassifier(model).fit(texts, np.repeat(np.arange(50), 5))
    more = [f"further case {number}" for number in range(5)]
    spent = []
    for _ in range(5):
        with threadpool_limits(1):  # threads that wait for one another count as work on a busy machine
            started = time.process_time()
            classifier.add_examples(more, [50] * 5)
            spent.append(time.process_time() - started)
        classifier.forget(50)
    assert min(spent) < 0.05


def test_151_labels_of_8_examples_fit_in_two_seconds_and_memory_is_linear(model):
    def peak(each):
        texts = [f"word{label} sort{number} of thing{label % 7}" for label in range(151) for number in range(each)]
        labels = np.repeat(np.arange(151), each)
        FewShotClassifier(model).fit(texts[:300], labels[:300])
        gc.collect()
        tracemalloc.start()
        started = time.process_time()
        FewShotClassifier(model).fit(texts, labels)
        spent, (_, most) = time.process_time() - started, tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return spent, most

    (spent, once), (_, twice) = peak(8), peak(16)
    assert spent < 2
    assert twice < 2.3 * once


# --- saved beside its model


@pytest.mark.parametrize("labels", [str, {"lamp": 3, "music": 1, "meeting": 2}.get])
def test_a_saved_classifier_answers_with_the_same_bits(model, shots, tmp_path, labels):
    first = FewShotClassifier(model, reject=0.3, rejected="none").fit(
        shots.texts, [labels(one) for one in shots.labels], ["shop \ud800 hours"]
    )
    first.save(tmp_path / "clf")
    again = load_classifier(tmp_path / "clf", model)
    assert_same(again, first)
    assert again.get_params() == first.get_params()
    assert again.predict(STRANGE).tolist() == ["none", "none"]
    assert sum(file.stat().st_size for file in (tmp_path / "clf").iterdir()) < 10_000
    first.save(tmp_path / "clf")


def test_a_saved_classifier_knows_its_model_after_a_round_trip(model, shots, tmp_path, make_model, classifier):
    from manymetrics.store import load_model

    model.save(tmp_path / "model")
    classifier.save(tmp_path / "clf")
    assert_same(load_classifier(tmp_path / "clf", load_model(tmp_path / "model")), classifier)
    with pytest.raises(ModelError, match=r"clf was adapted from another model .* Load it with its own, or adapt"):
        load_classifier(tmp_path / "clf", replace(make_model(seed=1), trust=model.trust))
    with pytest.raises(ModelError, match="adapted from another model"):
        load_classifier(tmp_path / "clf", replace(model, rules=Rules({"learned": 0.4}, 5.0, -np.inf)))


def test_what_is_no_whole_classifier_is_refused(model, tmp_path, classifier):
    with pytest.raises(ModelError, match="is not a saved classifier"):
        load_classifier(tmp_path / "nowhere", model)
    classifier.save(tmp_path / "clf")
    about = tmp_path / "clf" / "classifier.json"
    about.write_text(about.read_text().replace("lamp", "ramp"))
    with pytest.raises(ModelError, match="clf is damaged"):
        load_classifier(tmp_path / "clf", model)


def test_a_setting_that_is_no_plain_value_is_not_saved(model, shots, tmp_path):
    odd = FewShotClassifier(model, rejected=object()).fit(shots.texts, shots.labels)
    with pytest.raises(InputError, match=r"The setting rejected=.* cannot be saved"):
        odd.save(tmp_path / "clf")


def test_only_a_whole_model_can_have_a_classifier_saved_beside_it(model, shots, tmp_path):
    parts = Parts(model.vectors, model.metrics, model.rules)
    with pytest.raises(InputError, match="cannot be told by a fingerprint"):
        FewShotClassifier(parts).fit(shots.texts, shots.labels).save(tmp_path / "clf")
    assert not (tmp_path / "clf").exists()
