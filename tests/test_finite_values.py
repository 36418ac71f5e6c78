"""NaN and infinity in a value that is handed from stage to stage: refused when the value is made, never used."""

from dataclasses import replace

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
ROWS = np.eye(2, dtype=np.float16)
PAIRS = ObservedPairs(NAMES, np.eye(2, dtype=bool), np.ones((2, 2), dtype=bool))
SIMILARITY = Similarity(NAMES, np.eye(2), np.zeros((2, 2)), sparsity=0.5, steps=1, gap=0.0)
ASSIGNER = ClusterAssigner(NAMES, np.array([0, 1]), 2, ROWS, ROWS, np.array([1, 1]), {"names": {"names": 1.0}})
HEAD = Head(np.ones((16, 2), np.float32), np.zeros(2, np.float32))
ODD = pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])


def spoiled(array, odd):
    array = np.array(array, dtype=float if np.asarray(array).dtype.kind in "bi" else None)
    array.flat[-1] = odd
    return array


@ODD
@pytest.mark.parametrize(
    ("value", "side"),
    [(PAIRS, "similar"), (PAIRS, "observed"), (SIMILARITY, "low_rank"), (SIMILARITY, "errors"),
     (ASSIGNER, "centroids"), (ASSIGNER, "names")],
)  # fmt: skip
def test_matrices_of_pairs_and_tasks_are_refused(value, side, odd):
    with pytest.raises(DataError):
        replace(value, **{side: spoiled(getattr(value, side), odd)})


@pytest.mark.parametrize("odd", [np.inf, -np.inf])
def test_an_infinite_score_of_transfer_is_refused_and_nan_says_that_none_was_measured(odd):
    with pytest.raises(DataError, match=r"TransferMatrix\.scores holds infinite values"):
        TransferMatrix(NAMES, spoiled(np.zeros((2, 2)), odd))
    assert np.isnan(TransferMatrix(NAMES, spoiled(np.zeros((2, 2)), np.nan)).scores[1, 1])


@ODD
def test_metrics_are_refused(vectors, odd):
    with pytest.raises(DataError, match="not finite in the matrix of a projection"):
        ProjectionEncoder(vectors, spoiled(np.zeros((16, 16), np.float32), odd))
    with pytest.raises(DataError, match="has the temperature"):
        Metric("one", "learned", vectors, "prototypical", odd)
    shared = LabelHead(HEAD, ("x", "y"), np.full(2, 0.5, np.float32))
    heads = (Head(spoiled(HEAD.weights, odd), HEAD.offset), Head(HEAD.weights, spoiled(HEAD.offset, odd)))
    for changed in ({"head": heads[0]}, {"head": heads[1]}, {"prior": spoiled(shared.prior, odd)}):
        with pytest.raises(DataError, match=r"not finite in the (head|prior) of a classifier over shared labels"):
            replace(shared, **changed)


@ODD
def test_settings_and_coefficients_are_refused(odd):
    for settings in (GradientSettings(), Calibration(), Scope()):
        for name in (name for name, value in vars(settings).items() if isinstance(value, float)):
            with pytest.raises(DataError):
                replace(settings, **{name: odd})
    with pytest.raises(DataError):
        replace(Scope(), coefficients=(*Scope().coefficients[1:], odd))
    with pytest.raises(DataError):
        replace(ASSIGNER, coefficients={"names": {"names": odd}})


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
