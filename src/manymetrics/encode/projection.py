"""A learned step away from a frozen encoder: row + row @ matrix, trained without torch.

The loss is that of prototypical networks (eqn:base_protonet): in each episode a few examples of some labels of one
task, the labels' names among them, make prototypes, and other texts of the task are to be told apart by their cosines
with these, times a learned temperature. The gradient is written out; Adam takes the steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax, softmax

from manymetrics.encode.encoder import Encoder, State, unit_rows
from manymetrics.encode.settings import ProjectionTraining
from manymetrics.errors import DataError
from manymetrics.values import Floats, Ints, Texts

START_TEMPERATURE = 10.0
PATIENCE = 4  # looks at the held-out problems without a gain before training stops


@dataclass(frozen=True, eq=False)
class ProjectionEncoder(Encoder, kind="projection"):
    """Rows of another encoder, of length one, and what a matrix adds to them."""

    base: Encoder
    matrix: Floats  # (width, width) float32

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.matrix.shape[0] != self.matrix.shape[1]:
            raise DataError(f"a projection has a matrix of shape {self.matrix.shape}, which is not square")

    def encode(self, texts: Texts) -> Floats:
        """One row for each text: (texts, width) float32."""
        rows = unit_rows(self.base.encode(texts))
        return rows + rows @ self.matrix  # type: ignore[no-any-return]

    def lengths(self, texts: Texts) -> Ints:
        """How many tokens of each text are read: (texts,)."""
        return self.base.lengths(texts)

    def state(self) -> State:
        """The matrix, and the encoder it stands on."""
        return State({"matrix": self.matrix}, {}, {"base": self.base})

    @classmethod
    def from_state(cls, state: State) -> "ProjectionEncoder":
        """The encoder that `state` described."""
        return cls(state.parts["base"], state.tensors["matrix"])


@dataclass(frozen=True, eq=False)
class TaskRows:
    """A task as training sees it."""

    rows: Floats  # (texts, width), of length one
    labels: Ints  # (texts,)
    names: Floats  # (labels, width), of length one

    @property
    def groups(self) -> list[Ints]:
        """The texts of each label that has two at least."""
        found = [np.flatnonzero(self.labels == label) for label in range(len(self.names))]
        return [group for group in found if len(group) > 1]


@dataclass(frozen=True, eq=False)
class TaskTexts:
    """A task as the tuning of an encoder sees it."""

    texts: tuple[str, ...]
    groups: list[Ints]  # the places of the texts of each label that has two at least
    names: tuple[str, ...]  # of these labels


@dataclass(frozen=True, eq=False)
class Problem:
    """An episode in rows."""

    support: Floats  # (shots, width)
    labels: Ints  # (shots,)
    names: Floats  # (classes, width)
    query: Floats  # (texts, width)
    answers: Ints  # (texts,)


@dataclass(frozen=True, eq=False)
class FittedProjection:
    """What came of a training."""

    matrix: Floats
    temperature: float
    steps: int


class _Adam:
    def __init__(self, shape: tuple[int, ...], rate: float) -> None:
        self._mean, self._square = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self._rate, self._steps = rate, 0

    def step(self, slope: Floats) -> Floats:
        self._steps += 1
        self._mean += 0.1 * (slope - self._mean)
        self._square += 0.001 * (slope * slope - self._square)
        mean = self._mean / (1 - 0.9**self._steps)
        square = self._square / (1 - 0.999**self._steps)
        return self._rate * mean / (np.sqrt(square) + 1e-8)  # type: ignore[no-any-return]


def fit_projection(tasks: Sequence[TaskRows], held_out: Sequence[Problem], training: ProjectionTraining, *,
                   rng: np.random.Generator, start: FittedProjection | None = None) -> FittedProjection:  # fmt: skip
    """Train on episodes of the tasks; what does best on the held-out problems is kept, the start among it."""
    usable = [(task, task.groups) for task in tasks]
    usable = [(task, groups) for task, groups in usable if len(groups) > 1]
    matrix = np.zeros((tasks[0].rows.shape[1],) * 2, np.float32) if start is None else start.matrix.copy()
    logs = np.array([np.log(START_TEMPERATURE if start is None else start.temperature)], np.float32)
    best = FittedProjection(matrix.copy(), float(np.exp(logs[0])), 0)
    if not usable:
        return best
    least, waited = mean_loss(best, held_out), 0
    adam, adam_of_log = _Adam(matrix.shape, training.learning_rate), _Adam((1,), 10 * training.learning_rate)
    for step in range(1, training.steps + 1):
        task, groups = usable[int(rng.integers(len(usable)))]
        slope, slope_of_log = _slopes(matrix, float(logs[0]), _draw(task, groups, training, rng), training.dropout, rng)
        matrix -= adam.step(slope)
        logs -= adam_of_log.step(slope_of_log)
        if step % training.check_every == 0 or step == training.steps:
            now = FittedProjection(matrix.copy(), float(np.exp(logs[0])), step)
            loss = mean_loss(now, held_out)
            best, least, waited = (now, loss, 0) if not held_out or loss < least else (best, least, waited + 1)
            if waited >= PATIENCE:
                break
    return best


def mean_loss(projection: FittedProjection, problems: Sequence[Problem]) -> float:
    """The mean negative log-likelihood of the right answers, every problem weighing alike."""
    if not problems:
        return float("inf")
    return -float(np.mean([log_likelihood(projection, one) for one in problems]))


def log_likelihood(projection: FittedProjection, problem: Problem) -> float:
    """The mean log-likelihood of the right answers to a problem, from prototypes under a projection."""
    logits = projection.temperature * _cosines(projection.matrix, problem)
    return float(log_softmax(logits, axis=1)[np.arange(len(problem.answers)), problem.answers].mean())


def _cosines(matrix: Floats, problem: Problem) -> Floats:
    support, names, query = (
        unit_rows(rows + rows @ matrix) for rows in (problem.support, problem.names, problem.query)
    )
    sums = names.copy()
    np.add.at(sums, problem.labels, support)
    return query @ unit_rows(sums).T  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Places:
    """An episode by the places of its texts."""

    chosen: Ints  # (classes,): which groups take part
    shots: Ints  # (shots,)
    labels: Ints  # (shots,): places in `chosen`
    texts: Ints  # (texts,)
    answers: Ints  # (texts,): places in `chosen`


def draw_places(groups: Sequence[Ints], ways: int, shots: int, queries: int, rng: np.random.Generator) -> Places:
    """Draw an episode from groups of texts that share a label; each group keeps a text to be answered."""
    chosen = rng.permutation(len(groups))[:ways]
    share = max(1, queries // len(chosen))
    given, asked = [], []
    for place in chosen:
        rows = rng.permutation(groups[place])
        count = min(shots, len(rows) - 1)
        given.append(rows[:count])
        asked.append(rows[count : count + share])
    every = np.arange(len(chosen))
    labels, answers = (np.repeat(every, [len(rows) for rows in parts]) for parts in (given, asked))
    return Places(chosen, np.concatenate(given), labels, np.concatenate(asked), answers)


def _draw(task: TaskRows, groups: list[Ints], training: ProjectionTraining, rng: np.random.Generator) -> Problem:
    drawn = draw_places(groups, training.ways, training.shots, training.queries, rng)
    names = task.names[[int(task.labels[groups[place][0]]) for place in drawn.chosen]]
    return Problem(task.rows[drawn.shots], drawn.labels, names, task.rows[drawn.texts], drawn.answers)


def _slopes(matrix: Floats, log_temperature: float, problem: Problem, dropout: float,
            rng: np.random.Generator) -> tuple[Floats, Floats]:  # fmt: skip
    """The gradient of an episode's loss by the matrix and by the logarithm of the temperature."""
    shots, texts = len(problem.support), len(problem.query)
    given = np.concatenate([problem.support, problem.query, problem.names])  # (rows, width)
    given = given * (rng.random(given.shape, dtype=np.float32) >= dropout) / np.float32(1 - dropout)
    moved = given + given @ matrix
    lengths = np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-9)
    rows = moved / lengths
    query = rows[shots : shots + texts]
    sums = rows[shots + texts :].copy()
    np.add.at(sums, problem.labels, rows[:shots])
    sizes = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
    prototypes = sums / sizes
    temperature, cosines = np.float32(np.exp(log_temperature)), query @ prototypes.T  # (texts, classes)
    wrong = softmax(temperature * cosines, axis=1)
    wrong[np.arange(texts), problem.answers] -= 1
    wrong /= texts
    to_prototypes = temperature * (wrong.T @ query)
    to_sums = (to_prototypes - prototypes * (prototypes * to_prototypes).sum(axis=1, keepdims=True)) / sizes
    to_rows = np.concatenate([to_sums[problem.labels], temperature * (wrong @ prototypes), to_sums])
    to_moved = (to_rows - rows * (rows * to_rows).sum(axis=1, keepdims=True)) / lengths
    return given.T @ to_moved, np.array([temperature * (wrong * cosines).sum()], np.float32)
