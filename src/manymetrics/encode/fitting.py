"""Examples -> a trained encoder: network, objective and loop put together. Needs torch."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from manymetrics.encode.convolution import ConvolutionEncoder
from manymetrics.encode.settings import Convolution, Training
from manymetrics.encode.vectors import Words, WordVectors
from manymetrics.errors import MissingExtra
from manymetrics.values import Episode, Floats, LabelledTexts

try:
    import torch

    from manymetrics.encode.network import AveragingNetwork, ConvolutionNetwork
    from manymetrics.encode.objectives import Classification, Episodes
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
class FittedMetric:
    """An encoder trained to bring texts near to the examples of their label."""

    encoder: ConvolutionEncoder | Words
    temperature: float
    trained: Trained


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One thread of torch: the number of threads changes the bits. Whoever calls gets theirs back."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@one_thread()
def fit_classifier(words: WordVectors, tasks: Sequence[LabelledTexts], held_out: Sequence[LabelledTexts], *,
                   classes: int, convolution: Convolution, training: Training,
                   rng: np.random.Generator) -> FittedClassifier:  # fmt: skip
    """Train a classifier over one label set, on one task or on several that share it."""
    network = ConvolutionNetwork(words, convolution, rng)
    objective = Classification(network, tasks, held_out, classes=classes, convolution=convolution, training=training)
    trained = train(objective, training, rng)
    weights, offset = objective.head.detach().numpy().copy(), objective.offset.detach().numpy().copy()
    return FittedClassifier(network.encoder(), weights, offset, trained)


@one_thread()
def fit_episodes(words: WordVectors, tasks: Sequence[LabelledTexts], held_out: Sequence[Episode], *, kind: str,
                 convolution: Convolution, training: Training, rng: np.random.Generator) -> FittedMetric:  # fmt: skip
    """Train a metric on episodes drawn from several tasks, whatever their labels."""
    network = ConvolutionNetwork(words, convolution, rng)
    dropout = {"dropout": convolution.dropout, "word_dropout": convolution.word_dropout}
    objective = Episodes(network, tasks, held_out, kind=kind, training=training, **dropout)
    trained = train(objective, training, rng)
    return FittedMetric(network.encoder(), objective.temperature, trained)


@one_thread()
def fit_words(words: WordVectors, tasks: Sequence[LabelledTexts], held_out: Sequence[Episode], *, kind: str,
              word_dropout: float, training: Training, rng: np.random.Generator) -> FittedMetric:  # fmt: skip
    """Move word vectors on episodes drawn from several tasks, until their mean is a metric for these."""
    network = AveragingNetwork(words)
    objective = Episodes(network, tasks, held_out, kind=kind, training=training, word_dropout=word_dropout)
    trained = train(objective, training, rng)
    return FittedMetric(network.encoder(), objective.temperature, trained)
