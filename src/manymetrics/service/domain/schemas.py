"""Values that the API writes as JSON and the pages show.

They are the contract with clients. Where the library's own value says the same it is used; what only the library has,
such as names of tasks, is not in them.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from typing import Any, Generic, Self, TypeVar

from pydantic import BaseModel, TypeAdapter

import manymetrics as mm

ID = r"^[a-z]+_[0-9a-f]+$"  # of a classifier, an example ...
Schema = TypeVar("Schema")
Item = TypeVar("Item")


@cache
def adapter(schema: Any) -> TypeAdapter[Any]:
    """What reads and writes values of a schema."""
    return TypeAdapter(schema)


def convert(value: Any, schema: type[Schema], **more: Any) -> Schema:
    """A dataclass of the library as a schema: the fields of the same name, and some more."""
    return adapter(schema).validate_python(asdict(value) | more)  # type: ignore[no-any-return, arg-type]


class Page(BaseModel, Generic[Item]):
    """Some items of a list; `next` is the cursor of those that follow."""

    items: list[Item]
    next: str | None = None

    @classmethod
    def of(cls, items: Sequence[Any], limit: int) -> "Page[Any]":
        """The first `limit` items, and a cursor if there are more."""
        return Page(items=list(items[:limit]), next=items[limit - 1].id if len(items) > limit else None)


@dataclass(frozen=True)
class Labelled:
    """A text and its label; without a label it is a counter-example, a text that is out of scope."""

    text: str
    label: str | None


def labelled(examples: Iterable[Any]) -> list[Labelled]:
    """Rows or bodies of examples as values."""
    return [Labelled(example.text, example.label) for example in examples]


@dataclass(frozen=True)
class StoredExample(Labelled):
    """An example in the database."""

    id: str


@dataclass(frozen=True)
class Near(Labelled):
    """An example that is similar to a text."""

    similarity: float


@dataclass(frozen=True)
class Contradiction:
    """One text with several labels."""

    text: str
    labels: list[str]


@dataclass(frozen=True)
class LabelCount:
    """A label and how many examples it has."""

    label: str
    count: int


@dataclass(frozen=True)
class Estimate:
    """The share of examples that are predicted correctly from the others, with an interval of 95 %."""

    accuracy: float
    low: float
    high: float
    tried: int

    @classmethod
    def of(cls, source: Any) -> Self | None:
        """The estimate in a diagnosis or in the row of a version; None if no example could be left out."""
        return cls(source.accuracy, source.low, source.high, source.tried) if source.tried else None


@dataclass(frozen=True)
class TestResult:
    """The predictions for a labelled test set, compared with its labels; low and high bound 95 %."""

    accuracy: float
    low: float
    high: float
    texts: int
    right: int
    rejected: int
    confusions: list[mm.classifier.Confusion]


@dataclass(frozen=True)
class Source:
    """The version of a classifier and the model that something comes from."""

    version: int
    model_version: str


@dataclass(frozen=True)
class VersionInfo(Source):
    """One state of a classifier."""

    current: bool
    reason: str  # created, examples, settings, model, rollback
    examples: int
    labels: int
    reject: float
    margin: float
    estimate: Estimate | None
    accuracy_before: float | None  # with the earlier model, if the model was replaced
    created_at: datetime


@dataclass(frozen=True)
class ClassifierSummary(Source):
    """A classifier in a list, and its current version."""

    id: str
    name: str
    examples: int
    shared: bool  # the next model may be learned from its examples
    estimate: Estimate | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class ClassifierInfo(ClassifierSummary):
    """A classifier and its current version."""

    labels: list[str]
    counter_examples: int
    reject: float  # texts with a lower probability of being in scope are rejected; 0: none
    margin: float  # texts whose two most probable labels are closer than this are rejected

    @property
    def tag(self) -> str:
        """The tag of this state."""
        return state_tag(self.version, self.name, shared=self.shared)

    def as_json(self) -> str:
        """The body of a response."""
        return adapter(ClassifierInfo).dump_json(self).decode()


def state_tag(version: int, name: str, *, shared: bool) -> str:
    """A tag that changes with the version, the name and the sharing of a classifier."""
    return f"{version}-{hashlib.sha256(json.dumps([name, shared]).encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class Answer:
    """What a classifier answers to a text."""

    label: str | None  # None: rejected
    most_probable: str
    probability: float  # of the most probable label
    scope: float
    rejected: bool
    reason: str | None


@dataclass(frozen=True)
class Prediction(Answer):
    """The prediction for one text."""

    probabilities: dict[str, float]
    nearest: list[Near]


@dataclass(frozen=True)
class Predictions(Source):
    """The predictions for some texts, in their order."""

    items: list[Prediction]


@dataclass(frozen=True)
class MetricVote:
    """A metric that contributed; the tasks it was learned from are not named."""

    metric: str
    kind: str
    weight: float
    label: str
    probability: float


@dataclass(frozen=True)
class ExplanationInfo(Source, Answer):
    """Why a text gets its prediction."""

    runner_up: str
    runner_up_probability: float
    fallback: str | None
    examples: list[mm.classifier.NearExample]
    metrics: list[MetricVote]


@dataclass(frozen=True)
class EvaluationInfo(Source):
    """How good the classifier is, and what is wrong with its examples."""

    estimate: Estimate | None
    guessing: float  # the accuracy of always predicting the most frequent label
    is_chance: bool
    duplicates: list[Labelled]
    contradictions: list[Contradiction]
    few: list[LabelCount]
    confusions: list[mm.classifier.Confusion]
    suspects: list[mm.classifier.Suspect]
    test: TestResult | None
