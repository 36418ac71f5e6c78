"""The one training loop. It knows nothing of convolutions, tasks or episodes: what is learned is an argument.

An `Objective` draws its own batches, gives a loss, and scores itself on examples or tasks held out from training. The
loop takes steps, looks at the score now and then, stops when it no longer rises, and hands back the best weights seen.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from manymetrics.encode.settings import Training
from manymetrics.errors import ManyMetricsError


@dataclass(frozen=True)
class Trained:
    """How a training ended."""

    steps: int  # taken
    best_step: int  # whose weights were kept
    score: float  # of those weights, on what was held out


class Objective(Protocol):
    """What a network is trained for."""

    def parameters(self) -> list[Tensor]:
        """The tensors to be changed."""

    def sparse_parameters(self) -> list[Tensor]:
        """The tensors of which a step changes a few rows."""

    def loss(self, rng: np.random.Generator) -> Tensor:
        """The loss of a batch drawn with `rng`."""

    def score(self) -> float | None:
        """How good the weights are on what was held out, larger is better; None where nothing was."""


def train(objective: Objective, training: Training, rng: np.random.Generator) -> Trained:
    """Train until the held-out score no longer rises; the objective's tensors end at their best.

    With nothing held out, training takes all its steps and the last weights count.
    """
    dense, sparse = objective.parameters(), objective.sparse_parameters()
    optimizers = _optimizers(dense, sparse, training.learning_rate)
    tensors = [*dense, *sparse]
    best, best_step, kept = -np.inf, 0, [tensor.detach().clone() for tensor in tensors]
    waited = step = 0
    while step < training.steps and waited < training.patience:
        step += 1
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = objective.loss(rng)
        loss.backward()  # type: ignore[no-untyped-call]
        for optimizer in optimizers:
            optimizer.step()
        if step % training.check_every and step != training.steps:
            continue
        score = objective.score()
        _check_finite(step, loss.item(), score)
        waited += 1
        if score is None or score > best:
            best, best_step, waited = score or 0.0, step, 0
            kept = [tensor.detach().clone() for tensor in tensors]
    with torch.no_grad():
        for tensor, value in zip(tensors, kept, strict=True):
            tensor.copy_(value)
    return Trained(step, best_step, float(best))


def _optimizers(dense: list[Tensor], sparse: list[Tensor], rate: float) -> list[torch.optim.Optimizer]:
    """Adam, and for tensors of which a step changes a few rows Adam that looks at no other."""
    optimizers: list[torch.optim.Optimizer] = [torch.optim.Adam(dense, lr=rate, fused=True)] if dense else []
    return [*optimizers, torch.optim.SparseAdam(sparse, lr=rate)] if sparse else optimizers


def _check_finite(step: int, loss: float, score: float | None) -> None:
    if not np.isfinite(loss) or not np.isfinite(score or 0.0):
        raise ManyMetricsError(
            f"Training left the finite numbers at step {step} (loss {loss:g}, score {score}). "
            "Lower the learning rate, or look for broken word vectors."
        )
