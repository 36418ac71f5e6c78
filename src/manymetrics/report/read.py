"""A model folder, a finished run or an evaluation file -> values to report."""

from pathlib import Path

import msgspec

from manymetrics.errors import InputError
from manymetrics.model import Origin, load_origin, model_folder
from manymetrics.store.files import CHECKSUMS
from manymetrics.store.runs import is_run

LEARNED = "learned"


def read_origin(folder: str | Path) -> Origin:
    """The provenance of the model in a model folder or in a finished run."""
    folder = model_folder(folder)
    for origin in (folder, folder / LEARNED):
        if (origin / CHECKSUMS).is_file():
            return load_origin(origin)
    if folder.is_dir() and is_run(folder):
        raise InputError(f"The run in {folder} has not finished. Repeat the `learn` command to resume it.")
    raise InputError(f"{folder} is neither a model nor a run. Give what `learn --out` or `learn --run` wrote.")


class ClusterAssignment(msgspec.Struct, frozen=True):
    """The cluster that a target was assigned to."""

    summary: str  # the most similar tasks, the probability and the reason
    cluster: int


class AssignedTarget(msgspec.Struct, frozen=True):
    """A target of an evaluation: the cluster it was assigned to, and what predicted its labels."""

    task: str
    accuracy: float
    weights: dict[str, float]  # by metric
    fallback: str | None  # why a model of its examples alone was used
    assignment: ClusterAssignment | None  # None without evidence


class _Evaluation(msgspec.Struct):
    targets: tuple[AssignedTarget, ...]


def read_targets(path: str | Path) -> tuple[AssignedTarget, ...]:
    """The targets of an evaluation, from the file that `evaluate --json` wrote."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=_Evaluation).targets
    except OSError as problem:
        raise InputError(f"{path}: cannot be read ({problem.strerror}). Check the path.") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path}: this is not an evaluation. Give what `manymetrics evaluate --json` wrote.") from None
