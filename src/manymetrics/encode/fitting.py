"""Examples -> a trained encoder: network, objective and loop put together. Needs torch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manymetrics.encode.encoders import ConvolutionEncoder, MeanEncoder
from manymetrics.encode.reading import Labelled
from manymetrics.encode.settings import Convolution, Training
from manymetrics.errors import MissingExtra
from manymetrics.values import Floats

try:
    import torch

    from manymetrics.encode.network import AveragingNetwork, ConvolutionNetwork
    from manymetrics.encode.objectives import Classification, Episodes, ManyHeads
    from manymetrics.encode.training import Trained, train
except ModuleNotFoundError as missing:
    raise MissingExtra(
        'Training needs torch, which is not installed. Install it with: pip install "manymetrics[train]"'
    ) from missing


@dataclass(frozen=True, eq=False)
class FittedClassifier:
    """An encoder trained together with a softmax on top."""

    encoder: ConvolutionEncoder
    weights: Floats  # (width, classes)
    offset: Floats  # (classes,)
    trained: Trained


@dataclass(frozen=True, eq=False)
class FittedTogether:
    """One encoder trained on many tasks at once, each with a softmax of its own on top."""

    encoder: ConvolutionEncoder
    heads: list[tuple[Floats, Floats]]  # of each task: (width, labels), (labels,)
    trained: Trained


@dataclass(frozen=True, eq=False)
class FittedMetric:
    """An encoder trained to bring texts near to the examples of their label."""

    encoder: ConvolutionEncoder | MeanEncoder
    temperature: float
    trained: Trained


def fit_classifier(table: Floats, tasks: Sequence[Labelled], held_out: Sequence[Labelled], *, classes: int,
                   convolution: Convolution, training: Training,
                   rng: np.random.Generator) -> FittedClassifier:  # fmt: skip
    """Train a classifier over one label set, on one task or on several that share it."""
    torch.set_num_threads(1)  # the number of threads changes the bits
    network = ConvolutionNetwork(table, convolution, rng)
    objective = Classification(network, tasks, held_out, classes=classes, convolution=convolution, training=training)
    trained = train(objective, training, rng)
    weights, offset = objective.head.detach().numpy().copy(), objective.offset.detach().numpy().copy()
    return FittedClassifier(network.encoder(), weights, offset, trained)


def fit_together(table: Floats, tasks: Sequence[Labelled], held_out: Sequence[Labelled], *, classes: Sequence[int],
                 convolution: Convolution, training: Training, rng: np.random.Generator) -> FittedTogether:  # fmt: skip
    """Train one encoder on several tasks, whatever their labels, with a softmax for each."""
    torch.set_num_threads(1)  # the number of threads changes the bits
    network = ConvolutionNetwork(table, convolution, rng)
    objective = ManyHeads(network, tasks, held_out, classes=classes, convolution=convolution, training=training)
    trained = train(objective, training, rng)
    return FittedTogether(network.encoder(), objective.heads(), trained)


def fit_softmax(encoder: ConvolutionEncoder, examples: Labelled, start: tuple[Floats, Floats] | None, *, classes: int,
                convolution: Convolution, training: Training,
                rng: np.random.Generator) -> FittedClassifier:  # fmt: skip
    """Fine-tune the last layer alone: a softmax, begun at `start`, on top of an encoder that stays as it is."""
    torch.set_num_threads(1)  # the number of threads changes the bits
    network = ConvolutionNetwork(encoder.table, convolution, rng)
    objective = Classification(network, [examples], [], classes=classes, convolution=convolution, training=training)
    objective.begin_at(encoder, *(start or (None, None)))
    trained = train(objective, training, rng)
    weights, offset = objective.head.detach().numpy().copy(), objective.offset.detach().numpy().copy()
    return FittedClassifier(encoder, weights, offset, trained)


def fit_episodes(table: Floats, tasks: Sequence[Labelled], trials: Sequence[tuple[Labelled, Labelled]], *, kind: str,
                 convolution: Convolution, training: Training, rng: np.random.Generator) -> FittedMetric:  # fmt: skip
    """Train a metric on episodes drawn from several tasks, whatever their labels."""
    torch.set_num_threads(1)  # the number of threads changes the bits
    network = ConvolutionNetwork(table, convolution, rng)
    hidden = {"dropout": convolution.dropout, "lost_words": convolution.lost_words}
    objective = Episodes(network, tasks, trials, kind=kind, training=training, **hidden)
    trained = train(objective, training, rng)
    return FittedMetric(network.encoder(), objective.temperature, trained)


def fit_words(table: Floats, tasks: Sequence[Labelled], trials: Sequence[tuple[Labelled, Labelled]], *, kind: str,
              lost_words: float, training: Training, rng: np.random.Generator) -> FittedMetric:  # fmt: skip
    """Move word vectors on episodes drawn from several tasks, until their mean is a metric for these."""
    torch.set_num_threads(1)  # the number of threads changes the bits
    network = AveragingNetwork(table)
    objective = Episodes(network, tasks, trials, kind=kind, training=training, lost_words=lost_words)
    trained = train(objective, training, rng)
    return FittedMetric(network.encoder(), objective.temperature, trained)
