"""What serves: the metrics, the settings of their mix, and what was learned about when to trust an answer.

It is all that adapting and answering need of a model, and all that a service has to load.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from manymetrics.classifier.calibration import Calibration
from manymetrics.classifier.scope import Scope
from manymetrics.encode.encoder import Encoder, open_encoders, pack_encoders
from manymetrics.errors import DataError, ModelError
from manymetrics.measure.heads import Head
from manymetrics.specialize.metric import Metric, SharedLabelMetric, SimilarityMetric
from manymetrics.store.json_values import (
    named_of,
    number_of,
    numbers_of,
    pair_of,
    text_of,
    texts_of,
    truth_of,
    whole_number_of,
)
from manymetrics.values import Texts
from manymetrics.weigh.pooling import Coefficients
from manymetrics.weigh.routing import Routing
from manymetrics.weigh.selection import unlearned
from manymetrics.weigh.settings import MixSettings

ROUTING_TENSORS, ROUTING_VALUES = ("clusters", "centres", "names", "labels"), ("tasks", "count", "coefficients")
LARGEST = 1e9  # value of a classifier's head, and 1 over the smallest share of a label


@dataclass(frozen=True)
class Trust:
    """The scope of a task and the meaning of its probabilities; the defaults were learned from a bank of chatbots."""

    scope: Scope = field(default_factory=Scope)
    calibration: Calibration = field(default_factory=Calibration)


@dataclass(frozen=True, eq=False)
class Serving:
    """What adapting to a task and answering its texts need."""

    metrics: tuple[Metric, ...]
    settings: MixSettings = field(default_factory=MixSettings)
    trust: Trust = field(default_factory=Trust)
    routing: Routing | None = None  # None: clusters count by their size
    by_labels: tuple["Serving", ...] = ()  # of tasks of the bank that share their labels, for new tasks with these

    def __post_init__(self) -> None:
        names = [metric.name for metric in self.metrics]
        if len(set(names)) < len(names) or not names:
            raise DataError(f"Found metrics named {names}. Give at least one, each with a name of its own.")
        shared = [one.labels for one in self.by_labels]
        if not all(shared) or len(set(shared)) < len(shared) or any(one.by_labels for one in self.by_labels):
            raise DataError(f"Found metrics for tasks with the labels {shared}. Give each set of labels once.")

    @property
    def labels(self) -> frozenset[str]:
        """The labels that all tasks it was learned from share; none where they differ in them."""
        return frozenset().union(*(one.labels for one in self.metrics if isinstance(one, SharedLabelMetric)))

    def for_labels(self, labels: Iterable[str]) -> "Serving":
        """What serves a task with these labels: what was learned from tasks that have the same, or from all."""
        wanted = frozenset(labels)
        return next((one for one in self.by_labels if one.labels == wanted), self)

    @cached_property
    def fingerprint(self) -> str:
        """The hash of all that its answers depend on; the same before saving and after loading."""
        tensors, about = pack_serving(self)
        digest = hashlib.sha256(json.dumps({**about, "encoders": []}, sort_keys=True).encode())
        for metric in _every_metric(self):
            digest.update(metric.encoder.fingerprint.encode())
        for name, tensor in sorted(tensors.items()):
            if not name.startswith("encoders/"):
                digest.update(name.encode() + np.ascontiguousarray(tensor).tobytes())
        return digest.hexdigest()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Serving":
        """Itself: nothing in it changes, so copies of a classifier can share it."""
        return self


def pack_serving(serving: Serving) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tensors, and what JSON can hold; an encoder or metric that could not be made again is refused."""
    tensors, encoders, places = pack_encoders(metric.encoder for metric in _every_metric(serving))
    packed = {f"encoders/{name}": tensor for name, tensor in tensors.items()}
    own, about = _pack_mix(serving, places)
    by_labels = []
    for number, one in enumerate(serving.by_labels):
        its, told = _pack_mix(one, places)
        own |= {f"by_labels/{number}/{name}": tensor for name, tensor in its.items()}
        by_labels.append(told)
    return packed | own, {**about, "by_labels": by_labels, "encoders": encoders}


def _every_metric(serving: Serving) -> list[Metric]:
    return [metric for one in (serving, *serving.by_labels) for metric in one.metrics]


def _pack_mix(serving: Serving, places: Mapping[Encoder, int]) -> tuple[dict[str, Any], dict[str, Any]]:
    """All but the encoders and what was learned from some tasks alone."""
    packed: dict[str, Any] = {}
    for number, metric in enumerate(serving.metrics):
        if isinstance(metric, SharedLabelMetric):
            own = {"head": metric.head.weights, "offset": metric.head.offset, "prior": metric.prior}
            packed |= {f"metrics/{number}/{name}": tensor for name, tensor in own.items()}
    routing = serving.routing
    if routing is not None:
        packed |= {f"routing/{name}": getattr(routing, name) for name in ROUTING_TENSORS}
    about = {
        "settings": describe_settings(serving.settings),
        "trust": asdict(serving.trust),
        "routing": None if routing is None else {name: getattr(routing, name) for name in ROUTING_VALUES},
        "metrics": [{**describe_metric(one), "encoder": places[one.encoder]} for one in serving.metrics],
    }
    return packed, about


def open_serving(tensors: Mapping[str, Any], about: Mapping[str, Any]) -> Serving:
    """What `pack_serving` described, everything checked for range."""
    encoders = open_encoders(_within("encoders/", tensors), about["encoders"])
    by_labels = [
        _open_mix(_within(f"by_labels/{number}/", tensors), one, encoders)
        for number, one in enumerate(about["by_labels"])
    ]
    return replace(_open_mix(tensors, about, encoders), by_labels=tuple(by_labels))


