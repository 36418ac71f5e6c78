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
