"""Where a model comes from: the matrices, the clusters, the recipe, what its metrics were made of; and its card.

Serving needs none of it. A model folder has it in a file of its own, a finished run in the folder `learned`; `report`
shows it.
"""

import html
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from manymetrics.classifier.predictor import MODEL, PREDICTOR, Predictor, raise_model_error
from manymetrics.recipe import WORDS, Recipe
from manymetrics.specialize.metric import Metric
from manymetrics.store import Kind, packed, read_folder, write_folder
from manymetrics.values import Clusters, ObservedPairs, Similarity, TransferMatrix

LEARNED = Kind("record of learning", 11, "Give the `learn` command again.")
ORIGIN = "origin.safetensors"
STARTER = "starter"
STARTER_FOLDER = Path(__file__).parent / STARTER
WITH_GAPS = ("transfer/scores",)  # NaN where a pair was not measured


@dataclass(frozen=True)
class SharedLabels:
    """Labels that several tasks of the bank have, and these tasks."""

    labels: tuple[str, ...]
    tasks: tuple[str, ...]


class MetricInfo(TypedDict):
    """A metric without its encoder: with labels if it is a classifier over these, else with rule and temperature."""

    name: str
    kind: str
    tasks: list[str]
    cluster: int | None
    labels: NotRequired[list[str]]
    rule: NotRequired[str]
    temperature: NotRequired[float]


@dataclass(frozen=True, eq=False)
class Clustering:
    """The clusters of a bank, and the matrices they were found by."""

    clusters: Clusters
    transfer: TransferMatrix
    pairs: ObservedPairs  # by transfer and other evidence
    similarity: Similarity


@dataclass(frozen=True, eq=False)
class Origin(Clustering):
    """How the metrics of a model were learned."""

    recipe: Recipe
    held_out: tuple[str, ...]  # tasks that the metrics were not trained on
    bank_fingerprint: str  # of the tasks it was learned from
    metrics: tuple[MetricInfo, ...] = ()
    by_labels: tuple[SharedLabels, ...] = ()  # with metrics of their own
    versions: Mapping[str, str] = field(default_factory=lambda: {
        "manymetrics": version("manymetrics"), "python": platform.python_version(), "numpy": np.__version__,
    })  # fmt: skip

    def dump(self) -> bytes:
        """The content of its file."""
        return packed.dump(self, with_gaps=WITH_GAPS)


def describe_predictor(predictor: Predictor) -> dict[str, Any]:
    """The fields of an origin that depend on the predictor."""
    tasks = [sorted({name for metric in part.metrics for name in metric.tasks}) for part in predictor.by_labels]
    labels = [sorted(part.labels) for part in predictor.by_labels]
    shared = tuple(SharedLabels(tuple(those), tuple(names)) for those, names in zip(labels, tasks, strict=True))
    return {"metrics": tuple(map(_describe, predictor.metrics)), "by_labels": shared}


def _describe(metric: Metric) -> MetricInfo:
    info = MetricInfo(name=metric.name, kind=metric.kind, tasks=list(metric.tasks), cluster=metric.cluster)
    if metric.labels:
        return {**info, "labels": list(metric.labels)}
    return {**info, "rule": metric.rule, "temperature": metric.temperature}


def model_folder(path: str | Path) -> Path:
    """The folder of a model; "starter" names the one that comes with the package."""
    return STARTER_FOLDER if str(path) == STARTER else Path(path)


def save_origin(origin: Origin, path: str | Path) -> None:
    """Write the folder `learned` of a run in one step."""
    write_folder(Path(path), {ORIGIN: origin.dump()}, LEARNED)


def load_origin(path: str | Path) -> Origin:
    """The origin in a model folder, or in the folder `learned` of a finished run."""
    folder = model_folder(path)
    kind = LEARNED if (folder / ORIGIN).is_file() and not (folder / PREDICTOR).is_file() else MODEL
    payload = read_folder(folder, [ORIGIN], kind)[ORIGIN]
    with raise_model_error(folder):
        return packed.parse(payload, Origin, with_gaps=WITH_GAPS)


def model_card(origin: Origin, notes: str = "") -> str:
    """The README of a saved model, with further notes in Markdown."""
    clusters, recipe = origin.clusters, origin.recipe
    words = recipe.encoder == WORDS
    encoder = f"word vectors: {_join([recipe.vectors])}" if words else f"sentence encoder: {_join([recipe.encoder])}"
    groups = "\n".join(f"| {number} | {len(group)} | {_join(group)} |" for number, group in enumerate(clusters))
    by_labels = "".join(
        f"\n{len(shared.tasks)} tasks have the labels {_join(shared.labels)}: a new task with the same ones is "
        "answered by\nmetrics learned from these alone.\n"
        for shared in origin.by_labels
    )
    appended = f"\n{notes}" if notes else ""
    return f"""---
library_name: manymetrics
pipeline_tag: text-classification
tags: [few-shot, text-classification, metric-learning]
---

# A manymetrics model

{len(origin.metrics)} metrics, learned from {len(clusters.names)} tasks in {len(clusters)} clusters; a new task with a
handful of examples gets its own combination of them.

```python
import manymetrics as mm

classifier = mm.load_model("this folder").adapt(texts, labels)
classifier.predict(["a new text"])
```

| cluster | tasks | names |
|---|---|---|
{groups}
{by_labels}
- bank: `{origin.bank_fingerprint}`
- {encoder}; seed {recipe.seed}

The encoders were trained on the texts of the tasks above; they hold no text, but what they were trained on can leave
traces. Share the model only with those who may know that these tasks exist.
{appended}"""


def _join(names: Sequence[str]) -> str:
    """Names in which nothing is markup, neither of HTML nor of Markdown, and that stay in their cell."""
    escaped = (html.escape(" ".join(name.split())) for name in names)
    return ", ".join(re.sub(r"([\\`*_{}\[\]()#+!|~])", r"\\\1", name) for name in escaped)
