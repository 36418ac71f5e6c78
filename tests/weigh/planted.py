"""Encoders and metrics of planted directions: a text is a row of numbers."""

import numpy as np

from manymetrics.encode import Encoder, State
from manymetrics.specialize import Metric
from manymetrics.specialize.metric import FROZEN, LEARNED, TUNED


class Numbers(Encoder, kind="test-planted-numbers"):
    """A text such as "0.1 0.9 0.3" as its numbers, each times a weight; a weight of 0 hides it."""

    def __init__(self, *weights):
        self.weights = np.array(weights, dtype=np.float32)

    def encode(self, texts):
        rows = [[float(number) for number in text.split()] for text in texts]
        rows = [row or [0.0] * len(self.weights) for row in rows]  # an empty text has no numbers
        return np.array(rows, dtype=np.float32).reshape(len(texts), len(self.weights)) * self.weights

    def state(self):
        return State({"weights": self.weights})

    @classmethod
    def from_state(cls, state):
        return cls(*state.tensors["weights"])


def metric(name, kind, encoder, cluster=None):
    tasks = () if kind == FROZEN else ("a",)
    return Metric(name, kind, encoder, "prototypical", 10.0, tasks, cluster)


def frozen(encoder, name="base"):
    return metric(name, FROZEN, encoder)


def shared(encoder):
    return metric("projection", TUNED, encoder)


def of_cluster(number, encoder):
    return metric(f"cluster-{number}", LEARNED, encoder, number)


def as_texts(rows):
    return [" ".join(f"{number:.6f}" for number in row) for row in rows]


def planted_texts(labels, width, *, spread, seed):
    """Texts around one direction for each label: the label's number is the largest where `spread` is small."""
    rng = np.random.default_rng(seed)
    return as_texts(np.eye(width)[labels] + spread * rng.standard_normal((len(labels), width)))
