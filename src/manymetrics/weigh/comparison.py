"""Texts and a task's examples -> cosines between them, one encoder at a time, each product made once."""

import numpy as np

from manymetrics.encode.encoder import Encoder, Features
from manymetrics.specialize.metric import dense, nearest, nearest_others, without_themselves
from manymetrics.values import Floats, Ints

MOST_LANDMARKS = 1000  # examples that texts are compared with by a regression; of more, as many are taken evenly


def choose_landmarks(count: int) -> Ints:
    """The places of the examples that stand for all of them (Nyström's method)."""
    places = np.linspace(0, count - 1, min(count, MOST_LANDMARKS)).round().astype(np.int64)
    return np.unique(places)


class Comparison:
    """Some texts compared with a task's examples; whoever needs a cosine finds it here.

    Of the examples the first `count` are texts; those behind them are the names of the labels.
    """

    def __init__(self, features: Features, examples: Features, landmarks: Ints, count: int) -> None:
        self.features, self.examples, self.landmarks, self.count = features, examples, landmarks, count
        self._cosines: dict[Encoder, Floats] = {}
        self._to_landmarks: dict[Encoder, Floats] = {}

    def cosines(self, encoder: Encoder) -> Floats:
        """With every example and name: (texts, examples)."""
        if encoder not in self._cosines:
            self._cosines[encoder] = dense(
                self.features.directions(encoder) @ self.examples.directions(encoder).T
            )  # fmt: skip
        return self._cosines[encoder]

    def to_landmarks(self, encoder: Encoder) -> Floats:
        """With the examples that stand for all of them: (texts, landmarks)."""
        if len(self.landmarks) == len(self.examples):
            return self.cosines(encoder)
        if encoder not in self._to_landmarks:
            some = self.examples.directions(encoder)[self.landmarks]
            self._to_landmarks[encoder] = dense(self.features.directions(encoder) @ some.T)
        return self._to_landmarks[encoder]

    def nearest(self, encoder: Encoder) -> Floats:
        """The cosine of each text with its nearest example: (texts,)."""
        return self.cosines(encoder)[:, : self.count].max(axis=1)  # type: ignore[no-any-return]

    def nearest_others(self, encoder: Encoder) -> Floats:
        """Of the examples compared with themselves: the cosine of each with the nearest other one, (count,)."""
        if len(self.landmarks) == len(self.examples):
            return nearest(without_themselves(self.cosines(encoder)[: self.count, : self.count].copy(), 0))
        return nearest_others(self.examples.directions(encoder)[: self.count])
