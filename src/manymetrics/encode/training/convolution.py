"""The paper's convolution network over fixed word vectors, its two losses, and their training. Needs torch.

    Classification   a softmax over one label set: single tasks, and clusters whose tasks share their labels
    Episodes         matching (eqn:mnet_obj) or prototypical (eqn:base_protonet) on episodes of several tasks

Similarities are cosines times a learned temperature: the paper's inner products with `f` scaled to length one, so that
long texts do not dominate. Training stops when the log-likelihood of what is held out no longer rises.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from manymetrics.encode.convolution import ConvolutionEncoder, window_rows
from manymetrics.encode.representation import START_TEMPERATURE, Fitted
from manymetrics.encode.settings import PROTOTYPICAL, Convolution, Training
from manymetrics.encode.tokens import Tokens
from manymetrics.encode.training import one_thread
from manymetrics.encode.vectors import WordVectors
from manymetrics.episodes import draw_indices, groups_by_label
from manymetrics.errors import ManyMetricsError
from manymetrics.values import Episode, Examples, Floats, Ints


class ConvolutionNetwork:
    """Filters over windows of fixed word vectors, being trained."""

    def __init__(self, words: WordVectors, convolution: Convolution, rng: np.random.Generator) -> None:
        window, width, dimensions = convolution.window, convolution.width, words.dimensions
        size = float(np.sqrt(np.mean(np.square(words.table, dtype=np.float64))))  # root mean square of the table
        spread = 1 / (size * np.sqrt(window * dimensions))  # responses start with variance one
        start = rng.normal(0, spread, (dimensions, window * width)).astype(np.float32)
        self.words, self.window, self.width, self.dropout = words, window, width, convolution.dropout
        self.taps = torch.from_numpy(start).requires_grad_()  # (dimensions, window * width)
        self.bias = torch.zeros(width, requires_grad=True)  # (width,)

    def forward(self, tokens: Tokens, *, dropout_rng: np.random.Generator | None = None) -> Tensor:
        """The ramp of each filter's largest response: (texts, width); with `dropout_rng` some features are 0."""
        vectors = torch.from_numpy(self.words.table[tokens.distinct[0]])  # (distinct, dimensions)
        rows = torch.from_numpy(window_rows(tokens, self.window))  # (tokens, window)
        products = torch.cat([(vectors @ self.taps).view(-1, self.width), torch.zeros(1, self.width)])
        responses = functional.embedding_bag(rows, products, mode="sum", padding_idx=len(products) - 1)
        by_text = torch.split(responses, np.diff(tokens.starts).tolist())
        features = torch.relu(torch.stack([part.amax(dim=0) for part in by_text]) + self.bias)
        return features if dropout_rng is None else drop_units(features, self.dropout, dropout_rng)

    def tensors(self) -> dict[str, Floats]:
        """What was learned: the filters (window, dimensions, width) and their bias (width,)."""
        filters = self.taps.detach().view(-1, self.window, self.width).permute(1, 0, 2).numpy().copy()
        return {"filters": filters, "bias": self.bias.detach().numpy().copy()}

    def encoder(self) -> ConvolutionEncoder:
        """The same for use without torch."""
        return ConvolutionEncoder(self.words, **self.tensors())


def drop_units(features: Tensor, share: float, rng: np.random.Generator) -> Tensor:
    """Dropout: a share of the features set to zero, the others raised so that the expected sum stays."""
    if not share:
        return features
    remaining = rng.random(features.shape, dtype=np.float32) >= share
    return features * torch.from_numpy(remaining.astype(np.float32) / (1 - share))


class Objective(ABC):
    """What a network is trained for: `loss` is of a batch that is drawn, `held_out_losses` are of what is held out."""

    @abstractmethod
    def held_out_losses(self) -> list[Tensor]:
        """The mean negative log-likelihood of each part that is held out."""

    def score(self) -> float | None:
        """The mean log-likelihood of what is held out, every part weighing the same; None where nothing is."""
        with torch.no_grad():
            losses = [loss.item() for loss in self.held_out_losses()]
        return -float(np.mean(losses)) if losses else None


class Classification(Objective):
    """A softmax over one label set; every text has the same probability, so that small tasks are not overfitted."""

    def __init__(self, network: ConvolutionNetwork, tasks: Sequence[Examples], held_out: Sequence[Examples], *,
                 batch: int) -> None:  # fmt: skip
        self.network, self.batch = network, batch
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
        return [self.network.taps, self.network.bias, self.head, self.offset]

    def loss(self, rng: np.random.Generator) -> Tensor:
        """Of some texts."""
        rows = self.draw(rng)
        features = self.network.forward(self.tokens.take(rows), dropout_rng=rng)
        return functional.cross_entropy(self.logits(features, self.task_of[rows]), torch.from_numpy(self.labels[rows]))

    def draw(self, rng: np.random.Generator) -> Ints:
        """The rows of a batch: (batch,)."""
        return rng.integers(len(self.labels), size=self.batch)

    def logits(self, features: Tensor, task: Ints | int) -> Tensor:
        """The logit of each label of a text, whatever task it comes from: (texts, classes)."""
        return features @ self.head + self.offset

    def held_out_losses(self) -> list[Tensor]:
        """Of each task's held-out texts."""
        return [
            functional.cross_entropy(self.logits(self.network.forward(tokens), task), torch.from_numpy(labels))
            for task, tokens, labels in self.held_out
        ]


