"""What a network can be trained for: telling labels apart, or matching texts with the examples of an episode.

    Classification   a softmax over one label set (single-task models; the shared-label metric of a cluster)
    Episodes         eqn:mnet_obj (matching) and eqn:base_protonet (prototypical) over the tasks of a cluster

Similarities are cosines times a learned temperature: the paper's inner products with `f` scaled to length one, so that
long texts do not shout. The held-out score is the mean log-likelihood over tasks, because probabilities, not only
answers, go into the mix.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from manymetrics.collect.episodes import EpisodeSampler
from manymetrics.encode.network import ConvolutionNetwork, Network, drop_units
from manymetrics.encode.settings import PROTOTYPICAL, Convolution, Training
from manymetrics.values import Episode, Ints, LabelledTexts, Texts


class Classification:
    """A softmax over one label set; every text has the same chance, so small tasks are not learned by heart."""

    def __init__(self, network: ConvolutionNetwork, tasks: Sequence[LabelledTexts],
                 held_out: Sequence[LabelledTexts], *, classes: int, convolution: Convolution,
                 training: Training) -> None:  # fmt: skip
        self.network, self.convolution, self.batch = network, convolution, training.batch
        self.held_out = [(place, part) for place, part in enumerate(held_out) if len(part)]
        self.everything = LabelledTexts.join(tasks)
        self.owner = np.repeat(np.arange(len(tasks)), [len(task) for task in tasks])  # (texts,): whose text it is
        self.head = torch.zeros(network.width, classes, requires_grad=True)  # (width, classes)
        self.offset = torch.zeros(classes, requires_grad=True)

    def parameters(self) -> list[Tensor]:
        """The network, and the softmax on top of it."""
        return [*self.network.parameters, self.head, self.offset]

    def sparse_parameters(self) -> list[Tensor]:
        """The word vectors, where they are learned."""
        return self.network.sparse_parameters

    def loss(self, rng: np.random.Generator) -> Tensor:
        """The mean negative log-likelihood of a batch."""
        rows = self.draw(rng)
        batch = self.everything.take(rows)
        features = self.network.forward(batch.texts, word_dropout=self.convolution.word_dropout, rng=rng)
        features = drop_units(features, self.convolution.dropout, rng)
        logits = self.logits(features, self.owner[rows])  # (batch, classes)
        return torch.nn.functional.cross_entropy(logits, torch.from_numpy(batch.labels))

    def draw(self, rng: np.random.Generator) -> Ints:
        """The rows of a batch: (batch,)."""
        return rng.integers(len(self.everything), size=self.batch)

    def logits(self, features: Tensor, task: Ints | int) -> Tensor:
        """How much speaks for each label of a text, whatever task it comes from: (texts, classes)."""
        return features @ self.head + self.offset

    def score(self) -> float | None:
        """The mean log-likelihood of each held-out part, averaged over parts."""
        if not self.held_out:
            return None
        with torch.no_grad():
            losses = [
                torch.nn.functional.cross_entropy(
                    self.logits(self.network.forward(part.texts), task), torch.from_numpy(part.labels)
                ).item()
                for task, part in self.held_out
            ]
        return -float(np.mean(losses))


class Episodes:
    """Few-shot problems drawn from the tasks of a cluster, each task with the same chance."""

    def __init__(self, network: Network, tasks: Sequence[LabelledTexts], held_out: Sequence[Episode], *, kind: str,
                 training: Training, dropout: float = 0.0, word_dropout: float = 0.0) -> None:  # fmt: skip
        self.network, self.tasks, self.kind = network, tasks, kind
        self.training, self.dropout, self.word_dropout = training, dropout, word_dropout
        self._held_out = [(episode, Texts.join([episode.support.texts, episode.query.texts])) for episode in held_out]
        self._samplers = [EpisodeSampler(task.labels) for task in tasks]
        self.log_temperature = torch.tensor(float(np.log(10.0)), requires_grad=True)

    @property
    def temperature(self) -> float:
        """What cosines are multiplied with before the softmax."""
        return float(self.log_temperature.exp().item())

    def parameters(self) -> list[Tensor]:
        """The network and the temperature."""
        return [*self.network.parameters, self.log_temperature]

    def sparse_parameters(self) -> list[Tensor]:
        """The word vectors, where they are learned."""
        return self.network.sparse_parameters

    def loss(self, rng: np.random.Generator) -> Tensor:
        """The mean negative log-likelihood of one episode's texts given its examples."""
        chosen = int(rng.integers(len(self.tasks)))
        size, task = self.training, self.tasks[chosen]
        support, query = self._samplers[chosen].sample(ways=size.ways, shots=size.shots, queries=size.queries, rng=rng)
        texts = task.texts.take(np.concatenate([support, query]))
        features = drop_units(self.network.forward(texts, word_dropout=self.word_dropout, rng=rng), self.dropout, rng)
        return self._loss(features, task.labels[support], task.labels[query])

    def score(self) -> float | None:
        """The mean log-likelihood of the held-out episodes' queries, averaged over episodes."""
        if not self._held_out:
            return None
        with torch.no_grad():
            losses = [
                self._loss(self.network.forward(texts), episode.support.labels, episode.query.labels).item()
                for episode, texts in self._held_out
            ]
        return -float(np.mean(losses))

    def _loss(self, features: Tensor, support: Ints, query: Ints) -> Tensor:
        classes, members = np.unique(support, return_inverse=True)  # (ways,), (support,)
        rows = torch.nn.functional.normalize(features, dim=1)  # (support + query, width)
        examples, texts = rows[: len(support)], rows[len(support) :]
        answers = torch.from_numpy(np.searchsorted(classes, query))  # (query,)
        belongs = torch.nn.functional.one_hot(torch.from_numpy(members), len(classes)).float()  # (support, ways)
        if self.kind == PROTOTYPICAL:
            centres = torch.nn.functional.normalize(belongs.T @ examples, dim=1)  # (ways, width)
            logits = self.log_temperature.exp() * (texts @ centres.T)  # (query, ways)
            return torch.nn.functional.cross_entropy(logits, answers)
        attention = torch.softmax(self.log_temperature.exp() * (texts @ examples.T), dim=1)  # (query, support)
        probabilities = attention @ belongs  # (query, ways)
        return -torch.log(probabilities.gather(1, answers[:, None]).clamp_min(1e-12)).mean()
