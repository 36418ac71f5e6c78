"""A residual projection over a frozen encoder, x + x @ matrix, trained without torch.

The loss is that of prototypical networks (eqn:base_protonet): in each episode a few examples of some labels of one
task, the labels' names among them, make prototypes, and other texts of the task are classified by their cosines with
these, times a learned temperature. The gradient is written out; Adam takes the steps.

A few small steps are enough to tell families of tasks from one another; more of them fit the task's own texts. Tasks by
themselves start from the encoder as it is: what tasks have in common would hide in what they differ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

from manymetrics.encode.encoder import Encoder, ProjectionEncoder, normalize
from manymetrics.encode.representation import START_TEMPERATURE, Fitted, Phases, Representation
from manymetrics.encode.settings import ProjectionTraining
from manymetrics.episodes import draw_indices, groups_by_label
from manymetrics.errors import DataError, NotEnoughExamples
from manymetrics.values import Episode, Floats, Ints, Task, TaskBank

PATIENCE = 4  # evaluations on the validation episodes without a gain before training stops
STOP_SHOTS = 3  # examples of each label in the validation episodes of the shared and the clusters' projections
DROPOUT = 0.1  # share of the features that are hidden in each step


@dataclass(frozen=True, eq=False)
class EpisodeArrays:
    """An episode in unit embeddings."""

    support: Floats  # (shots, width)
    labels: Ints  # (shots,)
    names: Floats  # (classes, width)
    query: Floats  # (texts, width)
    answers: Ints  # (texts,)

    @classmethod
    def of(cls, episode: Episode, encoder: Encoder) -> "EpisodeArrays":
        """An episode's texts as an encoder embeds them."""
        parts = (episode.support.texts, episode.names, episode.query.texts)
        support, names, query = (normalize(encoder.encode(texts)) for texts in parts)
        return cls(support, episode.support.numbers, names, query, episode.query.numbers)


@dataclass(frozen=True, eq=False)
class TaskArrays:
    """The train texts of a task in unit embeddings."""

    rows: Floats  # (texts, width)
    labels: Ints  # (texts,)
    names: Floats  # (labels, width)
    groups: list[Ints]  # the texts of each label that has two at least

    @classmethod
    def of(cls, task: Task, encoder: Encoder) -> "TaskArrays":
        """A task's train texts as an encoder embeds them."""
        rows, names = (normalize(encoder.encode(texts)) for texts in (task.train.texts, task.label_names))
        return cls(rows, task.train.numbers, names, groups_by_label(task.train.numbers))

    def draw(self, training: ProjectionTraining, rng: np.random.Generator) -> EpisodeArrays:
        """A training episode."""
        drawn = draw_indices(self.groups, training.ways, training.shots, training.queries, rng)
        names = self.names[[int(self.labels[self.groups[group][0]]) for group in drawn.classes]]
        return EpisodeArrays(self.rows[drawn.support], drawn.labels, names, self.rows[drawn.query], drawn.answers)


