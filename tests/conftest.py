"""Worlds small enough to see through: a planted bank, hand-made models, and word vectors that need no file."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from manymetrics.classifier import Predictor
from manymetrics.encode import CharNgramEncoder, ConvolutionEncoder, ProjectionEncoder, random_vectors
from manymetrics.measure.heads import Head
from manymetrics.model import MetricModel, Origin, describe_predictor
from manymetrics.recipe import Recipe
from manymetrics.specialize import LabelHead, Metric
from manymetrics.values import Clusters, Examples, ObservedPairs, Similarity, TransferMatrix
from manymetrics.weigh import GradientSettings
from planted_bank import planted_bank

LAMPS = ("turn on the lamp", "lamp on please", "switch the lamp on now", "light up the hall", "more light in here")
MUSIC = ("play some jazz", "put on music", "start the song again", "music in the kitchen please", "play that tune")
MEETINGS = ("move my meeting", "cancel the meeting today", "when is the next meeting", "meeting with anna at noon")
SHOTS = Examples(LAMPS + MUSIC + MEETINGS, ("lamp",) * 5 + ("music",) * 5 + ("meeting",) * 4)


def handmade_model(*, shared_labels=(), blind=False, published=False, letter_buckets=2**10, seed=0):
    """A model of two random projections, the frozen vectors and character n-grams; nothing in it was trained.

    The encoders of a `published` model are convolutions. Those of a `blind` one encode every text alike, so that no
    cluster fits any task.
    """
    rng = np.random.default_rng(seed)
    words = random_vectors(rows=512, dimensions=16)
    names = ("a", "b", "c")

    def encoder(width):
        if not (published or blind):
            return ProjectionEncoder(words, 0.03 * rng.standard_normal((16, 16)).astype(np.float32))
        filters = rng.standard_normal((3, 16, width)).astype(np.float32)
        return ConvolutionEncoder(words, filters * (not blind), rng.standard_normal(width).astype(np.float32))

    letters = CharNgramEncoder.from_texts(SHOTS.texts, buckets=letter_buckets)
    metrics = (
        Metric("cluster-0", "learned", encoder(12), "prototypical", 10.0, ("a", "b"), 0),
        Metric("cluster-1", "learned", encoder(8), "matching", 7.0, ("c",), 1),
        Metric("word-vectors", "frozen", words, "prototypical", 9.0),
    )
    if shared_labels:
        prior = np.full(len(shared_labels), 1 / len(shared_labels), dtype=np.float32)
        head = Head(0.1 * rng.standard_normal((16, len(shared_labels))).astype(np.float32), np.zeros_like(prior))
        shared = LabelHead(head, tuple(shared_labels), prior)
        metrics += (Metric("shared-labels", "linear", words, tasks=names, shared=shared),)
    scores = np.array([[np.nan, 0.8, 0.4], [0.7, np.nan, 0.3], [0.2, np.nan, np.nan]])
    alike = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.0], [0.1, 0.0, 1.0]])
    predictor = Predictor(metrics, letters=letters, gradient=GradientSettings() if published else None)
    origin = Origin(
        Clusters(names, np.array([0, 0, 1])),
        TransferMatrix(names, scores),
        ObservedPairs(names, alike > 0.5, np.ones((3, 3), dtype=bool)),
        Similarity(names, alike, np.zeros((3, 3)), sparsity=0.5, steps=7, gap=1e-7),
        Recipe.fast(vectors="random"),
        held_out=("b",),
        bank_fingerprint="f00d",
        **describe_predictor(predictor),
    )
    return MetricModel(predictor, origin)


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
    return Recipe.fast(vectors="random", clusters=2, shots=2, own_steps=5, projection_steps=40)


@pytest.fixture(scope="session")
def tiny_networks():
    """A recipe of convolution networks, which needs torch."""
    sizes = {"window": 3, "width": 8, "task_steps": 30, "metric_steps": 30, "learning_rate": 0.02}
    return Recipe.paper(vectors="random", evidence="all", clusters=2, shots=2, **sizes)


@pytest.fixture(scope="session")
def model():
    return handmade_model()


@pytest.fixture(scope="session")
def model_folder(model, tmp_path_factory):
    """The folder of the hand-made model; tests read it only."""
    folder = tmp_path_factory.mktemp("handmade") / "model"
    model.save(folder)
    return folder


@pytest.fixture(scope="session")
def make_model():
    return handmade_model


@pytest.fixture(scope="session")
def shots():
    return SHOTS
