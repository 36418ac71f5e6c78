"""A model folder, a finished run or an evaluation file -> values to report."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypedDict

import msgspec

from manymetrics.errors import InputError
from manymetrics.model import Origin, load_origin
from manymetrics.store.folders import CHECKSUMS
from manymetrics.store.runs import is_run
from manymetrics.weigh.assignment import REASONS

LEARNED = "learned"
EXPECTED = "Give the folder that `learn --out` or `learn --run` wrote."


def read_origin(folder: str | Path) -> Origin:
    """The provenance of the model in a model folder or in a finished run."""
    folder = Path(folder)
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "does not exist"
        raise InputError(f"There is nothing to report in {folder}: it {problem}. {EXPECTED}")
    if (folder / CHECKSUMS).is_file():
        return load_origin(folder)
    if (folder / LEARNED).is_dir():
        return load_origin(folder / LEARNED)
    if is_run(folder):
        raise InputError(f"The run in {folder} has not finished. Repeat the `learn` command to resume it.")
    raise InputError(f"There is nothing to report in {folder}: it is neither a model nor a run. {EXPECTED}")


@dataclass(frozen=True)
class AssignedTarget:
    """A target of an evaluation: the tasks it was assigned to, and what predicted its labels."""

    task: str
    accuracy: float
    weights: Mapping[str, float]  # by metric
    fallback: str | None = None  # why a model of its examples alone was used
    tasks: tuple[str, ...] = ()  # the tasks most similar to it; none without evidence
    cluster: int | None = None
    probability: float = 0.0  # of its cluster
    reason: str = ""


class _Assignment(TypedDict):
    similar_tasks: tuple[str, ...]
    cluster: Annotated[int, msgspec.Meta(ge=0, le=10_000)]
    probability: float
    reason: str


class _Target(TypedDict):
    task: str
    accuracy: float
    weights: dict[str, float]
    fallback: str | None
    assignment: _Assignment | None


class _Evaluation(TypedDict):
    targets: list[_Target]


def read_targets(path: str | Path) -> tuple[AssignedTarget, ...]:
    """The targets of an evaluation, from the file that `evaluate --json` wrote."""
    path = Path(path)
    try:
        evaluation = msgspec.json.decode(path.read_bytes(), type=_Evaluation)
        return tuple(map(_read_target, evaluation["targets"]))
    except OSError as problem:
        raise InputError(f"{path}: cannot be read ({problem.strerror}). Check the path.") from None
    except (ValueError, KeyError, RecursionError):
        raise InputError(f"{path}: this is not an evaluation. Give what `manymetrics evaluate --json` wrote.") from None


def _read_target(target: _Target) -> AssignedTarget:
    scores = target["task"], target["accuracy"], target["weights"], target["fallback"]
    assignment = target["assignment"]
    if assignment is None:
        return AssignedTarget(*scores)
    return AssignedTarget(
        *scores,
        assignment["similar_tasks"],
        assignment["cluster"],
        assignment["probability"],
        REASONS[assignment["reason"]],
    )