class Episodes(Objective):
    """Episodes drawn from the tasks of a cluster, each task with the same probability."""

    def __init__(self, network: ConvolutionNetwork, tasks: Sequence[Examples], validation: Sequence[Episode], *,
                 rule: str, training: Training) -> None:  # fmt: skip
        self.network, self.rule, self.training = network, rule, training
        self.tasks = [(network.words.tokens(task.texts), groups_by_label(task.numbers)) for task in tasks]
        self.validation = [
            (network.words.tokens(episode.support.texts + episode.query.texts), episode) for episode in validation
        ]
        self.log_temperature = torch.tensor(float(np.log(START_TEMPERATURE)), requires_grad=True)

    def parameters(self) -> list[Tensor]:
        """The network and the temperature."""
        return [self.network.taps, self.network.bias, self.log_temperature]

    def loss(self, rng: np.random.Generator) -> Tensor:
        """Of the queries of one episode given its support set."""
        texts, groups = self.tasks[int(rng.integers(len(self.tasks)))]
        drawn = draw_indices(groups, self.training.ways, self.training.shots, self.training.queries, rng)
        tokens = texts.take(np.concatenate([drawn.support, drawn.query]))
        return self._loss(self.network.forward(tokens, dropout_rng=rng), drawn.labels, drawn.answers)

    def held_out_losses(self) -> list[Tensor]:
        """Of the queries of each validation episode."""
        return [
            self._loss(self.network.forward(tokens), episode.support.numbers, episode.query.numbers)
            for tokens, episode in self.validation
        ]

    def _loss(self, features: Tensor, support: Ints, query: Ints) -> Tensor:
        classes, members = np.unique(support, return_inverse=True)  # (ways,), (support,)
        rows = functional.normalize(features, dim=1)  # (support + query, width)
        examples, texts = rows[: len(support)], rows[len(support) :]
        answers = torch.from_numpy(np.searchsorted(classes, query))  # (query,)
        one_hot = functional.one_hot(torch.from_numpy(members), len(classes)).float()  # (support, ways)
        if self.rule == PROTOTYPICAL:
            prototypes = functional.normalize(one_hot.T @ examples, dim=1)  # (ways, width)
            return functional.cross_entropy(self.log_temperature.exp() * (texts @ prototypes.T), answers)
        attention = torch.softmax(self.log_temperature.exp() * (texts @ examples.T), dim=1)  # (query, support)
        probabilities = attention @ one_hot  # (query, ways)
        return -torch.log(probabilities.gather(1, answers[:, None]).clamp_min(1e-12)).mean()


@dataclass(frozen=True)
class Trained:
    """How a training ended."""

    n_taken: int
    n_steps: int  # after which the weights were best
    score: float  # of those weights, on what was held out; minus infinity where nothing was


def train(objective: "Classification | Episodes", training: Training, rng: np.random.Generator) -> Trained:
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
        if not np.isfinite(loss.item()) or not np.isfinite(score or 0.0):
            raise ManyMetricsError(
                f"Training left the finite numbers at step {step} (loss {loss.item():g}, score {score}). "
                "Lower the learning rate, or check the word vectors."
            )
        n_without_gain += 1
        if score is None or score > best:
            best, best_step, n_without_gain = -math.inf if score is None else score, step, 0
            best_tensors = [tensor.detach().clone() for tensor in tensors]
    with torch.no_grad():
        for tensor, value in zip(tensors, best_tensors, strict=True):
            tensor.copy_(value)
    return Trained(step, best_step, best)


@one_thread()
def fit_classifier(words: WordVectors, tasks: Sequence[Examples], held_out: Sequence[Examples], *,
                   convolution: Convolution, training: Training, rng: np.random.Generator) -> Fitted:  # fmt: skip
    """Train a classifier over one label set, on one task or on several that share it."""
    objective = Classification(ConvolutionNetwork(words, convolution, rng), tasks, held_out, batch=training.batch)
    trained = train(objective, training, rng)
    head = {"head": objective.head.detach().numpy().copy(), "offset": objective.offset.detach().numpy().copy()}
    return Fitted(
        objective.network.tensors() | head,
        n_steps=trained.n_steps,
        validation_loss=-trained.score,
        classes=tasks[0].classes,
    )


@one_thread()
def fit_episodes(words: WordVectors, tasks: Sequence[Examples], validation: Sequence[Episode], *, rule: str,
                 convolution: Convolution, training: Training, rng: np.random.Generator) -> Fitted:  # fmt: skip
    """Train a metric on episodes drawn from several tasks, whatever their labels."""
    objective = Episodes(ConvolutionNetwork(words, convolution, rng), tasks, validation, rule=rule, training=training)
    trained, temperature = train(objective, training, rng), float(objective.log_temperature.exp().item())
    return Fitted(objective.network.tensors(), temperature, trained.n_steps, -trained.score)
