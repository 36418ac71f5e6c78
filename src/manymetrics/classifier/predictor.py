"""What answers: the metrics, the assignment to clusters, and what was learned about scope and calibration.

It is all that adapting and answering need of a model, and all that a service has to load: one file of a model's folder.

    model/predictor.safetensors    metrics, encoders, scope, calibration, assignment to clusters

Encoders are stored once each, as their states; metrics refer to them by number. Reading makes the encoders again and
runs none of them. A known encoder may be stored by its name and fingerprint; it is fetched where it is not on the
machine.
"""

import contextlib
import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from manymetrics.classifier.confidence import Calibration, Scope
from manymetrics.encode.encoder import Encoder, open_encoders, pack_encoders
from manymetrics.encode.sources.encoders import get_encoder, list_encoders, load_encoder
from manymetrics.errors import DataError, EnvironmentProblem, InputError, ManyMetricsError, ModelError
from manymetrics.specialize.metric import FROZEN, Metric
from manymetrics.store import Kind, packed, read_folder
from manymetrics.weigh.assignment import ClusterAssigner
from manymetrics.weigh.published import GradientSettings

MODEL = Kind("model", 11, "Learn the model again, or load it with the version that saved it.")
PREDICTOR = "predictor.safetensors"


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


class StoredEncoder(TypedDict):
    """An encoder without its tensors; `parts` are the numbers of encoders before it."""

    kind: str
    settings: dict[str, Any]
    parts: dict[str, int]


@dataclass(frozen=True, eq=False)
class StoredEncoders:
    """The encoders of a predictor; the names of their tensors begin with their numbers."""

    encoders: tuple[StoredEncoder, ...]
    tensors: Mapping[str, np.ndarray]


def dump_predictor(predictor: Predictor, by_name: Collection[str] = ()) -> bytes:
    """The content of the file; an encoder or metric that could not be made again is refused.

    Known encoders whose names are in `by_name` are stored without their weights.
    """
    parts = (predictor, *predictor.by_labels)
    used = [metric.encoder for part in parts for metric in part.metrics]
    used += [part.letters for part in parts if part.letters is not None]
    tensors, encoders, numbers = pack_encoders(used, by_name)
    content = {"predictor": predictor, "encoders": encoders, "tensors": tensors}
    return packed.dump(content, {Encoder: numbers.__getitem__})


def parse_predictor(payload: bytes) -> Predictor:
    """The predictor that `dump_predictor` wrote."""
    tree = packed.read(payload)
    stored = packed.convert(tree, StoredEncoders)
    encoders = open_encoders(stored.tensors, stored.encoders, _fetch_and_load)

    def decode(expected: Any, item: Any) -> Any:
        if not isinstance(item, int) or not 0 <= item < len(encoders):
            raise DataError(f"there is no encoder {item!r}")
        return encoders[item]

    return packed.convert(tree["predictor"], Predictor, decode)


def _fetch_and_load(name: str) -> Encoder:
    """A known encoder, fetched where it is not on this machine; any other name is refused."""
    if name not in list_encoders():
        raise DataError(f"the encoder {name!r} is not one of {', '.join(list_encoders())}")
    get_encoder(name)
    return load_encoder(name)


def load_predictor(folder: Path) -> Predictor:
    """What answers, from the folder of a saved model."""
    payload = read_folder(folder, [PREDICTOR], MODEL)[PREDICTOR]
    with raise_model_error(folder):
        return parse_predictor(payload)


@contextlib.contextmanager
def raise_model_error(folder: Path, again: str = "Save the model again.") -> Iterator[None]:
    """Report any error while the content of a folder is read as one sentence about the folder."""
    try:
        yield
    except (MemoryError, EnvironmentProblem):
        raise
    except Exception as problem:
        raise ModelError(f"{folder} is inconsistent: {summarize_error(problem)}. {again}") from problem


def summarize_error(problem: BaseException) -> str:
    """An error as half a sentence."""
    return str(problem).rstrip(".") if isinstance(problem, ManyMetricsError) else f"{type(problem).__name__} {problem}"
