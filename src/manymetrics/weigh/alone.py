"""What a task gets when no cluster fits it: a model trained on its own shots and on nothing else.

LinearAlone        a logistic regression over the mean word vector and the likeness of letter runs to each shot;
                   needs no torch
ConvolutionAlone   the paper's: the single-task convolution network, trained on the shots; needs torch
"""

from typing import Protocol

import numpy as np

from manymetrics.encode.encoders import LexicalEncoder, MeanEncoder
from manymetrics.encode.reading import Labelled
from manymetrics.encode.settings import Convolution, Training
from manymetrics.encode.tokens import Tokens
from manymetrics.measure.heads import Head, fit_head
from manymetrics.values import Floats, Ints

SHOT_TRAINING = Training(steps=150, check_every=150, batch=16)


class Alone(Protocol):
    """A single-task model."""

    def chances(self, tokens: Tokens) -> Floats:
        """P(y | x) for each text: (texts, classes)."""


class LinearAlone:
    """Logistic regression on what can be known of a text without any learning."""

    def __init__(
        self, mean: MeanEncoder, lexical: LexicalEncoder, shots: Tokens, labels: Ints, *, classes: int
    ) -> None:
        self._mean, self._lexical = mean, lexical
        self._shots = lexical.encode(shots)  # (shots, buckets) sparse
        self._head = fit_head(self._features(shots), labels, classes=classes, penalty=1.0)

    def _features(self, tokens: Tokens) -> Floats:
        likeness = (self._lexical.encode(tokens) @ self._shots.T).toarray()  # (texts, shots)
        return np.hstack([4 * self._mean.encode(tokens), likeness])

    def chances(self, tokens: Tokens) -> Floats:
        """P(y | x) for each text: (texts, classes)."""
        return self._head.chances(self._features(tokens))


class ConvolutionAlone:
    """The paper's single-task convolution network."""

    def __init__(self, table: Floats, shots: Tokens, labels: Ints, classes: int, *, seed: int = 0) -> None:
        from manymetrics.encode.fitting import fit_classifier

        rng = np.random.default_rng(seed)
        fitted = fit_classifier(
            table,
            [Labelled(shots, labels)],
            [],
            classes=classes,
            convolution=Convolution(),
            training=SHOT_TRAINING,
            rng=rng,
        )
        self._encoder, self._head = fitted.encoder, Head(fitted.weights, fitted.offset)

    def chances(self, tokens: Tokens) -> Floats:
        """P(y | x) for each text: (texts, classes)."""
        return self._head.chances(self._encoder.responses(tokens))
