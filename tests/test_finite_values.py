"""NaN and infinity in a value that is handed from stage to stage: refused when the value is made, never used."""

from dataclasses import fields, replace

import numpy as np
import pytest

from manymetrics.classifier.confidence import Calibration, Scope
from manymetrics.encode import Encoder, ProjectionEncoder, State
from manymetrics.encode.encoder import EmbeddedTexts
from manymetrics.errors import DataError
from manymetrics.measure.heads import Head
from manymetrics.specialize import LabelHead, Metric
from manymetrics.values import ObservedPairs, Similarity, TransferMatrix
from manymetrics.weigh import ClusterAssigner, GradientSettings

NAMES = ("a", "b")
ODD = pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])


def spoiled(array, odd):
    array = np.array(array, dtype=float if np.asarray(array).dtype.kind in "bi" else None)
    array.flat[-1] = odd
    return array


def pairs():
    return ObservedPairs(NAMES, np.eye(2, dtype=bool), np.ones((2, 2), dtype=bool))


def similarity():
    return Similarity(NAMES, np.eye(2), np.zeros((2, 2)), sparsity=0.5, steps=1, gap=0.0)


def assigner():
    rows = np.eye(2, dtype=np.float16)
    return ClusterAssigner(NAMES, np.array([0, 1]), 2, rows, rows, np.array([1, 1]), {"names": {"names": 1.0}})


def classifier(words):
    head = Head(np.ones((16, 2), np.float32), np.zeros(2, np.float32))
    return Metric("linear", "linear", words, shared=LabelHead(head, ("x", "y"), np.full(2, 0.5, np.float32)))


@ODD
@pytest.mark.parametrize(
    ("make", "side"),
    [(pairs, "similar"), (pairs, "observed"), (similarity, "low_rank"), (similarity, "errors"), (assigner, "centroids"),
     (assigner, "names")],
)  # fmt: skip
def test_matrices_of_pairs_and_tasks_are_refused(make, side, odd):
    whole = make()
    with pytest.raises(DataError):
        replace(whole, **{side: spoiled(getattr(whole, side), odd)})


@pytest.mark.parametrize("odd", [np.inf, -np.inf])
def test_an_infinite_score_of_transfer_is_refused_and_nan_says_that_none_was_measured(odd):
    with pytest.raises(DataError, match=r"TransferMatrix\.scores holds infinite values"):
        TransferMatrix(NAMES, spoiled(np.zeros((2, 2)), odd))
    assert np.isnan(TransferMatrix(NAMES, spoiled(np.zeros((2, 2)), np.nan)).scores[1, 1])


@ODD
def test_metrics_are_refused(vectors, odd):
    matrix = np.zeros((16, 16), np.float32)
    with pytest.raises(DataError, match="not finite in the matrix of a projection"):
        ProjectionEncoder(vectors, spoiled(matrix, odd))
    with pytest.raises(DataError, match="has the temperature"):
        Metric("one", "learned", vectors, "prototypical", odd)
    metric = classifier(vectors)
    shared = metric.shared
    head = shared.head
    for changed in ({"head": Head(spoiled(head.weights, odd), head.offset)},
                    {"head": Head(head.weights, spoiled(head.offset, odd))},
                    {"prior": spoiled(shared.prior, odd)}):  # fmt: skip
        with pytest.raises(DataError, match=r"not finite in the (head|prior) of a classifier over shared labels"):
            replace(shared, **changed)


@ODD
@pytest.mark.parametrize("settings", [GradientSettings(), Calibration(), Scope()])
def test_settings_are_refused(settings, odd):
    for field in fields(settings):
        value = getattr(settings, field.name)
        if isinstance(value, float):
            with pytest.raises(DataError):
                replace(settings, **{field.name: odd})
    if isinstance(settings, Scope):
        with pytest.raises(DataError):
            replace(settings, coefficients=(*settings.coefficients[1:], odd))


@ODD
def test_weights_of_routes_are_refused(odd):
    with pytest.raises(DataError):
        replace(assigner(), coefficients={"names": {"names": odd}})


class Spoiled(Encoder, kind="spoiled"):
    """An encoder that gives a number that is not finite."""

    def __init__(self, odd):
        self.odd = odd

    def encode(self, texts):
        return np.full((len(texts), 3), self.odd, np.float32)

    def state(self):
        return State(settings={"odd": str(self.odd)})

    @classmethod
    def from_state(cls, state):
        return cls(float(state.settings["odd"]))


@ODD
def test_rows_of_any_encoder_are_refused_where_metrics_meet_them(odd):
    for unit in (False, True):
        with pytest.raises(DataError, match="not finite in the rows of a spoiled encoder"):
            EmbeddedTexts(["a text"]).rows(Spoiled(odd), unit=unit)
