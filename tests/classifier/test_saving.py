"""A classifier is the same after saving and loading, and after growing as after starting over."""

import json

import numpy as np
import pytest

from manymetrics.classifier import FewShotClassifier
from manymetrics.errors import DataError, InputError, ModelError, NotEnoughExamples
from manymetrics.model import load_classifier, load_model

NEW = ["lamp on", "any music", "a meeting", "", "something else entirely"]
STRANGE = ["qzx vkq wjj", "0123 !!! 777"]


def test_a_saved_classifier_answers_with_the_same_bits(assert_same, by_letters, shots, tmp_path):
    for kind in (str, {"lamp": 3, "music": 1, "meeting": 2}.get, {"lamp": 0.5, "music": -1.5, "meeting": 2.0}.get):
        labels = [kind(label) for label in shots.labels]
        first = FewShotClassifier(by_letters, reject=0.3, rejected="none")
        first.fit(shots.texts, labels, ["shop \ud800 hours"]).save(tmp_path / "clf")
        again = load_classifier(tmp_path / "clf", by_letters)
        assert_same(again, first)
        assert again.classes_.dtype == first.classes_.dtype
        assert again.counter_examples_ == ("shop \ud800 hours",)
        assert again.predict(STRANGE).tolist() == ["none", "none"]
        assert sum(file.stat().st_size for file in (tmp_path / "clf").iterdir()) < 10_000


def test_a_saved_classifier_knows_its_model_after_a_round_trip_and_no_other(
    by_letters, rebuild, make_model, classifier, tmp_path
):
    by_letters.save(tmp_path / "model")
    classifier.save(tmp_path / "clf")
    loaded = load_classifier(tmp_path / "clf", load_model(tmp_path / "model"))
    assert loaded.examples_ == classifier.examples_
    assert (loaded.predict_proba(NEW) == classifier.predict_proba(NEW)).all()
    for other in (rebuild(make_model(seed=1), scope=by_letters.predictor.scope), rebuild(by_letters, letters=None)):
        with pytest.raises(ModelError, match=r"clf was adapted from another model .* Load it with its own, or adapt"):
            load_classifier(tmp_path / "clf", other)


def test_what_is_no_whole_classifier_is_refused(by_letters, tmp_path, classifier):
    with pytest.raises(ModelError, match=r"There is no classifier folder .*nowhere"):
        load_classifier(tmp_path / "nowhere", by_letters)
    by_letters.save(tmp_path / "model")
    with pytest.raises(ModelError, match="is not a classifier of manymetrics"):
        load_classifier(tmp_path / "model", by_letters)
    classifier.save(tmp_path / "clf")
    file = tmp_path / "clf" / "classifier.safetensors"
    file.write_bytes(file.read_bytes().replace(b"lamp", b"ramp"))
    with pytest.raises(
        ModelError, match=r"classifier\.safetensors is damaged: its content does not match its checksum"
    ):
        load_classifier(tmp_path / "clf", by_letters)


def test_a_classifier_of_an_older_format_says_what_to_do(by_letters, tmp_path, classifier):
    classifier.save(tmp_path / "clf")
    checksums = tmp_path / "clf" / "checksums.json"
    checksums.write_text(json.dumps(json.loads(checksums.read_text()) | {"format": 1}))
    with pytest.raises(ModelError, match=r"has the format 1, .*reads format 6\. Adapt the model to the examples again"):
        load_classifier(tmp_path / "clf", by_letters)


def test_a_setting_that_is_no_plain_value_is_not_saved(by_letters, shots, tmp_path):
    odd = FewShotClassifier(by_letters, rejected=object()).fit(shots.texts, shots.labels)
    with pytest.raises(InputError, match=r"The setting rejected=.* cannot be saved"):
        odd.save(tmp_path / "clf")
    assert not (tmp_path / "clf").exists()


def test_a_classifier_is_not_saved_over_a_model(by_letters, classifier, tmp_path):
    by_letters.save(tmp_path / "model")
    with pytest.raises(InputError, match="is there already and is not a classifier"):
        classifier.save(tmp_path / "model")
    load_model(tmp_path / "model")


# --- growing


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
