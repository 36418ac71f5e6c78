"""What torch trains for the paper's recipe: a convolution over fixed word vectors, and its two losses.

    ConvolutionNetwork   tokens of texts -> features with gradients
    Classification       a softmax over one label set (single tasks; clusters whose tasks share their labels)
    Episodes             eqn:mnet_obj (matching) and eqn:base_protonet (prototypical) over the tasks of a cluster

Similarities are cosines times a learned temperature: the paper's inner products with `f` scaled to length one, so that
long texts do not dominate. The score is the mean log-likelihood over tasks, because probabilities are mixed.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from manymetrics.encode.convolution import ConvolutionEncoder, window_rows
from manymetrics.encode.representation import START_TEMPERATURE
from manymetrics.encode.settings import PROTOTYPICAL, Convolution, Training
from manymetrics.encode.tokens import Tokens
from manymetrics.encode.vectors import WordVectors
from manymetrics.episodes import draw_indices, groups_by_label
from manymetrics.values import Bools, Episode, Examples, Ints


class ConvolutionNetwork:
    """Filters over windows of fixed word vectors, being trained."""

    def __init__(self, words: WordVectors, convolution: Convolution, rng: np.random.Generator) -> None:
        window, width, dimensions = convolution.window, convolution.width, words.dimensions
        size = float(np.sqrt(np.mean(np.square(words.table, dtype=np.float64))))  # root mean square of the table
        spread = 1 / (size * np.sqrt(window * dimensions))  # responses start with variance one
        start = rng.normal(0, spread, (dimensions, window * width)).astype(np.float32)
        self.words, self.window, self.width = words, window, width
        self.taps = torch.from_numpy(start).requires_grad_()  # (dimensions, window * width)
        self.bias = torch.zeros(width, requires_grad=True)  # (width,)

    @property
    def parameters(self) -> list[Tensor]:
        """What the optimizer changes."""
        return [self.taps, self.bias]

    def forward(self, tokens: Tokens, *, word_dropout: float = 0.0, rng: np.random.Generator | None = None) -> Tensor:
        """The ramp of each filter's largest response: (texts, width). A share of the words may be hidden."""
        vectors = torch.from_numpy(self.words.table[tokens.words.distinct])  # (distinct, dimensions)
        rows = window_rows(tokens, self.window)  # (tokens, window)
        outside = len(vectors) * self.window
        if word_dropout and rng is not None:
            hidden = rng.random(len(rows)) < word_dropout
            rows = np.where(_hidden_in_window(hidden, self.window), outside, rows)
        products = torch.cat([(vectors @ self.taps).view(-1, self.width), torch.zeros(1, self.width)])
        responses = functional.embedding_bag(torch.from_numpy(rows), products, mode="sum", padding_idx=outside)
        by_text = torch.split(responses, np.diff(tokens.starts).tolist())
        return torch.relu(torch.stack([part.amax(dim=0) for part in by_text]) + self.bias)

    def encoder(self) -> ConvolutionEncoder:
        """What was learned, for use without torch."""
        filters = self.taps.detach().view(-1, self.window, self.width).permute(1, 0, 2).numpy().copy()
        return ConvolutionEncoder(self.words, filters, self.bias.detach().numpy().copy())


