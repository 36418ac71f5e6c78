"""Low-rank factors over a sentence encoder: a representation whose trained state is an encoder. Training needs torch.

Single tasks, which *S* is measured with, and the metric that all tasks share are projections over the base; the metric
of a cluster is the base with factors that are trained from zero on episodes of the cluster's tasks. A cluster has no
metric of its own where its held-out tasks are answered worse with it. In a task's metric the encoder of a cluster has
seven tenths of the weight of its cluster; the shared projection has the rest.

Where all tasks share their labels, what they share is not a projection but an encoder with a classifier over the
labels, trained on the texts of all tasks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_softmax

from manymetrics.encode.encoder import Encoder
from manymetrics.encode.projection import EpisodeArrays, ProjectionRepresentation, log_likelihood
from manymetrics.encode.representation import Fitted, Phases, Representation, label_shares
from manymetrics.encode.runtime.bert import LowRankFactors
from manymetrics.encode.sentence import SentenceEncoder
from manymetrics.encode.settings import LowRankTraining
from manymetrics.values import Episode, Task, TaskBank

VALIDATION_SHOTS = 3
MIN_TASKS = 2  # of a cluster that has an encoder of its own
MIN_EPISODES, MAX_EPISODES, EPISODES_PER_TASK = 40, 160, 2  # of the training of a cluster
EMBEDDINGS = ("support", "names", "query")  # of an episode
BY_LABELS = LowRankTraining(steps=400, learning_rate=1e-3, max_tokens=96, queries=24)
HEAD = ("head", "offset", "prior")  # tensors of a classifier over labels
TEMPERATURES = (10.0, 15.0, 20.0, 30.0)  # of cosines: the most likely one for each encoder that is compared


@dataclass(frozen=True, eq=False)
class LowRankRepresentation(Representation, kind="low-rank"):
    """Factors of the upper layers of a transformer."""

    base: SentenceEncoder
    training: LowRankTraining
    _: KW_ONLY
    shots: int = VALIDATION_SHOTS
    share = 0.7

    def fit(self, tasks: Sequence[Task], validation: Sequence[Episode], *, start: Fitted | None,
            rng: np.random.Generator) -> Fitted:  # fmt: skip
        """Train from zero, whatever the start.

        No steps where there is one task alone, or where the validation episodes are answered better by the base than by
        the base and the trained encoder together.
        """
        if len(tasks) < MIN_TASKS:
            return Fitted({})
        from manymetrics.encode.training.low_rank import LabelledTask, train_on_tasks

        training = replace(self.training, steps=n_episodes(len(tasks)))
        labelled = [LabelledTask(task.train.texts, task.train.numbers, task.label_names) for task in tasks]
        fitted = Fitted(train_on_tasks(self.base, labelled, training, rng=rng).tensors(), n_steps=training.steps)
        if not validation:
            return fitted
        loss, temperature = validation_loss([self.base, self.encoder(fitted)], validation)
        base_loss, base_temperature = validation_loss([self.base], validation)
        if loss < base_loss:
            return replace(fitted, temperature=temperature, validation_loss=loss)
        return Fitted({}, base_temperature, 0, base_loss)

    def score(self, fitted: Fitted, episode: Episode) -> float:
        """The mean log-likelihood of the queries at the most likely temperature."""
        return -validation_loss([self.encoder(fitted)], [episode])[0]

    def encoder(self, fitted: Fitted) -> SentenceEncoder:
        """The base with the trained factors."""
        return self.base.with_factors(LowRankFactors.from_tensors(fitted.tensors)) if fitted.tensors else self.base

    @classmethod
    def phases(cls, base: Encoder, settings: Mapping[str, Any], bank: TaskBank) -> Phases:
        """Projections for single tasks and for all tasks together, factors for the clusters.

        Where all tasks share their labels, factors below a classifier for all tasks together.
        """
        projections = ProjectionRepresentation.phases(base, settings, bank)
        shared = projections.shared if bank.shared_labels is None else LabelRepresentation(base, BY_LABELS)  # type: ignore[arg-type]
        return Phases(projections.single, shared, LowRankRepresentation(base, LowRankTraining()))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class LabelRepresentation(LowRankRepresentation, kind="low-rank-labels"):
    """Factors below a linear classifier over the labels that all tasks have."""

    shared_name = "label-encoder"

    def fit(self, tasks: Sequence[Task], validation: Sequence[Episode], *, start: Fitted | None,
            rng: np.random.Generator) -> Fitted:  # fmt: skip
        """Train from zero; no steps where prototypes of the base's embeddings answer the validation episodes better."""
        from manymetrics.encode.training.low_rank import LabelledTask, train_on_labels

        labelled = [LabelledTask(task.train.texts, task.train.numbers, task.label_names) for task in tasks]
        factors, weights, offset = train_on_labels(self.base, labelled, self.training, rng=rng)
        head = {"head": weights, "offset": offset, "prior": label_shares(tasks)}
        fitted = Fitted({**factors.tensors(), **head}, n_steps=self.training.steps, classes=tasks[0].labels)
        if not validation:
            return fitted
        loss = -float(np.mean([self.score(fitted, episode) for episode in validation]))
        base_loss, base_temperature = validation_loss([self.base], validation)
        return replace(fitted, validation_loss=loss) if loss < base_loss else Fitted({}, base_temperature, 0, base_loss)

    def score(self, fitted: Fitted, episode: Episode) -> float:
        """The mean log-likelihood of the queries under the classifier."""
        logits = self.encoder(fitted).encode(episode.query.texts) @ fitted.tensors["head"] + fitted.tensors["offset"]
        rows = np.arange(len(episode.query))
        return float(log_softmax(logits, axis=1)[rows, episode.query.numbers].mean())

    def encoder(self, fitted: Fitted) -> SentenceEncoder:
        """The base with the trained factors."""
        factors = {name: tensor for name, tensor in fitted.tensors.items() if name not in HEAD}
        return super().encoder(replace(fitted, tensors=factors))


def n_episodes(n_tasks: int) -> int:
    """The length of a cluster's training."""
    return min(max(MIN_EPISODES, EPISODES_PER_TASK * n_tasks), MAX_EPISODES)


def validation_loss(encoders: Sequence[Encoder], episodes: Sequence[Episode]) -> tuple[float, float]:
    """The mean negative log-likelihood of the answers, from prototypes, and the temperature at which it is least.

    Of several encoders, the embeddings are joined: a cosine is the mean of theirs.
    """
    arrays = []
    for episode in episodes:
        parts = [EpisodeArrays.of(episode, encoder) for encoder in encoders]
        joined = {name: np.concatenate([getattr(part, name) for part in parts], axis=1) for name in EMBEDDINGS}
        arrays.append(replace(parts[0], **joined))
    matrix = np.zeros((arrays[0].support.shape[1],) * 2, np.float32)
    losses = [
        -float(np.mean([log_likelihood(matrix, temperature, episode) for episode in arrays]))
        for temperature in TEMPERATURES
    ]
    best = int(np.argmin(losses))
    return losses[best], TEMPERATURES[best]
