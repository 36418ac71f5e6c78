import numpy as np
import pytest

from manymetrics.encode import LexicalEncoder, MeanEncoder, random_vectors
from manymetrics.weigh.alone import ConvolutionAlone, LinearAlone

VECTORS = random_vectors(rows=512, dimensions=16)
TEXTS = ["lamp on", "lamp off", "the lamp", "play music", "music now", "loud music", "call anna", "anna please"]
LABELS = np.array([0, 0, 0, 1, 1, 1, 2, 2])


def linear():
    lexical = LexicalEncoder.from_bank(VECTORS.read(TEXTS), buckets=2**12)
    return LinearAlone(MeanEncoder(VECTORS.table), lexical, VECTORS.read(TEXTS), LABELS, classes=3)


def convolution():
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    return ConvolutionAlone(VECTORS.table, VECTORS.read(TEXTS), LABELS, 3)


@pytest.mark.parametrize("train", [linear, convolution])
def test_the_shots_alone_teach_their_own_words(train):
    alone = train()
    chances = alone.chances(VECTORS.read(["a lamp", "some music", "anna", ""]))
    assert chances[:3].argmax(axis=1).tolist() == [0, 1, 2]
    np.testing.assert_allclose(chances.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("train", [linear, convolution])
def test_the_same_shots_give_the_same_model(train):
    texts = VECTORS.read(["a lamp"])
    assert (train().chances(texts) == train().chances(texts)).all()


def test_leaving_a_shot_out_in_closed_form_is_leaving_it_out():
    lexical = LexicalEncoder.from_bank(VECTORS.read(TEXTS), buckets=2**12)
    whole = linear().chances_left_out()
    for row in range(len(TEXTS)):
        kept = [other for other in range(len(TEXTS)) if other != row]
        less = LinearAlone(
            MeanEncoder(VECTORS.table), lexical, VECTORS.read([TEXTS[k] for k in kept]), LABELS[kept], classes=3
        )
        np.testing.assert_allclose(whole[row], less.chances(VECTORS.read([TEXTS[row]]))[0], atol=0.12)
        assert whole[row].argmax() == less.chances(VECTORS.read([TEXTS[row]]))[0].argmax()


def test_the_only_shot_of_a_label_cannot_be_left_out():
    texts = VECTORS.read(["lamp on", "lamp off", "music"])
    lexical = LexicalEncoder.from_bank(texts, buckets=2**12)
    alone = LinearAlone(MeanEncoder(VECTORS.table), lexical, texts, np.array([0, 0, 1]), classes=2)
    assert np.isnan(alone.chances_left_out()).any(axis=1).tolist() == [False, False, True]


def test_more_shots_than_are_compared_still_teach(monkeypatch):
    monkeypatch.setattr("manymetrics.weigh.ridge.MOST_COMPARED", 5)
    alone = linear()
    assert alone.chances(VECTORS.read(["a lamp", "some music"])).argmax(axis=1).tolist() == [0, 1]
    assert np.isfinite(alone.chances_left_out()).all()