def _within(prefix: str, tensors: Mapping[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _open_mix(tensors: Mapping[str, Any], about: Mapping[str, Any], encoders: Sequence[Encoder]) -> Serving:
    metrics = [_open_metric(one, number, tensors, encoders) for number, one in enumerate(about["metrics"])]
    routing = None if about["routing"] is None else _open_routing(tensors, named_of(about, "routing"), metrics)
    return Serving(tuple(metrics), open_settings(about["settings"]), _open_trust(about["trust"]), routing)


def _open_routing(tensors: Mapping[str, Any], about: Mapping[str, Any], metrics: Sequence[Metric]) -> Routing:
    known = {name: tensors[f"routing/{name}"] for name in ROUTING_TENSORS}
    count, coefficients = whole_number_of(about, "count"), named_of(about, "coefficients")
    if any(metric.cluster is not None and metric.cluster >= count for metric in metrics):
        raise DataError("a metric is of a cluster that no task is routed to")
    if known["centres"].shape[1:] != unlearned(metrics)[0].encoder.encode(Texts([""])).shape[1:]:
        raise DataError("the centres of the tasks' texts do not fit the encoder they are compared in")
    numbers = {kinds: numbers_of(coefficients, kinds) for kinds in coefficients}
    return Routing(tasks=texts_of(about, "tasks"), count=count, coefficients=numbers, **known)


def _open_trust(about: Mapping[str, Any]) -> Trust:
    scope = named_of(about, "scope")
    weights = named_of(scope, "weights")
    pairs = {name: pair_of(weights, name) for name in weights}
    numbers = {name: number_of(scope, name) for name in scope if name != "weights"}
    return Trust(Scope(weights=pairs, **numbers), Calibration(**numbers_of(about, "calibration")))


def describe_settings(settings: MixSettings) -> dict[str, Any]:
    """The settings of a mix, as JSON can hold them: a threshold may be infinite."""
    return {**asdict(settings), "threshold": repr(float(settings.threshold))}


def open_settings(about: Mapping[str, Any]) -> MixSettings:
    """The settings that `describe_settings` described."""
    numbers = {name: number_of(about, name) for name in ("prior_shots", "likelihood_temperature", "paper_rate")}
    return MixSettings(
        numbers_of(about, "shares"),
        _open_exponents(about, "exponents"),
        _open_exponents(about, "exponents_without_names"),
        **numbers,
        names_count=truth_of(about, "names_count"),
        paper_steps=whole_number_of(about, "paper_steps"),
        threshold=float(text_of(about, "threshold")),
    )


def _open_exponents(about: Mapping[str, Any], name: str) -> dict[str, Coefficients]:
    found = {group: tuple(float(number) for number in row) for group, row in named_of(about, name).items()}
    if any(len(row) != 3 for row in found.values()):
        raise DataError(f"{name} are not three numbers for each group of metrics")
    return found  # type: ignore[return-value]


def describe_metric(metric: Metric) -> dict[str, Any]:
    """What can be said of a metric beside its encoder and head."""
    about = {"name": metric.name, "kind": metric.kind, "tasks": list(metric.tasks), "cluster": metric.cluster}
    if isinstance(metric, SharedLabelMetric):
        return {**about, "labels": list(metric.labels)}
    if isinstance(metric, SimilarityMetric):
        return {**about, "rule": metric.rule, "temperature": metric.temperature}
    raise ModelError(f"A metric of type {type(metric).__name__} cannot be saved. Save models made by learn_metrics.")


def open_description(about: Mapping[str, Any]) -> dict[str, Any]:
    """What `describe_metric` said, each value of its type."""
    cluster = None if about["cluster"] is None else whole_number_of(about, "cluster")
    told = {"name": text_of(about, "name"), "kind": text_of(about, "kind"), "tasks": list(texts_of(about, "tasks")),
            "cluster": cluster}  # fmt: skip
    if "labels" in about:
        return {**told, "labels": list(texts_of(about, "labels"))}
    return {**told, "rule": text_of(about, "rule"), "temperature": number_of(about, "temperature")}


def _open_metric(
    about: Mapping[str, Any], number: int, tensors: Mapping[str, Any], encoders: Sequence[Encoder]
) -> Metric:
    told, place = open_description(about), whole_number_of(about, "encoder")
    name, tasks = told["name"], tuple(told["tasks"])
    if not 0 <= place < len(encoders):
        raise DataError(f"the metric {name!r} has no encoder")
    encoder = encoders[place]
    if "labels" not in told:
        return SimilarityMetric(name, told["kind"], encoder, told["rule"], told["temperature"], tasks, told["cluster"])
    weights, offset, prior = (tensors[f"metrics/{number}/{part}"] for part in ("head", "offset", "prior"))
    labels, width = tuple(told["labels"]), encoder.encode(Texts([""])).shape[1]
    if weights.shape != (width, len(labels)) or offset.shape != prior.shape or prior.shape != (len(labels),):
        raise DataError(f"the head of {name} does not fit its encoder and labels")
    usable = all((np.abs(part, dtype=np.float64) <= LARGEST).all() for part in (weights, offset, prior))  # no NaN is
    if not usable or not (prior >= 1 / LARGEST).all() or len(set(labels)) < len(labels):
        raise DataError(f"the head of {name} holds values that cannot be used")
    return SharedLabelMetric(name, told["kind"], encoder, Head(weights, offset), labels, prior, tasks, told["cluster"])