def _hidden_in_window(hidden: Bools, window: int) -> Bools:
    """Which words of each window are hidden: (tokens, window); hidden (tokens,)."""
    padded = np.pad(hidden, window // 2)
    return np.stack([padded[tap : tap + len(hidden)] for tap in range(window)], axis=1)


def drop_units(features: Tensor, share: float, rng: np.random.Generator) -> Tensor:
    """Dropout: a share of the features set to zero, the others raised so that the expected sum stays."""
    if not share:
        return features
    remaining = rng.random(features.shape, dtype=np.float32) >= share
    return features * torch.from_numpy(remaining.astype(np.float32) / (1 - share))


class Classification:
    """A softmax over one label set; every text has the same probability, so that small tasks are not overfitted."""

    def __init__(self, network: ConvolutionNetwork, tasks: Sequence[Examples], held_out: Sequence[Examples], *,
                 convolution: Convolution, training: Training) -> None:  # fmt: skip
        self.network, self.convolution, self.batch = network, convolution, training.batch
        self.held_out = [
            (task, network.words.tokens(part.texts), part.numbers) for task, part in enumerate(held_out) if len(part)
        ]
        examples = Examples.join(tasks)
        self.tokens, self.labels = network.words.tokens(examples.texts), examples.numbers
        self.task_of = np.repeat(np.arange(len(tasks)), [len(task) for task in tasks])  # (texts,)
        self.head = torch.zeros(network.width, len(examples.classes), requires_grad=True)  # (width, classes)
        self.offset = torch.zeros(len(examples.classes), requires_grad=True)

    def parameters(self) -> list[Tensor]:
        """The network, and the softmax on top of it."""
        return [*self.network.parameters, self.head, self.offset]

    def loss(self, rng: np.random.Generator) -> Tensor:
        """The mean negative log-likelihood of a batch."""
        rows = self.draw(rng)
        features = self.network.forward(self.tokens.take(rows), word_dropout=self.convolution.word_dropout, rng=rng)
        features = drop_units(features, self.convolution.dropout, rng)
        logits = self.logits(features, self.task_of[rows])  # (batch, classes)
        return functional.cross_entropy(logits, torch.from_numpy(self.labels[rows]))

    def draw(self, rng: np.random.Generator) -> Ints:
        """The rows of a batch: (batch,)."""
        return rng.integers(len(self.labels), size=self.batch)

    def logits(self, features: Tensor, task: Ints | int) -> Tensor:
        """The logit of each label of a text, whatever task it comes from: (texts, classes)."""
        return features @ self.head + self.offset

    def score(self) -> float | None:
        """The mean log-likelihood of each held-out part, averaged over parts."""
        if not self.held_out:
            return None
        with torch.no_grad():
            losses = [
                functional.cross_entropy(
                    self.logits(self.network.forward(tokens), task), torch.from_numpy(labels)
                ).item()
                for task, tokens, labels in self.held_out
            ]
        return -float(np.mean(losses))


class Episodes:
    """Episodes drawn from the tasks of a cluster, each task with the same probability."""

    def __init__(self, network: ConvolutionNetwork, tasks: Sequence[Examples], validation: Sequence[Episode], *,
                 rule: str, convolution: Convolution, training: Training) -> None:  # fmt: skip
        self.network, self.rule = network, rule
        self.convolution, self.training = convolution, training
        self.tasks = [network.words.tokens(task.texts) for task in tasks]
        self._groups = [groups_by_label(task.numbers) for task in tasks]
        self._validation = [
            (network.words.tokens(episode.support.texts + episode.query.texts), episode) for episode in validation
        ]
        self.log_temperature = torch.tensor(float(np.log(START_TEMPERATURE)), requires_grad=True)

    @property
    def temperature(self) -> float:
        """What cosines are multiplied with before the softmax."""
        return float(self.log_temperature.exp().item())

    def parameters(self) -> list[Tensor]:
        """The network and the temperature."""
        return [*self.network.parameters, self.log_temperature]

    def loss(self, rng: np.random.Generator) -> Tensor:
        """The mean negative log-likelihood of one episode's queries given its support set."""
        chosen, size = int(rng.integers(len(self.tasks))), self.training
        drawn = draw_indices(self._groups[chosen], size.ways, size.shots, size.queries, rng)
        tokens = self.tasks[chosen].take(np.concatenate([drawn.support, drawn.query]))
        features = self.network.forward(tokens, word_dropout=self.convolution.word_dropout, rng=rng)
        return self._loss(drop_units(features, self.convolution.dropout, rng), drawn.labels, drawn.answers)

    def score(self) -> float | None:
        """The mean log-likelihood of the validation episodes' queries, averaged over episodes."""
        if not self._validation:
            return None
        with torch.no_grad():
            losses = [
                self._loss(self.network.forward(tokens), episode.support.numbers, episode.query.numbers).item()
                for tokens, episode in self._validation
            ]
        return -float(np.mean(losses))

    def _loss(self, features: Tensor, support: Ints, query: Ints) -> Tensor:
        classes, members = np.unique(support, return_inverse=True)  # (ways,), (support,)
        rows = functional.normalize(features, dim=1)  # (support + query, width)
        examples, texts = rows[: len(support)], rows[len(support) :]
        answers = torch.from_numpy(np.searchsorted(classes, query))  # (query,)
        one_hot = functional.one_hot(torch.from_numpy(members), len(classes)).float()  # (support, ways)
        if self.rule == PROTOTYPICAL:
            prototypes = functional.normalize(one_hot.T @ examples, dim=1)  # (ways, width)
            logits = self.log_temperature.exp() * (texts @ prototypes.T)  # (query, ways)
            return functional.cross_entropy(logits, answers)
        attention = torch.softmax(self.log_temperature.exp() * (texts @ examples.T), dim=1)  # (query, support)
        probabilities = attention @ one_hot  # (query, ways)
        return -torch.log(probabilities.gather(1, answers[:, None]).clamp_min(1e-12)).mean()
