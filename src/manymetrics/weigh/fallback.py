"""What a task gets when no cluster fits it: a model trained on its own examples and on nothing else.

RegressionFallback   a logistic regression on encoders that learned nothing from labels; needs no torch
NetworkFallback      the paper's: the single-task convolution network, trained on the examples; needs torch
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from manymetrics.encode.encoder import Encoder
from manymetrics.encode.settings import Convolution, Training
from manymetrics.encode.vectors import WordVectors
from manymetrics.measure.heads import Head
from manymetrics.values import Floats, Ints, LabelledTexts
from manymetrics.weigh.comparison import Comparison
from manymetrics.weigh.regression import Logistic

FEW_EXAMPLES = Training(steps=150, check_every=150, batch=16)


class Fallback(Protocol):
    """A single-task model."""

    def probabilities(self, texts: Comparison) -> Floats:
        """P(y | x) for each text: (texts, classes)."""

    def leave_one_out(self) -> Floats | None:
        """P(y | x) for each example had it not been given: (examples, classes); None where that is not known."""


class RegressionFallback:
    """Logistic regression of the labels on what can be known of a text without learning from other tasks' labels.

    The kernel of two texts is the sum of their cosines under each encoder.
    """

    def __init__(self, encoders: Sequence[Encoder], examples: Comparison, labels: Ints, classes: int,
                 shots: int | None = None) -> None:  # fmt: skip
        """Of the examples the first `shots` are texts, all if nothing is said; those behind are names of labels."""
        self._encoders, self._shots = encoders, shots
        self._regression = Logistic(self._kernel(examples), examples.landmarks, labels, classes)

    def probabilities(self, texts: Comparison) -> Floats:
        """P(y | x) for each text: (texts, classes)."""
        return self._regression.probabilities(self._kernel(texts))

    def leave_one_out(self) -> Floats:
        """P(y | x) for each example had it not been given: (examples, classes)."""
        return self._regression.leave_one_out()[: self._shots]

    def _kernel(self, texts: Comparison) -> Floats:
        """(texts, landmarks)."""
        return sum(texts.to_landmarks(encoder).astype(np.float64) for encoder in self._encoders)  # type: ignore[return-value]


class NetworkFallback:
    """The paper's single-task convolution network."""

    def __init__(self, words: WordVectors, examples: LabelledTexts, classes: int, *, steps: int = FEW_EXAMPLES.steps,
                 seed: int = 0) -> None:  # fmt: skip
        from manymetrics.encode.fitting import fit_classifier

        training = replace(FEW_EXAMPLES, steps=steps, check_every=steps)
        fitted = fit_classifier(
            words, [examples], [], classes=classes, convolution=Convolution(), training=training,
            rng=np.random.default_rng(seed),
        )  # fmt: skip
        self._encoder, self._head = fitted.encoder, Head(fitted.weights, fitted.offset)

    def probabilities(self, texts: Comparison) -> Floats:
        """P(y | x) for each text: (texts, classes)."""
        return self._head.probabilities(texts.features.rows(self._encoder))

    def leave_one_out(self) -> None:
        """Not known without a training for each example."""
        return
