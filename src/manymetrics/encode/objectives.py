"""What a network can be trained for: telling labels apart, or matching texts with the examples of an episode.

    Classification   a softmax over one label set (single-task models; the shared-label metric of a cluster)
    ManyHeads        a softmax for each task over its own labels, on one network (the holistic baseline)
    Episodes         eqn:mnet_obj (matching) and eqn:base_protonet (prototypical) over the tasks of a cluster

Similarities are cosines times a learned temperature: the paper's inner products with `f` scaled to length one, so that
long texts do not shout. The held-out score is the mean log-likelihood over tasks, because probabilities, not only
answers, go into the mix.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from manymetrics.collect.episodes import EpisodeDrawer
from manymetrics.encode.encoders import ConvolutionEncoder
from manymetrics.encode.network import ConvolutionNetwork, Network, drop_units
from manymetrics.encode.reading import Labelled
from manymetrics.encode.settings import PROTOTYPICAL, Convolution, Training
from manymetrics.encode.tokens import join
from manymetrics.values import Floats, Ints


class Classification:
    """A softmax over one label set; every text has the same chance, so small tasks are not learned by heart."""

    def __init__(self, network: ConvolutionNetwork, tasks: Sequence[Labelled], held_out: Sequence[Labelled], *,
                 classes: int, convolution: Convolution, training: Training) -> None:  # fmt: skip
        self.network, self.convolution, self.batch = network, convolution, training.batch
        self.held_out = [(place, part) for place, part in enumerate(held_out) if len(part)]
        self.everything = Labelled(
            join([task.tokens for task in tasks]), np.concatenate([task.labels for task in tasks])
        )
        self._owner = np.repeat(np.arange(len(tasks)), [len(task) for task in tasks])  # (texts,): whose text it is
        self.head = torch.zeros(network.width, classes, requires_grad=True)  # (width, classes)
        self.offset = torch.zeros(classes, requires_grad=True)
        self._frozen = False

    def begin_at(self, encoder: ConvolutionEncoder, head: Floats | None, offset: Floats | None) -> None:
        """Take over an encoder that is not to change any more, and a softmax to start from, where there is one."""
        self._frozen = True
        with torch.no_grad():
            taps = encoder.filters.transpose(1, 0, 2).reshape(encoder.filters.shape[1], -1)  # (dimensions, taps)
            self.network.taps.copy_(torch.from_numpy(np.ascontiguousarray(taps)))
            self.network.bias.copy_(torch.from_numpy(encoder.bias))
            if head is not None and offset is not None:
                self.head.copy_(torch.from_numpy(head))
                self.offset.copy_(torch.from_numpy(offset))

    def parameters(self) -> list[Tensor]:
        """The network, unless it was taken over, and the softmax on top of it."""
        return [*([] if self._frozen else self.network.parameters), self.head, self.offset]

    def kept_too(self) -> list[Tensor]:
        """The word vectors, where they are learned."""
        return self.network.learned_table

    def after_step(self, learning_rate: float) -> None:
        """Move the words of the step, where they are learned."""
        self.network.move_words(learning_rate)

    def loss(self, rng: np.random.Generator) -> Tensor:
        """The mean negative log-likelihood of a batch."""
        rows = self._draw(rng)
        batch = self.everything.take(rows)
        features = self.network.forward(batch.tokens, lost_words=self.convolution.lost_words, rng=rng)
        features = drop_units(features, self.convolution.dropout, rng)
        logits = self.logits(features, self._owner[rows])  # (batch, classes)
        return torch.nn.functional.cross_entropy(logits, torch.from_numpy(batch.labels))

    def _draw(self, rng: np.random.Generator) -> Ints:
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
                    self.logits(self.network.forward(part.tokens), task), torch.from_numpy(part.labels)
                ).item()
                for task, part in self.held_out
            ]
        return -float(np.mean(losses))


class ManyHeads(Classification):
    """A softmax for each task over its own labels; the heads stand side by side, and a text sees its task's alone.

    Every task has the same chance, so that each head learns.
    """

    def __init__(self, network: ConvolutionNetwork, tasks: Sequence[Labelled], held_out: Sequence[Labelled], *,
                 classes: Sequence[int], convolution: Convolution, training: Training) -> None:  # fmt: skip
        self._bounds = np.cumsum([0, *classes])
        shifted = [
            [Labelled(part.tokens, part.labels + first) for part, first in zip(parts, self._bounds[:-1], strict=True)]
            for parts in (tasks, held_out)
        ]
        every = int(self._bounds[-1])
        super().__init__(network, *shifted, classes=every, convolution=convolution, training=training)
        columns = np.arange(every)
        own = (columns >= self._bounds[:-1, None]) & (columns < self._bounds[1:, None])  # (tasks, all labels)
        self._others = torch.from_numpy(np.where(own, 0, -np.inf).astype(np.float32))

    def _draw(self, rng: np.random.Generator) -> Ints:
        """The rows of a batch, each of a task drawn uniformly: (batch,)."""
        sizes = np.bincount(self._owner)  # (tasks,)
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


class Episodes:
    """Few-shot problems drawn from the tasks of a cluster, each task with the same chance."""

    def __init__(self, network: Network, tasks: Sequence[Labelled], trials: Sequence[tuple[Labelled, Labelled]], *,
                 kind: str, training: Training, dropout: float = 0.0, lost_words: float = 0.0) -> None:  # fmt: skip
        self.network, self.tasks, self.trials, self.kind = network, tasks, trials, kind
        self.training, self.dropout, self.lost_words = training, dropout, lost_words
        self._drawers = [EpisodeDrawer(task.labels) for task in tasks]
        self.log_temperature = torch.tensor(float(np.log(10.0)), requires_grad=True)

    @property
    def temperature(self) -> float:
        """What cosines are multiplied with before the softmax."""
        return float(self.log_temperature.exp().item())

    def parameters(self) -> list[Tensor]:
        """The network and the temperature."""
        return [*self.network.parameters, self.log_temperature]

    def kept_too(self) -> list[Tensor]:
        """The word vectors, where they are learned."""
        return self.network.learned_table

    def after_step(self, learning_rate: float) -> None:
        """Move the words of the step, where they are learned."""
        self.network.move_words(learning_rate)

    def loss(self, rng: np.random.Generator) -> Tensor:
        """The mean negative log-likelihood of one episode's texts given its examples."""
        chosen = int(rng.integers(len(self.tasks)))
        size, task = self.training, self.tasks[chosen]
        episode = self._drawers[chosen].draw(ways=size.ways, shots=size.shots, queries=size.queries, rng=rng)
        both = np.concatenate([episode.support_rows, episode.query_rows])
        features = self.network.forward(task.tokens.take(both), lost_words=self.lost_words, rng=rng)
        features = drop_units(features, self.dropout, rng)
        return self._loss(features, task.labels[episode.support_rows], task.labels[episode.query_rows])

    def score(self) -> float | None:
        """The mean log-likelihood of the held-out trials' texts, averaged over trials."""
        if not self.trials:
            return None
        losses = []
        with torch.no_grad():
            for support, query in self.trials:
                features = self.network.forward(join([support.tokens, query.tokens]))
                losses.append(self._loss(features, support.labels, query.labels).item())
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
        chances = attention @ belongs  # (query, ways)
        return -torch.log(chances.gather(1, answers[:, None]).clamp_min(1e-12)).mean()
