import pytest

from manymetrics.errors import DataError, InputError


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
