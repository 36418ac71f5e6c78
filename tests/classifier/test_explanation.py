from dataclasses import FrozenInstanceError

import pytest

from manymetrics.classifier import FewShotClassifier


@pytest.fixture(scope="module")
def rejecting(by_letters, shots):
    return FewShotClassifier(by_letters, reject=True).fit(shots.texts, shots.labels)


def test_an_explanation_names_the_examples_and_metrics_that_decided(rejecting):
    told = rejecting.explain("turn on the lamp now")
    probabilities = rejecting.predict_proba(["turn on the lamp now"])[0]
    assert (told.label, told.probability) == ("lamp", pytest.approx(probabilities.max()))
    assert told.scope == pytest.approx(rejecting.scope_proba(["turn on the lamp now"])[0])
    assert told.probability > told.runner_up_probability
    assert told.examples[0].label == "lamp"
    shares = [one.share for one in told.examples]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) <= 1 + 1e-9
    assert {vote.metric for vote in told.metrics} == {"cluster-0", "cluster-1", "word-vectors"}
    assert next(vote for vote in told.metrics if vote.metric == "cluster-0").tasks == ("a", "b")
    assert sum(vote.weight for vote in told.metrics) == pytest.approx(1)
    assert told.rejected is None
    with pytest.raises(FrozenInstanceError):
        told.label = "music"


def test_an_example_itself_is_the_most_similar_of_its_label(rejecting, shots):
    for text, label in zip(shots.texts, shots.labels, strict=True):
        near = [one for one in rejecting.explain(text).examples if one.label == label]
        assert max(near, key=lambda one: one.similarity).text == text


def test_an_explanation_can_be_read(rejecting):
    lines = str(rejecting.explain("turn on the lamp")).splitlines()
    assert lines[0].startswith("'turn on the lamp' -> lamp (")
    assert "The examples that decided, beside the names of the labels:" in lines
    assert any("cluster-0 (learned) answers" in line and "learned from 2 tasks: a, b" in line for line in lines)


def test_the_reason_of_a_rejection_is_given(rejecting, by_letters, shots):
    told = rejecting.explain("0123 !!! 777")
    expected = f"in scope with a probability of {told.scope:.0%}, below the threshold of 50%: no example is similar"
    assert expected in told.rejected
    assert f"Rejected: {told.rejected}" in str(told)
    close = FewShotClassifier(by_letters, margin=0.999).fit(shots.texts, shots.labels).explain("lamp music")
    assert close.rejected.startswith(f"{close.label} ({close.probability:.0%}) and ")
    assert close.rejected.endswith("are closer than the margin of 100%.")
    plain = by_letters.adapt(shots.texts, shots.labels)
    assert plain.explain("0123 !!! 777").rejected is None
    assert plain.explain("lamp music").probability == close.probability
    assert rejecting.answer(["turn on the lamp", "0123 !!! 777"]).rejected.tolist() == [False, True]


def test_a_fallback_is_explained(picky, shots):
    told = picky.adapt(shots.texts, shots.labels).explain("turn on the lamp")
    assert "No cluster fits this task" in told.fallback
    assert [(vote.metric, vote.weight) for vote in told.metrics] == [("word-vectors", 1.0)]
    assert told.examples[0].label == "lamp"
    assert told.fallback in str(told)
    assert picky.adapt(shots.texts, shots.labels, adaptive=False).fallback_ is None


def test_a_published_mix_is_explained_by_its_clusters(published, shots):
    told = published.adapt(shots.texts, shots.labels, adaptive=False).explain("turn on the lamp")
    assert {vote.metric for vote in told.metrics} == {"cluster-0", "cluster-1"}
    assert {one.label for one in told.examples} == {told.label}
    assert not told.names
