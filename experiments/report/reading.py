"""A folder that `reproduce` wrote -> values: rows of methods, targets, and scores against the number of clusters."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.plan import OURS, REFERENCE
from experiments.provenance import FORMAT
from experiments.reproduction import LEARNED, RESULTS
from manymetrics.errors import InputError
from manymetrics.evaluation.scoring import Estimate
from manymetrics.model import Origin, load_origin

AGAIN = "Give the `reproduce` command again."
ACCURACY, BALANCED, MACRO_F1 = "accuracy", "balanced_accuracy", "macro_f1"
SCORES = {ACCURACY: "accuracy", BALANCED: "balanced accuracy", MACRO_F1: "macro-F1"}


@dataclass(frozen=True)
class Row:
    """One method: its scores over the targets, the paper's figure, and how far RobustTC-FSL is ahead of it."""

    method: str
    group: str  # ours, paper, today
    paper: float | None
    applies: bool
    note: str
    scores: Mapping[str, Estimate]  # by the names of SCORES; intervals over sources; empty where it does not apply
    over_seeds: Mapping[str, Estimate]
    gain: Estimate | None
    seconds: float | None


@dataclass(frozen=True)
class Target:
    """One target task: its size, every method's accuracy on it, the weights of the metrics, and its neighbours."""

    task: str
    labels: int
    shots: int
    texts: int
    majority: float
    accuracy: Mapping[str, float]
    weights: Mapping[str, float]
    fallback: str | None
    nearest: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class AtClusters:
    """A method's scores with a given number of clusters."""

    method: str
    clusters: int
    scores: Mapping[str, Estimate]


@dataclass(frozen=True)
class Results:
    """All that an experiment measured, and what it takes to measure it again."""

    experiment: str
    command: str
    version: str
    versions: Mapping[str, str]
    data: str  # the fingerprint of the tasks
    left_out: tuple[tuple[str, str], ...]  # names and reasons
    notes: tuple[str, ...]
    seeds: tuple[int, ...]
    quick: bool
    seconds: float
    recipe: Mapping[str, Any]
    rows: tuple[Row, ...]
    targets: tuple[Target, ...]
    by_clusters: tuple[AtClusters, ...]
    ablations: tuple[Row, ...]

    @property
    def main(self) -> Row | None:
        """The row of RobustTC-FSL, or the first of ours that applies."""
        ours = [row for row in self.rows if row.group == OURS and row.scores]
        return next((row for row in ours if row.method == REFERENCE), ours[0] if ours else None)


def read_experiment(place: str | Path) -> tuple[Results, Origin]:
    """What an experiment measured, and where the model of its first seed comes from; refuses any other folder."""
    folder = Path(place)
    if not (folder / RESULTS).is_file():
        raise InputError(f"There are no results in {folder}. Give the folder that `reproduce --out` wrote to its end.")
    return _read_results(folder / RESULTS), load_origin(folder / LEARNED)


def _read_results(path: Path) -> Results:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        form = int(raw["format"])
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise InputError(f"{path} is damaged: {problem!r}. {AGAIN}") from problem
    if form > FORMAT:
        raise InputError(f"{path} has format {form}, and only formats up to {FORMAT} are known here. {AGAIN}")
    try:
        return results_from(raw)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise InputError(f"{path} is damaged: {problem!r}. {AGAIN}") from problem


def results_from(raw: Mapping[str, Any]) -> Results:
    """The values of a results.json; raises KeyError, TypeError, ValueError or AttributeError if it is none."""
    return Results(
        experiment=str(raw["experiment"]),
        command=str(raw["command"]),
        version=str(raw["version"]),
        versions={str(name): str(version) for name, version in raw["versions"].items()},
        data=str(raw["data"]),
        left_out=tuple((str(one["name"]), str(one["reason"])) for one in raw["left_out"]),
        notes=tuple(str(note) for note in raw["notes"]),
        seeds=tuple(int(seed) for seed in raw["seeds"]),
        quick=bool(raw["quick"]),
        seconds=_number(raw["seconds"]),
        recipe=dict(raw["recipe"]),
        rows=tuple(_row(one) for one in raw["rows"]),
        targets=tuple(_target(one) for one in raw["targets"]),
        by_clusters=tuple(
            AtClusters(str(one["method"]), int(one["clusters"]), _scores(one)) for one in raw["by_clusters"]
        ),
        ablations=tuple(_row(one) for one in raw["ablations"]),
    )


def _row(raw: Mapping[str, Any]) -> Row:
    applies = bool(raw["applies"])
    return Row(
        method=str(raw["method"]),
        group=str(raw["group"]),
        paper=_number_or_none(raw.get("paper")),
        applies=applies,
        note=str(raw.get("note") or ""),
        scores=_scores(raw) if applies else {},
        over_seeds=_scores(raw.get("over_seeds") or {}) if applies else {},
        gain=_estimate(raw["gain"]) if applies and raw.get("gain") is not None else None,
        seconds=_number_or_none(raw.get("seconds")),
    )


def _target(raw: Mapping[str, Any]) -> Target:
    return Target(
        task=str(raw["task"]),
        labels=int(raw["labels"]),
        shots=int(raw["shots"]),
        texts=int(raw["texts"]),
        majority=_number(raw["majority"]),
        accuracy={str(method): _number(share) for method, share in raw["accuracy"].items() if share is not None},
        weights={str(metric): _number(weight) for metric, weight in raw["weights"].items()},
        fallback=None if raw["fallback"] is None else str(raw["fallback"]),
        nearest=tuple((str(one["task"]), _number(one["cosine"])) for one in raw["nearest"]),
    )


def _scores(raw: Mapping[str, Any]) -> dict[str, Estimate]:
    return {score: _estimate(raw[score]) for score in SCORES if raw.get(score) is not None}


def _estimate(raw: Mapping[str, Any]) -> Estimate:
    value = _number(raw["value"])
    if set(raw) == {"value"}:  # its interval is not known
        return Estimate(value, value, value)
    return Estimate(value, _number(raw["low"]), _number(raw["high"]))


def _number(raw: Any) -> float:
    number = float(raw)
    if not math.isfinite(number):
        raise ValueError(f"found {raw!r} where a number was expected")
    return number


def _number_or_none(raw: Any) -> float | None:
    return None if raw is None else _number(raw)
