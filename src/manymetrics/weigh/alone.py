"""What a task gets when no cluster fits it: a model trained on its own shots and on nothing else.

LinearAlone        a ridge regression on the mean word vector and on letter runs; needs no torch
ConvolutionAlone   the paper's: the single-task convolution network, trained on the shots; needs torch
"""

from typing import Any, Protocol

import numpy as np

from manymetrics.encode.encoders import LexicalEncoder, MeanEncoder
from manymetrics.encode.reading import Labelled
from manymetrics.encode.settings import Convolution, Training
from manymetrics.encode.tokens import Tokens
from manymetrics.measure.heads import Head
from manymetrics.values import Floats, Ints
from manymetrics.weigh.ridge import Ridge, spread

SHOT_TRAINING = Training(steps=150, check_every=150, batch=16)


class Alone(Protocol):
    """A single-task model."""

    def chances(self, tokens: Tokens) -> Floats:
        """P(y | x) for each text: (texts, classes)."""


class LinearAlone:
    """Ridge regression of the labels on what can be known of a text without any learning.

    The likeness of two texts is the cosine of their mean word vectors plus that of their letter runs.
    """

    def __init__(
        self, mean: MeanEncoder, lexical: LexicalEncoder, shots: Tokens, labels: Ints, *, classes: int
    ) -> None:
        self._mean, self._lexical = mean, lexical
        every, kept = self._encode(shots), spread(len(shots))
        self._kept = (every[0][kept], every[1][kept])
        self._ridge = Ridge(self._likeness(every), kept, labels, classes)

    def chances(self, tokens: Tokens) -> Floats:
        """P(y | x) for each text: (texts, classes)."""
        return self._ridge.chances(self._likeness(self._encode(tokens)))

    def chances_left_out(self) -> Floats:
        """P(y | x) for each shot had it not been given: (shots, classes)."""
        return self._ridge.chances_left_out()

    def _encode(self, tokens: Tokens) -> tuple[Any, Any]:
        return self._mean.encode(tokens), self._lexical.encode(tokens)

    def _likeness(self, rows: tuple[Any, Any]) -> Floats:
        """(texts, kept)."""
        dense, letters = rows
        return (dense @ self._kept[0].T).astype(np.float64) + (letters @ self._kept[1].T).toarray()  # type: ignore[no-any-return]


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
