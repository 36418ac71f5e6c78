"""Where a model comes from: the matrices, the clusters, the recipe, and what its metrics were made of.

Serving needs none of it. A model folder keeps it in files of its own, a finished run in `learned/`, and a report is
made of it.
"""

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from manymetrics.classifier.serving import (
    Serving,
    describe_metric,
    describe_settings,
    open_description,
    open_settings,
)
from manymetrics.errors import DataError
from manymetrics.recipe import Recipe
from manymetrics.store.json_values import named_of, number_of, text_of, texts_of, whole_number_of
from manymetrics.values import Clusters, Floats, ObservedPairs, Similarity, TransferMatrix
from manymetrics.weigh.settings import MixSettings

ORIGIN, MATRICES = "origin.json", "origin.safetensors"


def _versions() -> dict[str, str]:
    return {"manymetrics": version("manymetrics"), "python": platform.python_version(), "numpy": np.__version__}


@dataclass(frozen=True, eq=False)
class Centres:
    """Where each task's texts lie among the rows of the encoder of one metric."""

    metric: str
    rows: Floats  # (tasks, width) float32, of length one

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or self.rows.dtype.kind != "f" or not np.isfinite(self.rows).all():
            raise DataError(f"centres of shape {self.rows.shape} are not one finite row for each task")


@dataclass(frozen=True)
class SharedLabels:
    """Labels that several tasks of the bank have, and these tasks."""

    labels: tuple[str, ...]
    tasks: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Origin:
    """How the metrics of a model came about."""

    clusters: Clusters
    transfer: TransferMatrix
    pairs: ObservedPairs  # that were believed, by transfer and what else was asked
    similarity: Similarity
    recipe: Recipe
    held_out: tuple[str, ...]  # tasks kept from the metrics' training, on which the settings were chosen
    bank_fingerprint: str  # of the tasks it was learned from
    settings: MixSettings = field(default_factory=MixSettings)
    metrics: tuple[Mapping[str, Any], ...] = ()  # of each metric its name, kind, tasks, rule or labels, temperature
    by_labels: tuple[SharedLabels, ...] = ()  # that have metrics of their own
    centres: Centres | None = None
    versions: Mapping[str, str] = field(default_factory=_versions)

    def __post_init__(self) -> None:
        if self.centres is not None and len(self.centres.rows) != len(self.clusters.names):
            raise DataError(f"{len(self.centres.rows)} centres were found for {len(self.clusters.names)} tasks")


def describe_serving(serving: Serving) -> dict[str, Any]:
    """What an origin keeps of what serves: the settings of the mix, what each metric is, and labels with their own."""
    return {
        "settings": serving.settings,
        "metrics": tuple(describe_metric(metric) for metric in serving.metrics),
        "by_labels": tuple(
            SharedLabels(
                tuple(sorted(one.labels)), tuple(sorted({name for metric in one.metrics for name in metric.tasks}))
            )
            for one in serving.by_labels
        ),
    }


def pack_origin(origin: Origin) -> dict[str, bytes]:
    """The origin as the content of two files."""
    matrices = {
        "transfer": origin.transfer.scores,
        "alike": origin.pairs.alike,
        "known": origin.pairs.known,
        "low_rank": origin.similarity.low_rank,
        "errors": origin.similarity.errors,
        "clusters": origin.clusters.labels,
        **({} if origin.centres is None else {"centres": origin.centres.rows}),
    }
    solved = origin.similarity
    about = {
        "recipe": origin.recipe.as_dict(),
        "settings": describe_settings(origin.settings),
        "metrics": [dict(metric) for metric in origin.metrics],
        "by_labels": [asdict(one) for one in origin.by_labels],
        "bank_fingerprint": origin.bank_fingerprint,
        "names": origin.clusters.names,
        "held_out": origin.held_out,
        "score": origin.transfer.score,
        "similarity": {"sparsity": solved.sparsity, "steps": solved.steps, "gap": solved.gap},
        "centres": None if origin.centres is None else origin.centres.metric,
        "versions": dict(origin.versions),
    }
    return {
        ORIGIN: json.dumps(about, indent=1, allow_nan=False).encode(),
        MATRICES: save({name: np.ascontiguousarray(matrix) for name, matrix in matrices.items()}),
    }


def open_origin(files: Mapping[str, bytes]) -> Origin:
    """The origin that `pack_origin` described."""
    about, matrices = json.loads(files[ORIGIN]), load(files[MATRICES])
    names, solved, versions = texts_of(about, "names"), named_of(about, "similarity"), named_of(about, "versions")
    return Origin(
        Clusters(names, matrices["clusters"]),
        TransferMatrix(names, matrices["transfer"], text_of(about, "score")),
        ObservedPairs(names, matrices["alike"], matrices["known"]),
        Similarity(
            names, matrices["low_rank"], matrices["errors"], sparsity=number_of(solved, "sparsity"),
            steps=whole_number_of(solved, "steps"), gap=number_of(solved, "gap"),
        ),
        Recipe.from_dict(about["recipe"]),
        texts_of(about, "held_out"),
        text_of(about, "bank_fingerprint"),
        open_settings(about["settings"]),
        tuple(open_description(metric) for metric in about["metrics"]),
        tuple(SharedLabels(texts_of(one, "labels"), texts_of(one, "tasks")) for one in about["by_labels"]),
        None if about["centres"] is None else Centres(text_of(about, "centres"), matrices["centres"]),
        {name: text_of(versions, name) for name in versions},
    )  # fmt: skip
