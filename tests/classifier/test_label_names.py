"""A label's name, or its description, as one more example of it: when it counts, what it answers, and who keeps it."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from manymetrics.classifier import FewShotClassifier
from manymetrics.errors import InputError, NotEnoughExamples
from manymetrics.model import load_classifier
from manymetrics.specialize import Metric
from planted_numbers import StatelessEncoder

NEW = ["lamp on", "any music", "the weather", "", "something else entirely"]
WEATHER = {"weather": "the weather: rain, snow and wind"}
SHUFFLED = {"lamp": "meeting", "meeting": "music", "music": "lamp"}
MEANINGS = ("lamp light", "music song songs jazz tune", "meeting", "weather rain snow wind")


class KnownWords(StatelessEncoder, kind="test-known-words"):
    """How often a text speaks of each of four things; of any other word it knows nothing."""

    def encode(self, texts):
        said = [text.replace(",", " ").replace(":", " ").split() for text in texts]
        rows = [[sum(word in means.split() for word in words) for means in MEANINGS] for words in said]
        return np.array(rows, dtype=np.float32).reshape(len(texts), len(MEANINGS))


@pytest.fixture(scope="module")
def named(model, rebuild, letters_decide):
    """A model of which the encoders know what the names mean."""
    known = Metric("known", "frozen", KnownWords(), "prototypical", 9.0)
    learned = replace(known, name="cluster-0", kind="learned", tasks=("a",), cluster=0)
    return rebuild(model, metrics=(learned, known), scope=letters_decide)


@pytest.fixture
def described(named, shots):
    return named.adapt(shots.texts, shots.labels, descriptions=WEATHER)


# --- when names count


def test_names_that_say_something_about_the_examples_count_as_examples(named, shots):
    classifier = named.adapt(shots.texts, shots.labels)
    assert classifier.uses_names_
    assert classifier.classifier_.head.labels.tolist()[-3:] == [0, 1, 2]
    assert len(classifier.examples_) == len(shots)
    without = named.adapt(shots.texts, shots.labels, label_names=False)
    assert not without.uses_names_
    assert not np.allclose(classifier.predict_proba(NEW), without.predict_proba(NEW))


def test_names_that_are_shuffled_or_say_nothing_are_found_out_and_not_used(named, shots):
    for change in (SHUFFLED.get, {"lamp": "zq", "music": "vv", "meeting": "xj"}.get):
        labels = [change(label) for label in shots.labels]
        classifier = named.adapt(shots.texts, labels)
        assert not classifier.uses_names_
        plain = named.adapt(shots.texts, labels, label_names=False)
        assert (classifier.predict_proba(NEW) == plain.predict_proba(NEW)).all()


# --- what they answer


def test_a_label_is_answered_from_its_description_alone(described, shots):
    assert described.classes_.tolist() == ["lamp", "meeting", "music", "weather"]
    assert described.predict(["rain and snow", "turn the lamp on"]).tolist() == ["weather", "lamp"]
    assert described.descriptions_ == WEATHER
    assert {one.text for one in described.explain("turn the lamp on").examples} <= set(shots.texts)
    diagnosis = described.doctor()
    assert (diagnosis.tried, diagnosis.labels, diagnosis.few) == (14, 4, (("weather", 0),))


def test_descriptions_replace_names(named, shots):
    codes = {"lamp": "a1", "music": "b2", "meeting": "c3"}
    labels = [codes[label] for label in shots.labels]
    told = {code: label for label, code in codes.items()}
    assert not named.adapt(shots.texts, labels).uses_names_
    by_code, by_name = named.adapt(shots.texts, labels, descriptions=told), named.adapt(shots.texts, shots.labels)
    assert by_code.uses_names_
    order = [by_code.classes_.tolist().index(codes[label]) for label in by_name.classes_]
    np.testing.assert_allclose(by_code.predict_proba(NEW)[:, order], by_name.predict_proba(NEW), atol=1e-4)


def test_labels_that_are_all_described_need_no_example_at_all(named):
    told = {"lamp": "lamp and light", "music": "music and songs", **WEATHER}
    classifier = named.adapt([], [], descriptions=told)
    assert classifier.predict(["the light", "a song", "rain"]).tolist() == ["lamp", "music", "weather"]
    np.testing.assert_allclose(classifier.predict_proba(NEW).sum(axis=1), 1)
    assert classifier.examples_ == ()
    assert classifier.explain("the light").label == "lamp"
    assert classifier.explain("the light").examples == ()
    assert classifier.doctor().few == (("lamp", 0), ("music", 0), ("weather", 0))
    assert {one.text for one in classifier.suggest(NEW, count=2)} <= set(NEW)
    with pytest.raises(NotEnoughExamples, match="fewer than two can be"):
        classifier.scope_threshold(0.1)
    assert classifier.add_examples(["put it on"], ["lamp"]).predict(["put it on"]).tolist() == ["lamp"]


def test_a_label_without_example_is_refused_where_names_are_not_used(make_model, named, published, shots):
    told = r"The label 'weather' has no example, and label names are not used here\. Give it an example"
    shared = make_model(shared_labels=("lamp", "meeting", "music"))
    for who, options in ((shared, {}), (named, {"label_names": False}), (published, {})):
        with pytest.raises(NotEnoughExamples, match=told):
            who.adapt(shots.texts, shots.labels, descriptions=WEATHER, **options)


def test_names_do_not_bring_a_text_into_scope(named, shots):
    with_names, without = (named.adapt(shots.texts, shots.labels, label_names=use) for use in (True, False))
    asked = ["lamp", "music", "meeting", *NEW]
    np.testing.assert_allclose(with_names.scope_proba(asked), without.scope_proba(asked), atol=1e-6)
    assert with_names.scope_threshold(0.2) == pytest.approx(without.scope_threshold(0.2), abs=1e-6)


# --- with everything else that can be asked of a classifier


def test_saving_pickling_and_cloning_keep_descriptions(assert_same, described, named, tmp_path):
    described.save(tmp_path / "clf")
    for again in (load_classifier(tmp_path / "clf", named), pickle.loads(pickle.dumps(described))):  # noqa: S301
        assert_same(again, described)
    quiet = FewShotClassifier(named, label_names=False).fit(["lamp", "music"], ["x", "y"])
    quiet.save(tmp_path / "quiet")
    assert load_classifier(tmp_path / "quiet", named).label_names is False


def test_a_described_label_can_be_forgotten_with_examples_or_without(assert_same, described, named, shots):
    plain = named.adapt(shots.texts, shots.labels)
    assert_same(described.forget("weather"), plain)
    with pytest.raises(InputError, match="There is no label 'weather' to forget"):
        described.forget("weather")
    again = named.adapt(shots.texts, shots.labels, descriptions={"lamp": "light", **WEATHER}).forget("lamp")
    assert again.classes_.tolist() == ["meeting", "music", "weather"]
    assert again.descriptions_ == WEATHER