@dataclass(frozen=True, eq=False)
class ProjectionRepresentation(Representation, kind="projection"):
    """A residual projection; *s_ij* is the mean log-likelihood of task j's queries under the projection of task i."""

    training: ProjectionTraining

    def fit(self, tasks: Sequence[Task], validation: Sequence[Episode], *, start: Fitted | None,
            rng: np.random.Generator) -> Fitted:  # fmt: skip
        """Train on episodes of the tasks; the state that does best on the validation episodes, the start among them.

        Without validation episodes all steps are taken. A loss that is not finite ends training with an error.
        """
        arrays = [TaskArrays.of(task, self.base) for task in tasks]
        episodes = [EpisodeArrays.of(episode, self.base) for episode in validation]
        return fit_projection(arrays, episodes, self.training, start=start, rng=rng)

    def score(self, fitted: Fitted, episode: Episode) -> float:
        """The mean log-likelihood of the queries, at one temperature for all tasks, so that scores can be compared."""
        return log_likelihood(fitted.tensors["matrix"], START_TEMPERATURE, EpisodeArrays.of(episode, self.base))

    def encoder(self, fitted: Fitted) -> ProjectionEncoder:
        """The base with the trained matrix."""
        return ProjectionEncoder(self.base, fitted.tensors["matrix"])

    @classmethod
    def phases(cls, base: Encoder, settings: Mapping[str, Any], bank: TaskBank) -> Phases:
        """A few steps for single tasks, many for the shared projection, a quarter of these for a cluster's."""
        n_single, n_shared, rate = settings["own_steps"], settings["projection_steps"], settings["projection_rate"]
        single = ProjectionTraining(n_single, n_single, settings["own_rate"], DROPOUT)
        shared = ProjectionTraining(n_shared, max(100, n_shared // 30), rate, DROPOUT)  # 30 evaluations at most
        cluster = ProjectionTraining(max(1, n_shared // 4), 50, rate, DROPOUT)
        return Phases(cls(base, single), cls(base, shared, shots=STOP_SHOTS), cls(base, cluster, shots=STOP_SHOTS))


class _Adam:
    """Adam with its usual decay rates, 0.9 and 0.999."""

    def __init__(self, shape: tuple[int, ...], rate: float) -> None:
        self._mean, self._square = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self._rate, self._steps = rate, 0

    def step(self, gradient: Floats) -> Floats:
        self._steps += 1
        self._mean += 0.1 * (gradient - self._mean)
        self._square += 0.001 * (gradient * gradient - self._square)
        mean = self._mean / (1 - 0.9**self._steps)
        square = self._square / (1 - 0.999**self._steps)
        return self._rate * mean / (np.sqrt(square) + 1e-8)  # type: ignore[no-any-return]


def fit_projection(tasks: Sequence[TaskArrays], validation: Sequence[EpisodeArrays], training: ProjectionTraining, *,
                   rng: np.random.Generator, start: Fitted | None = None) -> Fitted:  # fmt: skip
    """Train a matrix and a temperature on episodes of tasks."""
    usable = [task for task in tasks if len(task.groups) > 1]
    if not usable:
        raise NotEnoughExamples(
            "A projection is trained on tasks with two labels that have two train examples each, and there is none. "
            "Add examples."
        )
    start = start or Fitted({"matrix": np.zeros((tasks[0].rows.shape[1],) * 2, np.float32)})
    matrix = start.tensors["matrix"].copy()
    log_temperature = np.array([np.log(start.temperature)], np.float32)
    best = Fitted(start.tensors, float(np.exp(log_temperature[0])))
    best = replace(best, validation_loss=mean_loss(best, validation))
    adam, adam_of_log = _Adam(matrix.shape, training.learning_rate), _Adam((1,), 10 * training.learning_rate)
    n_without_gain = 0
    for step in range(1, training.steps + 1):
        episode = usable[int(rng.integers(len(usable)))].draw(training, rng)
        gradient, gradient_of_log = gradients(matrix, float(log_temperature[0]), episode, training.dropout, rng)
        matrix -= adam.step(gradient)
        log_temperature -= adam_of_log.step(gradient_of_log)
        if step % training.check_every and step != training.steps:
            continue
        latest = Fitted({"matrix": matrix.copy()}, float(np.exp(log_temperature[0])), step)
        loss = mean_loss(latest, validation)
        n_without_gain += 1
        if not validation or loss < best.validation_loss:
            best, n_without_gain = replace(latest, validation_loss=loss), 0
        if n_without_gain >= PATIENCE:
            break
    return best


def mean_loss(fitted: Fitted, episodes: Sequence[EpisodeArrays]) -> float:
    """The mean negative log-likelihood of the answers, every episode weighing the same; infinite without any."""
    if not episodes:
        return float("inf")
    matrix = fitted.tensors["matrix"]
    loss = -float(np.mean([log_likelihood(matrix, fitted.temperature, episode) for episode in episodes]))
    if not np.isfinite(loss):
        raise DataError(
            f"The loss on the held-out tasks is {loss} after {fitted.n_steps} steps. Train with a smaller rate."
        )
    return loss


def log_likelihood(matrix: Floats, temperature: float, episode: EpisodeArrays) -> float:
    """The mean log-likelihood of the answers to an episode, from prototypes under a projection."""
    if not len(episode.query):
        raise DataError("An episode has no text to answer, so its likelihood is not known.")
    support, sums, query = (normalize(rows + rows @ matrix) for rows in (episode.support, episode.names, episode.query))
    np.add.at(sums, episode.labels, support)
    logits = temperature * (query @ normalize(sums).T)  # (texts, classes)
    return float(log_softmax(logits, axis=1)[np.arange(len(episode.answers)), episode.answers].mean())


def gradients(matrix: Floats, log_temperature: float, episode: EpisodeArrays, dropout: float,
               rng: np.random.Generator) -> tuple[Floats, Floats]:  # fmt: skip
    """The gradient of an episode's loss by the matrix and by the logarithm of the temperature."""
    shots, texts = len(episode.support), len(episode.query)
    given = np.concatenate([episode.support, episode.query, episode.names])  # (rows, width)
    given = given * (rng.random(given.shape, dtype=np.float32) >= dropout) / np.float32(1 - dropout)
    projected = given + given @ matrix
    lengths = np.maximum(np.linalg.norm(projected, axis=1, keepdims=True), 1e-9)
    rows = projected / lengths
    query = rows[shots : shots + texts]
    sums = rows[shots + texts :].copy()
    np.add.at(sums, episode.labels, rows[:shots])
    sizes = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
    prototypes = sums / sizes
    temperature, cosines = np.float32(np.exp(log_temperature)), query @ prototypes.T  # (texts, classes)
    residual = softmax(temperature * cosines, axis=1)
    residual[np.arange(texts), episode.answers] -= 1
    residual /= texts
    by_prototypes = temperature * (residual.T @ query)
    by_sums = (by_prototypes - prototypes * (prototypes * by_prototypes).sum(axis=1, keepdims=True)) / sizes
    by_rows = np.concatenate([by_sums[episode.labels], temperature * (residual @ prototypes), by_sums])
    by_projected = (by_rows - rows * (rows * by_rows).sum(axis=1, keepdims=True)) / lengths
    return given.T @ by_projected, np.array([temperature * (residual * cosines).sum()], np.float32)
