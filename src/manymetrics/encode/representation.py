"""What can be trained on tasks: the interface that measuring transfer and training metrics use, and its trained state.

    Fitted          a trained state of any representation: all that is stored of a job
    Representation  fit on tasks, score on an episode, turn a trained state into an encoder
    Phases          the representations of a learning: of single tasks, of all tasks, of clusters

A kind is registered by defining its class, a frozen dataclass: `class Mine(Representation, kind="mine")`.
`Recipe(representation="mine")` then learns with it. What else a job needs to make it again are its fields: plain
values, and dataclasses of plain values.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, is_dataclass
from typing import Any, ClassVar

import numpy as np

from manymetrics.encode.encoder import Encoder
from manymetrics.encode.settings import PROTOTYPICAL
from manymetrics.episodes import validation_episode
from manymetrics.errors import RecipeError
from manymetrics.values import Episode, Floats, Task, TaskBank

START_TEMPERATURE = 10.0  # of cosines, before training and where nothing is trained
SCORE_SHOTS, QUERIES = 10, 100  # examples of each label and texts to answer, of a task that is scored


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained state; the payload of a job is `packed.dump` of it."""

    tensors: Mapping[str, Floats]
    temperature: float = START_TEMPERATURE
    n_steps: int = 0  # 0: no number of steps improved on the start
    validation_loss: float = math.inf
    classes: tuple[str, ...] = ()  # of the classifier among the tensors, if there is one


@dataclass(frozen=True, eq=False)
class Phases:
    """The representations of a learning."""

    single: "Representation"  # of each task by itself: *S* is measured with these
    shared: "Representation | None"  # of all tasks, which those of the clusters start from; None: they start untrained
    cluster: "Representation"


@dataclass(frozen=True, eq=False)
class Representation(ABC):
    """Something that is trained on tasks, over a base encoder."""

    kind: ClassVar[str] = ""
    kinds: ClassVar[dict[str, type["Representation"]]] = {}
    score_name: ClassVar[str] = "log-likelihood"
    shared_name: ClassVar[str] = "projection"  # of the metric of all tasks
    share: ClassVar[float] = 1.0  # of its cluster's weight that a cluster's metric has; the shared one has the rest
    base: Encoder
    _: KW_ONLY
    shots: int = SCORE_SHOTS  # examples of each label in the episodes that tasks are scored or validated on

    def __init_subclass__(cls, *, kind: str = "", **others: Any) -> None:
        super().__init_subclass__(**others)
        cls.kind = kind
        if kind:
            Representation.kinds[kind] = cls

    @abstractmethod
    def fit(self, tasks: Sequence[Task], validation: Sequence[Episode], *, start: Fitted | None,
            rng: np.random.Generator) -> Fitted:  # fmt: skip
        """Train on tasks, from the start if there is one; the state that does best on the validation episodes."""

    @abstractmethod
    def score(self, fitted: Fitted, episode: Episode) -> float | None:
        """*s_ij*: how well a trained state serves a task, larger is better; None where that cannot be said."""

    @abstractmethod
    def encoder(self, fitted: Fitted) -> Encoder:
        """The encoder that a trained state gives."""

    def state_of(self, encoder: Encoder) -> Fitted | None:
        """The state that gives an encoder, to train on from it; None where that cannot be."""
        return Fitted(encoder.state().tensors) if encoder.kind == self.kind else None

    @property
    def rule(self) -> str:
        """How a metric with this encoder compares a text with examples."""
        return PROTOTYPICAL

    def episode(self, task: Task, *, seed: int) -> Episode | None:
        """The episode on which a task is scored or validated, always the same; None where the task has no query."""
        return validation_episode(task, shots=self.shots, queries=QUERIES, seed=seed)

    def spec(self) -> dict[str, Any]:
        """What a job needs to make this representation again, as JSON; all but `representation` seeds the job."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "base"}
        groups = {name: dict(vars(value)) for name, value in values.items() if is_dataclass(value)}
        plain = {name: value for name, value in values.items() if name not in groups}
        return {"encoder": self.base.fingerprint, "representation": {"kind": self.kind, **plain}, **groups}

    @classmethod
    def phases(cls, base: Encoder, settings: Mapping[str, Any], bank: TaskBank) -> Phases:
        """The representations of a learning, from the settings of its recipe by name."""
        representation = cls(base)
        return Phases(representation, representation, representation)

    @staticmethod
    def prepare_worker() -> None:
        """Load what a job with limits needs beside its task, so that it does not count against the limits."""
        return


def open_representation(spec: Mapping[str, Any], base: Encoder) -> Representation:
    """The representation of a job."""
    plain = dict(spec["representation"])
    kind = representation_kind(plain.pop("kind"))
    groups = {field.name: field.type(**spec[field.name]) for field in fields(kind) if field.name in spec}  # type: ignore[operator]
    return kind(base, **plain, **groups)


def representation_kind(kind: str) -> type[Representation]:
    """The class registered under a name."""
    if kind not in Representation.kinds:
        kinds = ", ".join(name for name, known in Representation.kinds.items() if known.__base__ is Representation)
        raise RecipeError(
            f"There is no representation {kind!r} here. Choose one of {kinds}, or import the module that defines it."
        )
    return Representation.kinds[kind]


def label_shares(tasks: Sequence[Task]) -> Floats:
    """How common each label is, every task counting the same: (labels,); none is 0."""
    n_classes = len(tasks[0].labels)
    counts = np.stack([np.bincount(task.train.numbers, minlength=n_classes) + 1 for task in tasks])
    return (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0).astype(np.float32)  # type: ignore[no-any-return]
