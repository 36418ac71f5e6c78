"""Worlds small enough to see through: a planted bank, hand-made models, and word vectors that need no file."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from manymetrics.classifier import Serving
from manymetrics.encode import ConvolutionEncoder, LetterEncoder, random_vectors
from manymetrics.measure.heads import Head
from manymetrics.model import MetricModel, Origin, describe_serving
from manymetrics.recipe import Recipe
from manymetrics.specialize import SharedLabelMetric, SimilarityMetric
from manymetrics.values import Clusters, Examples, ObservedPairs, Similarity, Task, TaskBank, TransferMatrix
from manymetrics.weigh import MixSettings

LAMPS = ("turn on the lamp", "lamp on please", "switch the lamp on now", "light up the hall", "more light in here")
MUSIC = ("play some jazz", "put on music", "start the song again", "music in the kitchen please", "play that tune")
MEETINGS = ("move my meeting", "cancel the meeting today", "when is the next meeting", "meeting with anna at noon")
SHOTS = Examples(LAMPS + MUSIC + MEETINGS, ("lamp",) * 5 + ("music",) * 5 + ("meeting",) * 4)

FAMILIES = {
    "colour": {"red": "crimson scarlet ruby", "green": "emerald jade olive", "blue": "azure navy cobalt"},
    "animal": {"bird": "robin sparrow eagle", "fish": "salmon trout cod", "cat": "tabby siamese lynx"},
}
NOISE = ["the", "a", "some", "that", "here", "there", "now", "then", "please", "well", "so", "very"]


def planted_task(name, family, *, size, seed, valid=True):
    """A task whose label is decided by one word of its family, hidden among words that say nothing."""
    rng = np.random.default_rng(seed)

    def examples(count):
        labels = [label for label in FAMILIES[family] for _ in range(count)]
        texts = [
            " ".join(rng.permutation([*rng.choice(NOISE, 3), rng.choice(FAMILIES[family][label].split())]))
            for label in labels
        ]
        return Examples(tuple(texts), tuple(f"{label}" for label in labels))

    return Task(name, examples(size), examples(3) if valid else Examples(), examples(4))


def planted_bank(tasks=2, *, size=6, valid=True):
    """`tasks` tasks of each of the two families, with names that say which."""
    return TaskBank(
        tuple(
            planted_task(f"{family}-{number}", family, size=size, seed=10 * number + len(family), valid=valid)
            for family in FAMILIES
            for number in range(tasks)
        )
    )


def handmade_model(*, shared_labels=(), threshold=-np.inf, letter_buckets=2**10, seed=0):
    """A model of two random convolutions, the frozen vectors and a lexical metric; nothing in it was trained."""
    rng = np.random.default_rng(seed)
    words = random_vectors(rows=512, dimensions=16)
    names = ("a", "b", "c")

    def convolution(width):
        filters = rng.standard_normal((3, 16, width)).astype(np.float32)
        return ConvolutionEncoder(words, filters, rng.standard_normal(width).astype(np.float32))

    letters = LetterEncoder.from_texts(SHOTS.texts, buckets=letter_buckets)
    second = SimilarityMetric("cluster-1", "learned", convolution(8), "matching", 7.0, ("c",), 1)
    if shared_labels:
        prior = np.full(len(shared_labels), 1 / len(shared_labels), dtype=np.float32)
        head = Head(rng.standard_normal((8, len(shared_labels))).astype(np.float32), np.zeros(len(shared_labels), "f4"))
        second = SharedLabelMetric("cluster-1", "learned", convolution(8), head, tuple(shared_labels), prior, ("c",), 1)
    metrics = (
        SimilarityMetric("cluster-0", "learned", convolution(12), "prototypical", 10.0, ("a", "b"), 0),
        second,
        SimilarityMetric("word-vectors", "frozen", words, "prototypical", 9.0),
        SimilarityMetric("letters", "lexical", letters, "prototypical", 9.0),
    )
    scores = np.array([[np.nan, 0.8, 0.4], [0.7, np.nan, 0.3], [0.2, np.nan, np.nan]])
    alike = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.0], [0.1, 0.0, 1.0]])
    settings = MixSettings({"learned": 0.4, "frozen": 0.2, "lexical": 0.2, "regression": 0.2}, threshold=threshold)
    serving = Serving(metrics, settings)
    origin = Origin(
        Clusters(names, np.array([0, 0, 1])),
        TransferMatrix(names, scores),
        ObservedPairs(names, alike > 0.5, np.ones((3, 3), dtype=bool)),
        Similarity(names, alike, np.zeros((3, 3)), sparsity=0.5, steps=7, gap=1e-7),
        Recipe.fast(vectors="random", width=12, window=3),
        held_out=("b",),
        bank_fingerprint="f00d",
        **describe_serving(serving),
    )
    return MetricModel(serving, origin)


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """Matrices this small are slower on several threads, the more so on a busy machine."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="session")
def vectors():
    return random_vectors(rows=512, dimensions=16)


@pytest.fixture(scope="session")
def tiny_bank():
    return planted_bank()


@pytest.fixture(scope="session")
def make_bank():
    return planted_bank


@pytest.fixture(scope="session")
def tiny_recipe():
    return Recipe.fast(
        vectors="random",
        window=3,
        width=8,
        task_steps=30,
        metric_steps=30,
        clusters=2,
        ways=3,
        shots=2,
        queries=6,
        batch=8,
        learning_rate=0.02,
    )


@pytest.fixture(scope="session")
def model():
    return handmade_model()


@pytest.fixture(scope="session")
def make_model():
    return handmade_model


@pytest.fixture(scope="session")
def shots():
    return SHOTS
