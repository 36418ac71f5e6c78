"""What answers: the metrics, the assignment to clusters, and what was learned about scope and calibration.

It is all that adapting and answering need of a model, and all that a service has to load.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any

from manymetrics.classifier.confidence import Calibration, Scope
from manymetrics.encode.encoder import Encoder
from manymetrics.errors import DataError, InputError, ModelError
from manymetrics.specialize.metric import FROZEN, Metric
from manymetrics.store import packed
from manymetrics.weigh.assignment import ClusterAssigner
from manymetrics.weigh.published import GradientSettings


@dataclass(frozen=True, eq=False)
class Predictor:
    """What adapting to a task and answering its texts need."""

    metrics: tuple[Metric, ...]
    scope: Scope = field(default_factory=Scope)  # the defaults hold over several banks
    calibration: Calibration = field(default_factory=Calibration)
    assigner: ClusterAssigner | None = None  # None: nothing is known of a task's cluster
    letters: Encoder | None = None  # character n-grams, for the scope model
    gradient: GradientSettings | None = None  # of a model that answers by the published mix
    by_labels: tuple["Predictor", ...] = ()  # of tasks of the bank that share their labels, for new tasks with these

    def __post_init__(self) -> None:
        names = [metric.name for metric in self.metrics]
        if len(set(names)) < len(names) or not names:
            raise DataError(f"Found metrics named {names}. Give at least one, each with a name of its own.")
        shared = [predictor.labels for predictor in self.by_labels]
        if not all(shared) or len(set(shared)) < len(shared) or any(part.by_labels for part in self.by_labels):
            raise DataError(f"Found metrics for tasks with the labels {shared}. Give each set of labels once.")
        n_clusters = None if self.assigner is None else self.assigner.count
        for metric in self.metrics:
            if n_clusters is not None and metric.cluster is not None and not 0 <= metric.cluster < n_clusters:
                raise DataError(f"The metric {metric.name!r} is of a cluster that no task is assigned to.")

    @property
    def base(self) -> Encoder:
        """The frozen encoder: it decides the scope, and answers alone when no cluster fits."""
        frozen = [metric.encoder for metric in self.metrics if metric.kind == FROZEN]
        if not frozen:
            raise InputError(
                "This model has no metric of a frozen encoder, which scope and fallback need. Add one to its metrics."
            )
        return frozen[0]

    @property
    def labels(self) -> frozenset[str]:
        """The labels that all tasks it was learned from share; none where they differ in them."""
        return frozenset(label for metric in self.metrics for label in metric.labels)

    def for_labels(self, labels: Iterable[str]) -> "Predictor":
        """What answers a task with these labels: what was learned from tasks that have the same, or from all."""
        wanted = frozenset(labels)
        return next((predictor for predictor in self.by_labels if predictor.labels == wanted), self)

    @cached_property
    def fingerprint(self) -> str:
        """The hash of all that its answers depend on; the same before saving and after loading."""
        return hashlib.sha256(packed.dump(self, {Encoder: attrgetter("fingerprint")})).hexdigest()

    @cached_property
    def checked(self) -> "Predictor":
        """Itself, once heads and centroids are known to fit their encoders, which are run for it the first time."""
        widths = [
            (f"the head of {metric.name!r}", metric.encoder, metric.shared.head.weights.shape[0])
            for metric in self.metrics
            if metric.shared is not None
        ]
        if self.assigner is not None:
            widths.append(("the cluster assignment", self.base, self.assigner.centroids.shape[1]))
        for part, encoder, width in widths:
            if encoder.encode([""]).shape[1] != width:
                raise ModelError(f"This model is inconsistent: {part} does not fit its encoder. Save it again.")
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Predictor":
        """Itself: nothing in it changes, so copies of a classifier can share it."""
        return self
