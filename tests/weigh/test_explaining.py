"""What a classifier tells about its answers and its examples, with planted faults."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from manymetrics.errors import DataError, InputError
from manymetrics.weigh import FewShotClassifier, Rules
from manymetrics.weigh.doctor import wilson
from manymetrics.weigh.scope import Scope
from manymetrics.weigh.trust import Trust


@pytest.fixture(scope="module")
def model(make_model):
    return replace(make_model(), trust=Trust(Scope(-3.0, 0.0, 10.0, 0.0, 0.0, 0.0, 0.0)))


@pytest.fixture(scope="module")
def classifier(model, shots):
    return FewShotClassifier(model, reject=True).fit(shots.texts, shots.labels)


def test_an_explanation_names_the_examples_and_metrics_that_decided(classifier):
    told = classifier.explain("turn on the lamp now")
    chances = classifier.predict_proba(["turn on the lamp now"])[0]
    assert (told.label, told.probability) == ("lamp", pytest.approx(chances.max()))
    assert told.probability > told.runner_up_probability
    assert told.examples[0].label == "lamp"
    assert "lamp" in told.examples[0].text
    shares = [one.share for one in told.examples]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) <= 1 + 1e-9
    assert {vote.metric for vote in told.metrics} == {"cluster-0", "cluster-1", "word-vectors", "letters", "together"}
    assert next(vote for vote in told.metrics if vote.metric == "cluster-0").tasks == ("a", "b")
    assert sum(vote.weight for vote in told.metrics) == pytest.approx(1)
    assert told.rejected is None
    with pytest.raises(FrozenInstanceError):
        told.label = "music"


def test_an_example_itself_has_the_largest_share(classifier, shots):
    for text, label in zip(shots.texts, shots.labels, strict=True):
        told = classifier.explain(text)
        if told.label == label:
            best = max((one for one in told.examples if one.label == label), key=lambda one: one.likeness)
            assert best.text == text


def test_an_explanation_can_be_read(classifier):
    lines = str(classifier.explain("turn on the lamp")).splitlines()
    assert lines[0].startswith("'turn on the lamp' -> lamp (")
    assert "The examples that decided:" in lines
    assert any("cluster-0 (learned) says" in line and "learned from 2 tasks: a, b" in line for line in lines)


def test_the_reason_of_a_rejection_is_told(classifier, model, shots):
    told = classifier.explain("0123 !!! 777")
    assert "less than the 50% asked for: no example is enough like it." in told.rejected
    assert f"Rejected: {told.rejected}" in str(told)
    close = FewShotClassifier(model, margin=0.999).fit(shots.texts, shots.labels).explain("lamp music")
    assert "are closer than the margin of 100%." in close.rejected
    assert FewShotClassifier(model).fit(shots.texts, shots.labels).explain("0123 !!! 777").rejected is None


def test_a_fallback_is_explained(model, shots):
    picky = replace(model, rules=Rules({}, 5.0, threshold=1.1))
    told = picky.adapt(shots.texts, shots.labels).explain("turn on the lamp")
    assert "No cluster fits this task" in told.fallback
    assert [vote.metric for vote in told.metrics] == ["alone"]
    assert told.examples[0].label == "lamp"
    assert told.fallback in str(told)


def test_a_shared_label_model_explains_too(make_model, shots):
    adapted = make_model(shared_labels=("lamp", "meeting", "music")).adapt(shots.texts, shots.labels)
    told = adapted.explain("lamp on")
    assert {vote.metric: vote.weight for vote in told.metrics} == {
        name: weight for name, weight in adapted.weights_.items() if weight > 1e-6
    }
    assert "cluster-0" in [vote.metric for vote in told.metrics]


def test_planted_faults_are_found(model, shots):
    texts = [*shots.texts, "Turn on  the LAMP", "play some jazz", "play some jazz", "quack"]
    labels = [*shots.labels, "lamp", "music", "meeting", "duck"]
    found = FewShotClassifier(model).fit(texts, labels).doctor()
    assert found.duplicates == (("turn on the lamp", "lamp"), ("play some jazz", "music"))
    assert found.contradictions == (("play some jazz", ("meeting", "music")),)
    assert found.few == (("duck", 1),)
    assert (found.examples, found.labels, found.tried) == (18, 4, 17)
    assert any((one.label, one.answered) == ("meeting", "music") for one in found.confusions)
    assert found.low < found.accuracy < found.high
    told = str(found)
    assert "Contradiction: 'play some jazz' has the labels meeting, music." in told
    assert "Few examples: duck has 1." in told


def test_a_wrong_label_is_suspected(model):
    lamps = [f"lamp number {number} on please" for number in range(8)]
    songs = [f"song number {number} loud" for number in range(8)]
    sharp = replace(model, trust=Trust(Scope(3.0, 0.0, 10.0, 0.0, 0.0, 0.0, 0.0)))
    found = sharp.adapt([*lamps, *songs], ["lamp"] * 7 + ["song"] * 9).doctor()
    assert [(one.label, one.answered, one.count) for one in found.confusions] == [("song", "lamp", 1)]
    assert all(one.text == "lamp number 7 on please" for one in found.suspects)


def test_examples_too_few_to_try_are_told(model):
    found = FewShotClassifier(model).fit(["lamp on", "play music"], [0, 1]).doctor()
    assert found.tried == 0
    assert np.isnan(found.accuracy)
    assert "too few to try" in str(found)


def test_the_interval_of_a_share_is_wilsons():
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-3)
    assert wilson(5, 5)[1] == 1


def test_uncertain_and_far_texts_are_suggested_and_no_two_alike(classifier):
    pool = ["turn on the lamp", "lamp music", "lamp  music", "zzyzx qq", "zzyzx qq vv", "lamp music"]
    chosen = classifier.suggest(pool, count=2)
    assert len(chosen) == 2
    assert {one.text.split()[0] for one in chosen} == {"lamp", "zzyzx"}
    reasons = {one.text.split()[0]: one.reason for one in chosen}
    assert reasons["zzyzx"].startswith("far from all examples")
    assert "turn on the lamp" not in [one.text for one in chosen]
    assert len(classifier.suggest(pool, count=50)) == 5
    assert classifier.suggest([]) == ()


def test_suggestions_that_cannot_be_made_are_refused(classifier):
    with pytest.raises(InputError, match="Found a count of 0"):
        classifier.suggest(["a"], count=0)
    with pytest.raises(DataError, match="Found one text where a list"):
        classifier.suggest("lamp")
