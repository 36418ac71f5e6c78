"""Examples -> a trained convolution network: the training loop, and network and loss put together. Needs torch.

A loss draws its own batches, and scores itself on examples or tasks held out from training. The loop takes steps,
evaluates the score now and then, stops when it no longer rises, and restores the best weights seen.
"""

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from manymetrics.encode.convolution import ConvolutionEncoder
from manymetrics.encode.representation import START_TEMPERATURE
from manymetrics.encode.settings import Convolution, Training
from manymetrics.encode.vectors import WordVectors
from manymetrics.errors import ManyMetricsError, MissingExtra
from manymetrics.values import Episode, Examples, Floats

try:
    import torch
    from torch import Tensor

    from manymetrics.encode.network import Classification, ConvolutionNetwork, Episodes
except ModuleNotFoundError as missing:
    raise MissingExtra(
        'Training needs torch, which is not installed. Install it with: pip install "manymetrics[train]"'
    ) from missing


@dataclass(frozen=True)
class Trained:
    """How a training ended."""

    n_taken: int
    n_steps: int  # after which the weights were best
    score: float  # of those weights, on what was held out; minus infinity where nothing was


@dataclass(frozen=True, eq=False)
class FittedNetwork:
    """A trained encoder."""

    encoder: ConvolutionEncoder
    temperature: float
    n_steps: int
    loss: float  # on what was held out


@dataclass(frozen=True, eq=False)
class FittedClassifier(FittedNetwork):
    """A trained encoder with a softmax on top."""

    weights: Floats  # (width, classes)
    offset: Floats  # (classes,)


class Objective(Protocol):
    """What a network is trained for."""

    def parameters(self) -> list[Tensor]:
        """The tensors to be changed."""

    def loss(self, rng: np.random.Generator) -> Tensor:
        """The loss of a batch drawn with `rng`."""

    def score(self) -> float | None:
        """How good the weights are on what was held out, larger is better; None where nothing was."""


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One thread of torch, because the number of threads changes the bits; restored at the end."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train(objective: Objective, training: Training, rng: np.random.Generator) -> Trained:
    """Train until the held-out score no longer rises; the objective's tensors end at their best.

    With nothing held out, training takes all its steps and the last weights count.
    """
    tensors = objective.parameters()
    optimizer = torch.optim.Adam(tensors, lr=training.learning_rate, fused=True)
    best, best_step, best_tensors = -math.inf, 0, [tensor.detach().clone() for tensor in tensors]
    n_without_gain = step = 0
    while step < training.steps and n_without_gain < training.patience:
        step += 1
        optimizer.zero_grad()
        loss = objective.loss(rng)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if step % training.check_every and step != training.steps:
            continue
        score = objective.score()
        _check_finite(step, loss.item(), score)
        n_without_gain += 1
        if score is None or score > best:
            best, best_step, n_without_gain = -math.inf if score is None else score, step, 0
            best_tensors = [tensor.detach().clone() for tensor in tensors]
    with torch.no_grad():
        for tensor, value in zip(tensors, best_tensors, strict=True):
            tensor.copy_(value)
    return Trained(step, best_step, best)


def _check_finite(step: int, loss: float, score: float | None) -> None:
    if not np.isfinite(loss) or not np.isfinite(score or 0.0):
        raise ManyMetricsError(
            f"Training left the finite numbers at step {step} (loss {loss:g}, score {score}). "
            "Lower the learning rate, or check the word vectors."
        )


@one_thread()
def fit_classifier(words: WordVectors, tasks: Sequence[Examples], held_out: Sequence[Examples], *,
                   convolution: Convolution, training: Training,
                   rng: np.random.Generator) -> FittedClassifier:  # fmt: skip
    """Train a classifier over one label set, on one task or on several that share it."""
    network = ConvolutionNetwork(words, convolution, rng)
    objective = Classification(network, tasks, held_out, convolution=convolution, training=training)
    trained = train(objective, training, rng)
    weights, offset = objective.head.detach().numpy().copy(), objective.offset.detach().numpy().copy()
    return FittedClassifier(network.encoder(), START_TEMPERATURE, trained.n_steps, -trained.score, weights, offset)


@one_thread()
def fit_episodes(words: WordVectors, tasks: Sequence[Examples], validation: Sequence[Episode], *, rule: str,
                 convolution: Convolution, training: Training, rng: np.random.Generator) -> FittedNetwork:  # fmt: skip
    """Train a metric on episodes drawn from several tasks, whatever their labels."""
    network = ConvolutionNetwork(words, convolution, rng)
    objective = Episodes(network, tasks, validation, rule=rule, convolution=convolution, training=training)
    trained = train(objective, training, rng)
    return FittedNetwork(network.encoder(), objective.temperature, trained.n_steps, -trained.score)
