import numpy as np
import pytest

from manymetrics.classifier import FewShotClassifier
from manymetrics.classifier.doctor import answer_left_out, diagnose
from manymetrics.classifier.examples import support_set
from manymetrics.errors import DataError, InputError

WORDS = ("red", "old", "tall", "new", "big", "fine", "warm", "dim")


def test_planted_faults_are_found(by_letters, shots):
    texts = [*shots.texts, "Turn on  the LAMP", "play some jazz", "play some jazz", "quack"]
    labels = [*shots.labels, "lamp", "music", "meeting", "duck"]
    found = FewShotClassifier(by_letters).fit(texts, labels).doctor()
    assert found.duplicates == (("turn on the lamp", "lamp"), ("play some jazz", "music"))
    assert found.contradictions == (("play some jazz", ("meeting", "music")),)
    assert found.few == (("duck", 1),)
    assert (found.examples, found.labels, found.tried) == (18, 4, 17)
    assert any((one.label, one.answered) == ("meeting", "music") for one in found.confusions)
    assert found.low < found.accuracy < found.high
    told = str(found)
    assert "Contradiction: 'play some jazz' has the labels meeting, music." in told
    assert "Few examples: duck has 1." in told


def test_a_wrong_label_is_suspected(by_letters, rebuild, make_scope):
    lamps = [f"lamp light {word} on please" for word in WORDS]
    songs = [f"song tune {word} loud" for word in WORDS]
    sure = rebuild(by_letters, scope=make_scope(3.0, letters=10.0))
    found = sure.adapt([*lamps, *songs], ["lamp"] * 7 + ["song"] * 9).doctor()
    assert [(one.label, one.answered, one.count) for one in found.confusions] == [("song", "lamp", 1)]
    assert [(one.text, one.label, one.answered) for one in found.suspects] == [(lamps[7], "song", "lamp")]
    assert f"Suspect: {lamps[7]!r} is labelled song; the others answer lamp" in str(found)


def test_too_few_examples_are_reported(by_letters):
    found = FewShotClassifier(by_letters).fit(["lamp on", "play music"], [0, 1]).doctor()
    assert found.tried == 0
    assert np.isnan(found.accuracy)
    assert "too few to try" in str(found)


def test_every_example_is_answered_from_others_and_no_label_is_ever_empty():
    support = support_set([f"text {number:02}" for number in range(25)], [0] * 2 + [1] * 22 + [2])
    asked = []

    def answer(kept, texts):
        assert set(kept.numbers.tolist()) == {0, 1, 2}
        assert not set(kept.texts) & set(texts.texts)
        asked.extend(texts.texts)
        return np.tile([0.0, 1.0, 0.0], (len(texts), 1))

    rows, answers = answer_left_out(support, answer)
    assert sorted(asked) == sorted(support.texts)[:24]  # the only example of a label cannot be tried
    assert rows == list(range(24))
    assert (answers == [0, 1, 0]).all()


def test_the_interval_of_the_accuracy_is_wilsons():
    def diagnosis(right):
        support = support_set([f"text {number:02}" for number in range(12)], [0] * 10 + [1, 2])
        answers = iter(np.eye(3)[[0] * right + [1] * (10 - right)])
        return diagnose(support, lambda some, texts: np.stack([next(answers) for _ in texts.texts]))

    found = diagnosis(8)
    assert (found.low, found.high) == (pytest.approx(0.4902, abs=1e-3), pytest.approx(0.9433, abs=1e-3))
    assert (found.tried, diagnosis(10).high) == (10, 1)


# --- what to label next


def test_uncertain_and_far_texts_are_suggested_and_no_two_similar_ones(classifier):
    pool = ["turn on the lamp", "lamp music", "lamp  music", "zzyzx qq", "qq zzyzx", "lamp music"]
    chosen = classifier.suggest(pool, count=2)
    assert len(chosen) == 2
    reasons = {one.text.split()[0]: one.reason for one in chosen}
    assert set(reasons) == {"lamp", "zzyzx"}
    assert reasons["zzyzx"].startswith("far from all examples")
    assert "turn on the lamp" not in [one.text for one in chosen]
    assert len(classifier.suggest(pool, count=50)) == 5
    assert classifier.suggest([]) == ()


def test_a_suggestion_has_the_most_probable_label_so_far(classifier):
    (one,) = classifier.suggest(["lamp on"])
    assert (one.label, one.probability) == ("lamp", pytest.approx(classifier.predict_proba(["lamp on"]).max()))


def test_suggestions_that_cannot_be_made_are_refused(classifier):
    with pytest.raises(InputError, match="Found count=0"):
        classifier.suggest(["a"], count=0)
    with pytest.raises(DataError, match="Found one text where a list"):
        classifier.suggest("lamp")
