"""The sizes of a network and the length of its training: plain numbers, known without torch."""

from dataclasses import dataclass

MATCHING, PROTOTYPICAL = "matching", "prototypical"  # the two rules by which a text is compared with examples


@dataclass(frozen=True)
class Convolution:
    """The shape of a convolution encoder and dropout in training."""

    window: int = 5  # tokens a filter sees at once
    width: int = 200  # filters
    dropout: float = 0.5  # share of the features hidden at each step


@dataclass(frozen=True)
class Training:
    """How long and how fast to train."""

    steps: int = 1000  # at most
    check_every: int = 50  # steps between two evaluations of the held-out score
    patience: int = 4  # evaluations without a gain before stopping
    learning_rate: float = 1e-3
    batch: int = 32  # texts of a step, where steps are made of single texts
    ways: int = 8  # labels of an episode, where steps are episodes
    shots: int = 5  # examples of each of these labels, at most
    queries: int = 32  # texts of an episode to be answered


@dataclass(frozen=True)
class ProjectionTraining:
    """How a projection is trained."""

    steps: int = 2000
    check_every: int = 250
    learning_rate: float = 1e-4
    dropout: float = 0.1
    ways: int = 16
    shots: int = 2
    queries: int = 64


@dataclass(frozen=True)
class LowRankTraining:
    """How the low-rank factors of a sentence encoder are trained."""

    steps: int = 40
    learning_rate: float = 2e-3
    rank: int = 8
    frozen_share: float = 0.25  # of the layers, from the bottom, that have no factors
    max_tokens: int = 48  # of a text
    dropout: float = 0.1
    ways: int = 8  # labels of an episode
    shots: int = 3  # of each label of an episode, at most
    queries: int = 20  # of an episode
    max_labels: int = 16  # of a step on shots; of more labels, neighbouring ones are chosen
    max_shots: int = 64  # of a step on shots
