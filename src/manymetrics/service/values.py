"""What the verbs give back: plain values that the API writes as JSON and the pages show."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Labelled:
    """A text and its label; without a label it is a counter-example, a text that is out of scope."""

    text: str
    label: str | None = None


@dataclass(frozen=True)
class Estimate:
    """How many of the examples are answered rightly from the others, with an interval of 95 %."""

    accuracy: float
    low: float
    high: float
    tried: int


@dataclass(frozen=True)
class ClassifierInfo:
    """A classifier as it is."""

    id: str
    name: str
    version: int
    labels: list[str]
    examples: int
    counter_examples: int
    reject: float  # texts below this probability of being in scope are rejected; 0: none
    margin: float  # texts whose two likeliest labels are closer than this are rejected
    shared: bool  # may be learned from, for the next model
    model_version: str
    estimate: Estimate | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class ClassifierSummary:
    """A line of the list of classifiers."""

    id: str
    name: str
    version: int
    examples: int
    shared: bool
    model_version: str
    accuracy: float | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class StoredExample:
    """An example as it is kept."""

    id: str
    text: str
    label: str | None


@dataclass(frozen=True)
class VersionInfo:
    """One state of a classifier."""

    version: int
    current: bool
    reason: str  # created, examples, settings, model, rollback
    examples: int
    labels: int
    reject: float
    margin: float
    model_version: str
    estimate: Estimate | None
    accuracy_before: float | None  # with the earlier model, where the model was exchanged
    created_at: datetime


@dataclass(frozen=True)
class Near:
    """An example that is like a text."""

    text: str
    label: str
    similarity: float


@dataclass(frozen=True)
class Prediction:
    """What is answered on one text."""

    label: str | None  # None: rejected
    probability: float  # of the likeliest label
    likeliest: str
    scope: float
    rejected: bool
    reason: str | None
    probabilities: dict[str, float]
    nearest: list[Near]


@dataclass(frozen=True)
class Predictions:
    """What is answered on some texts, in their order."""

    items: list[Prediction]
    version: int
    model_version: str


@dataclass(frozen=True)
class Influence:
    """An example that counted."""

    text: str
    label: str
    share: float  # of the decision
    similarity: float


@dataclass(frozen=True)
class MetricVote:
    """A metric that counted; the tasks it was learned from are not named."""

    metric: str
    kind: str
    weight: float
    label: str
    probability: float


@dataclass(frozen=True)
class ExplanationInfo:
    """Why a text is answered as it is."""

    label: str | None
    likeliest: str
    probability: float
    runner_up: str
    runner_up_probability: float
    scope: float
    rejected: bool
    reason: str | None
    fallback: str | None
    examples: list[Influence]
    metrics: list[MetricVote]
    version: int
    model_version: str


@dataclass(frozen=True)
class ConfusedLabels:
    """A label whose examples are answered with another."""

    label: str
    answered: str
    count: int


@dataclass(frozen=True)
class SuspectExample:
    """An example that the others answer with another label, and surely so."""

    text: str
    label: str
    answered: str
    probability: float


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
class TestResult:
    """How well a labelled test set is answered."""

    texts: int
    right: int
    accuracy: float
    low: float
    high: float
    rejected: int
    confusions: list[ConfusedLabels]


@dataclass(frozen=True)
class EvaluationInfo:
    """How good the classifier is, and what is wrong with its examples."""

    estimate: Estimate | None
    guessing: float  # the accuracy of always answering the commonest label
    is_chance: bool
    duplicates: list[Labelled]
    contradictions: list[Contradiction]
    few: list[LabelCount]
    confusions: list[ConfusedLabels]
    suspects: list[SuspectExample]
    test: TestResult | None
    version: int
    model_version: str


@dataclass(frozen=True)
class SuggestedText:
    """A text worth labelling."""

    text: str
    reason: str
    label: str  # the likeliest so far
    probability: float


@dataclass(frozen=True)
class MetricInfo:
    """A metric of the model."""

    name: str
    kind: str
    cluster: int | None
    tasks: int  # that it was learned from


@dataclass(frozen=True)
class ClusterInfo:
    """A cluster of tasks that help one another; its tasks are not named."""

    cluster: int
    tasks: int


@dataclass(frozen=True)
class ModelInfo:
    """The model that is live."""

    model_version: str
    tasks: int
    clusters: list[ClusterInfo]
    metrics: list[MetricInfo]
