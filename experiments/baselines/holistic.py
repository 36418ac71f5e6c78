"""Baseline (3) of the paper, as torch trains it: one network, a softmax for each task; then its last layer alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from safetensors.numpy import save
from torch import Tensor

from manymetrics.encode.convolution import ConvolutionEncoder
from manymetrics.encode.fitting import FittedClassifier, one_thread
from manymetrics.encode.network import ConvolutionNetwork
from manymetrics.encode.objectives import Classification
from manymetrics.encode.settings import Convolution, Training
from manymetrics.encode.training import Trained, train
from manymetrics.encode.vectors import WordVectors, as_one_table
from manymetrics.measure.models import training_parts
from manymetrics.values import Floats, Ints, LabelledTexts, Material, Unit

STOP_ON_TEXTS = 100  # of each task, that the network for all tasks is scored on


@dataclass(frozen=True, eq=False)
class FittedTogether:
    """One encoder trained on many tasks at once, each with a softmax of its own on top."""

    encoder: ConvolutionEncoder
    heads: list[tuple[Floats, Floats]]  # of each task: (width, labels), (labels,)
    trained: Trained


class LastLayer(Classification):
    """A softmax on top of an encoder that stays as it is."""

    def begin_at(self, encoder: ConvolutionEncoder, start: tuple[Floats, Floats] | None) -> None:
        """Take over an encoder, and a softmax to start from, where there is one."""
        with torch.no_grad():
            taps = encoder.filters.transpose(1, 0, 2).reshape(encoder.filters.shape[1], -1)  # (dimensions, taps)
            self.network.taps.copy_(torch.from_numpy(np.ascontiguousarray(taps)))
            self.network.bias.copy_(torch.from_numpy(encoder.bias))
            if start is not None:
                self.head.copy_(torch.from_numpy(start[0]))
                self.offset.copy_(torch.from_numpy(start[1]))

    def parameters(self) -> list[Tensor]:
        """The softmax alone."""
        return [self.head, self.offset]


class ManyHeads(Classification):
    """A softmax for each task over its own labels; the heads stand side by side, and a text sees its task's alone.

    Every task has the same chance, so that each head learns.
    """

    def __init__(self, network: ConvolutionNetwork, tasks: Sequence[LabelledTexts],
                 held_out: Sequence[LabelledTexts], *, classes: Sequence[int], convolution: Convolution,
                 training: Training) -> None:  # fmt: skip
        self._bounds = np.cumsum([0, *classes])
        shifted = [
            [
                LabelledTexts(part.texts, part.labels + first)
                for part, first in zip(parts, self._bounds[:-1], strict=True)
            ]
            for parts in (tasks, held_out)
        ]
        every = int(self._bounds[-1])
        super().__init__(network, *shifted, classes=every, convolution=convolution, training=training)
        columns = np.arange(every)
        own = (columns >= self._bounds[:-1, None]) & (columns < self._bounds[1:, None])  # (tasks, all labels)
        self._others = torch.from_numpy(np.where(own, 0, -np.inf).astype(np.float32))

    def draw(self, rng: np.random.Generator) -> Ints:
        """The rows of a batch, each of a task drawn uniformly: (batch,)."""
        sizes = np.bincount(self.owner)  # (tasks,)
        task = rng.integers(len(sizes), size=self.batch)
        return (np.cumsum(sizes) - sizes)[task] + (rng.random(self.batch) * sizes[task]).astype(np.int64)

    def logits(self, features: Tensor, task: Ints | int) -> Tensor:
        """How much speaks for each label, none of another task's among them: (texts, all labels)."""
        return super().logits(features, task) + self._others[task]

    def heads(self) -> list[tuple[Floats, Floats]]:
        """The weights (width, labels) and the offset (labels,) of each task's softmax."""
        head, offset = self.head.detach().numpy(), self.offset.detach().numpy()
        pairs = zip(self._bounds[:-1], self._bounds[1:], strict=True)
        return [(head[:, first:end].copy(), offset[first:end].copy()) for first, end in pairs]


def train_all(unit: Unit, material: Material) -> bytes:
    """Train the encoder of all tasks; where they share their labels, the mean of their softmaxes is kept as well."""
    bank, rng = material.bank.only(list(unit.spec["tasks"])), unit.rng(unit.spec["seed"])
    parts = [training_parts(task, rng) for task in bank]
    fitted = fit_together(
        material.encoders[unit.spec["words"]],
        [train for train, _ in parts],
        [held_out.take(rng.permutation(len(held_out))[:STOP_ON_TEXTS]) for _, held_out in parts],
        classes=[len(task.labels) for task in bank],
        convolution=Convolution(**unit.spec["convolution"]),
        training=Training(**unit.spec["training"]),
        rng=rng,
    )
    tensors = {"filters": fitted.encoder.filters, "bias": fitted.encoder.bias}
    if bank.shared_labels:
        tensors |= {
            "head": np.mean([head for head, _ in fitted.heads], axis=0),
            "offset": np.mean([offset for _, offset in fitted.heads], axis=0),
        }
    return save(tensors)


@one_thread()
def fit_together(words: WordVectors, tasks: Sequence[LabelledTexts], held_out: Sequence[LabelledTexts], *,
                 classes: Sequence[int], convolution: Convolution, training: Training,
                 rng: np.random.Generator) -> FittedTogether:  # fmt: skip
    """Train one encoder on several tasks, whatever their labels, with a softmax for each."""
    network = ConvolutionNetwork(words, convolution, rng)
    objective = ManyHeads(network, tasks, held_out, classes=classes, convolution=convolution, training=training)
    trained = train(objective, training, rng)
    return FittedTogether(network.encoder(), objective.heads(), trained)


@one_thread()
def fit_softmax(encoder: ConvolutionEncoder, examples: LabelledTexts, start: tuple[Floats, Floats] | None, *,
                classes: int, convolution: Convolution, training: Training,
                rng: np.random.Generator) -> FittedClassifier:  # fmt: skip
    """Fine-tune the last layer alone: a softmax, begun at `start`, on top of an encoder that stays as it is."""
    network = ConvolutionNetwork(as_one_table(encoder.words), replace(convolution, learn_words=False), rng)
    objective = LastLayer(network, [examples], [], classes=classes, convolution=convolution, training=training)
    objective.begin_at(encoder, start)
    trained = train(objective, training, rng)
    weights, offset = objective.head.detach().numpy().copy(), objective.offset.detach().numpy().copy()
    return FittedClassifier(encoder, weights, offset, trained)
