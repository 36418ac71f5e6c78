"""The sizes of a network and the length of its training: plain numbers, known without torch."""

from dataclasses import dataclass

MATCHING, PROTOTYPICAL = "matching", "prototypical"  # the two rules by which a text is compared with examples


@dataclass(frozen=True)
class Convolution:
    """The shape of a convolution encoder and what is hidden from it in training."""

    window: int = 5  # tokens a filter sees at once
    width: int = 200  # filters
    dropout: float = 0.5  # share of the features hidden at each step
    word_dropout: float = 0.0  # share of the words hidden at each step
    learn_words: bool = False  # the word vectors move too, in a copy of the encoder's own


@dataclass(frozen=True)
class Training:
    """How long and how fast to train."""

    steps: int = 1000  # at most
    check_every: int = 50  # steps between two looks at the held-out score
    patience: int = 4  # looks without a rise before stopping
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
class TuningSettings:
    """How the weights of a sentence encoder are moved."""

    steps: int = 80  # episodes
    learning_rate: float = 1e-4
    fixed: float = 0.25  # share of the layers, from the bottom, that stay as they are, with the embeddings
    longest: int = 64  # tokens of a text that are read
    named: float = 0.5  # share of the episodes in which label names are among the examples
    episode: ProjectionTraining = ProjectionTraining(queries=32)
