"""Baseline (3) of the paper, as torch trains it: one network, a softmax for each task; then its last layer alone."""

from collections.abc import Sequence

import numpy as np
import torch
from safetensors.numpy import save
from torch import Tensor

from manymetrics.encode.convolution import ConvolutionEncoder
from manymetrics.encode.settings import Convolution, Training
from manymetrics.encode.training.convolution import Classification, ConvolutionNetwork, one_thread, train
from manymetrics.measure.convolution import training_parts
from manymetrics.measure.heads import Head
from manymetrics.values import Examples, Floats, Ints, Job, SharedData

STOP_ON_TEXTS = 100  # of each task, that the network for all tasks is scored on


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

    def __init__(self, network: ConvolutionNetwork, tasks: Sequence[Examples], held_out: Sequence[Examples], *,
                 batch: int) -> None:  # fmt: skip
        self._bounds = np.cumsum([0, *(len(task.classes) for task in tasks)])
        labels = tuple(f"{number} {label}" for number, task in enumerate(tasks) for label in task.classes)
        of_all = [
            [
                Examples(part.texts, tuple(f"{number} {label}" for label in part.labels), labels)
                for number, part in enumerate(parts)
            ]
            for parts in (tasks, held_out)
        ]
        super().__init__(network, *of_all, batch=batch)
        columns = np.arange(len(labels))
        own = (columns >= self._bounds[:-1, None]) & (columns < self._bounds[1:, None])  # (tasks, all labels)
        self._others = torch.from_numpy(np.where(own, 0, -np.inf).astype(np.float32))

    def draw(self, rng: np.random.Generator) -> Ints:
        """The rows of a batch, each of a task drawn uniformly: (batch,)."""
        sizes = np.bincount(self.task_of)  # (tasks,)
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


def train_all(job: Job, shared_data: SharedData) -> bytes:
    """Train the encoder of all tasks; where they share their labels, the mean of their softmaxes is kept as well."""
    bank, rng = shared_data.bank.only(list(job.spec["tasks"])), job.rng(job.spec["seed"])
    parts = [training_parts(task, rng) for task in bank]
    held_out = [some.take(rng.permutation(len(some))[:STOP_ON_TEXTS]) for _, some in parts]
    training = Training(**job.spec["training"])
    with one_thread():
        network = ConvolutionNetwork(shared_data.base, Convolution(**job.spec["convolution"]), rng)
        objective = ManyHeads(network, [texts for texts, _ in parts], held_out, batch=training.batch)
        train(objective, training, rng)
    encoder, heads = network.encoder(), objective.heads()
    tensors = {"filters": encoder.filters, "bias": encoder.bias}
    if bank.shared_labels:
        tensors |= {
            "head": np.mean([head for head, _ in heads], axis=0),
            "offset": np.mean([offset for _, offset in heads], axis=0),
        }
    return save(tensors)


@one_thread()
def fit_softmax(encoder: ConvolutionEncoder, examples: Examples, start: tuple[Floats, Floats] | None, *,
                convolution: Convolution, training: Training, rng: np.random.Generator) -> Head:  # fmt: skip
    """Fine-tune the last layer alone: a softmax, begun at `start`, on top of an encoder that stays as it is."""
    network = ConvolutionNetwork(encoder.words, convolution, rng)
    objective = LastLayer(network, [examples], [], batch=training.batch)
    objective.begin_at(encoder, start)
    train(objective, training, rng)
    return Head(objective.head.detach().numpy().copy(), objective.offset.detach().numpy().copy())
