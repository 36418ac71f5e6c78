"""What a model says of itself: the matrices, clusters, recipe and rules, without filters and word vectors.

It is what a report is made of. A model folder holds it, and a finished run keeps it in `learned/`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from manymetrics.errors import DataError
from manymetrics.recipe import Recipe
from manymetrics.values import Clusters, Floats, Similarity, TransferMatrix
from manymetrics.weigh.rules import Rules


@dataclass(frozen=True, eq=False)
class Learned:
    """How the metrics of a model came about."""

    clusters: Clusters
    transfer: TransferMatrix
    similarity: Similarity
    recipe: Recipe
    rules: Rules
    metrics: tuple[Mapping[str, Any], ...]  # of each metric its name, kind, tasks, rule or labels, temperature
    held_out: tuple[str, ...]  # tasks kept from the metrics' training
    bank: str  # the fingerprint of the tasks it was learned from
    versions: Mapping[str, str]  # of manymetrics, python and numpy; of an old model not all
    centres: Floats | None  # (n, dimensions) float32; None in a model of before they were kept


def learned_from(config: Mapping[str, Any], measured: Mapping[str, Any]) -> Learned:
    """The content of a config.json and the tensors beside it, put together."""
    names = tuple(config["names"])
    return Learned(
        Clusters(names, measured["clusters"]),
        TransferMatrix(names, measured["transfer"], config["score"]),
        Similarity(names, measured["low_rank"], measured["errors"], **config["similarity"]),
        Recipe.from_dict(config["recipe"]),
        _rules(config["rules"]),
        tuple(dict(about) for about in config["metrics"]),
        tuple(config["held_out"]),
        str(config["bank"]),
        {name: str(config[name]) for name in ("manymetrics", "python", "numpy") if name in config},
        _checked(measured["centres"], len(names)) if "centres" in measured else None,
    )


def _rules(saved: Mapping[str, Any]) -> Rules:
    shares = {str(kind): float(share) for kind, share in saved["shares"].items()}
    return Rules(shares, float(saved["strength"]), float(saved["threshold"]))


def _checked(centres: Floats, tasks: int) -> Floats:
    if centres.ndim != 2 or len(centres) != tasks or not np.isfinite(centres).all():
        raise DataError(f"centres of shape {centres.shape} are not one finite row for each of {tasks} tasks")
    return centres
