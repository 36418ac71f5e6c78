"""What a task gets when no cluster fits it: a model trained on its own shots and on nothing else.

LinearAlone        a ridge regression on the mean word vector and on letter runs, in closed form, which also gives what
                   it would have answered on each shot without that shot; needs no torch
ConvolutionAlone   the paper's: the single-task convolution network, trained on the shots; needs torch
"""

from typing import Any, Protocol

import numpy as np
from scipy.special import softmax

from manymetrics.encode.encoders import LexicalEncoder, MeanEncoder
from manymetrics.encode.reading import Labelled
from manymetrics.encode.settings import Convolution, Training
from manymetrics.encode.tokens import Tokens
from manymetrics.measure.heads import Head
from manymetrics.values import Floats, Ints

SHOT_TRAINING = Training(steps=150, check_every=150, batch=16)
PENALTY = 0.3  # of the ridge; 0.1 and 1 do as well on held-out tasks of the bank
TEMPERATURE = 9.0
MOST_COMPARED = 1000  # shots a text is compared with; of more, as many are taken evenly
_JITTER = 1e-6


class Alone(Protocol):
    """A single-task model."""

    def chances(self, tokens: Tokens) -> Floats:
        """P(y | x) for each text: (texts, classes)."""


class LinearAlone:
    """Ridge regression of the labels on what can be known of a text without any learning.

    The likeness of two texts is the cosine of their mean word vectors plus that of their letter runs, plus one for the
    offset. Texts are described by their likeness to the shots, rotated so that inner products are likenesses again.
    """

    def __init__(
        self, mean: MeanEncoder, lexical: LexicalEncoder, shots: Tokens, labels: Ints, *, classes: int
    ) -> None:
        self._mean, self._lexical = mean, lexical
        every = self._encode(shots)
        kept = np.unique(np.linspace(0, len(shots) - 1, min(len(shots), MOST_COMPARED)).round().astype(np.int64))
        self._kept = (every[0][kept], every[1][kept])
        likeness = self._likeness(every)  # (shots, kept)
        root = np.linalg.cholesky(likeness[kept] + _JITTER * np.eye(len(kept)))
        self._turn = np.linalg.inv(root).T  # (kept, kept)
        rows = likeness @ self._turn  # (shots, kept)
        self._alone = np.bincount(labels, minlength=classes)[labels] == 1
        truth = np.eye(classes)[labels]  # (shots, classes)
        self._offset = truth.mean(axis=0)
        inverse = np.linalg.inv(rows.T @ rows + PENALTY * np.eye(len(kept)))
        self._weights = inverse @ (rows.T @ (truth - self._offset))  # (kept, classes)
        own = np.einsum("ik,ik->i", rows @ inverse, rows)  # (shots,): how far each shot pulls its own answer
        scores = rows @ self._weights
        self._left_out = scores - (own / (1 - own))[:, None] * (truth - self._offset - scores)

    def chances(self, tokens: Tokens) -> Floats:
        """P(y | x) for each text: (texts, classes)."""
        return self._answer(self._likeness(self._encode(tokens)) @ self._turn @ self._weights)

    def chances_left_out(self) -> Floats:
        """P(y | x) for each shot had it not been given, exactly and without a second fit: (shots, classes)."""
        chances = self._answer(self._left_out)
        chances[self._alone] = np.nan
        return chances

    def _answer(self, scores: Floats) -> Floats:
        return softmax(TEMPERATURE * (scores + self._offset), axis=1)  # type: ignore[no-any-return]

    def _encode(self, tokens: Tokens) -> tuple[Any, Any]:
        return self._mean.encode(tokens), self._lexical.encode(tokens)

    def _likeness(self, rows: tuple[Any, Any]) -> Floats:
        """(texts, kept)."""
        dense, letters = rows
        return (dense @ self._kept[0].T).astype(np.float64) + (letters @ self._kept[1].T).toarray() + 1  # type: ignore[no-any-return]


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
