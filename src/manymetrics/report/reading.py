"""A folder -> where the model in it comes from: a saved model, or a finished run of `learn`. A file -> its targets."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manymetrics.errors import DataError, InputError
from manymetrics.model import Origin, load_origin
from manymetrics.store.folders import SEAL
from manymetrics.store.json_values import named_of, number_of, numbers_of, text_of, texts_of, whole_number_of
from manymetrics.store.runs import is_run
from manymetrics.weigh.routing import REASONS

LEARNED = "learned"
EXPECTED = "Give the folder that `learn --out` or `learn --run` wrote."


def read_origin(place: str | Path) -> Origin:
    """Where the model of a model folder or of a finished run comes from; refuses any other folder."""
    folder = Path(place)
    if not folder.is_dir():
        found = "is a file" if folder.exists() else "is not there"
        raise InputError(f"There is nothing to report in {folder}: it {found}. {EXPECTED}")
    if (folder / SEAL).is_file():
        return load_origin(folder)
    if (folder / LEARNED).is_dir():
        return load_origin(folder / LEARNED)
    if is_run(folder):
        raise InputError(f"The run in {folder} has not finished. Give the `learn` command again; it goes on there.")
    raise InputError(f"There is nothing to report in {folder}: it is neither a model nor a run. {EXPECTED}")


@dataclass(frozen=True)
class RoutedTarget:
    """A target of an evaluation: which tasks it was taken for, and what answered it."""

    task: str
    accuracy: float
    weights: Mapping[str, float]  # by metric
    fallback: str | None = None  # why a model of its examples alone answered
    alike: tuple[str, ...] = ()  # tasks it was taken for; none where nothing told
    cluster: int | None = None
    probability: float = 0.0
    reason: str = ""  # in words

    @property
    def said(self) -> str:
        """Where it was routed, as a sentence says it."""
        if not self.alike:
            return "taken for no cluster"
        return (
            f"taken for a task like {', '.join(self.alike)} with a probability of {self.probability:.0%}: {self.reason}"
        )


def read_targets(path: str | Path) -> tuple[RoutedTarget, ...]:
    """The targets of an evaluation, from the file that `evaluate --json` wrote."""
    path = Path(path)
    try:
        targets = json.loads(path.read_text(encoding="utf-8"))["targets"]
        return tuple(_read_target(target) for target in targets)
    except OSError as problem:
        raise InputError(f"{path}: cannot be read ({problem.strerror}). Check the path.") from None
    except (ValueError, KeyError, TypeError, DataError, RecursionError):
        raise InputError(f"{path}: this is not an evaluation. Give what `manymetrics evaluate --json` wrote.") from None


def _read_target(about: Any) -> RoutedTarget:
    fallback = None if about["fallback"] is None else text_of(about, "fallback")
    plain = text_of(about, "task"), number_of(about, "accuracy"), numbers_of(about, "weights"), fallback
    if about["route"] is None:
        return RoutedTarget(*plain)
    route = named_of(about, "route")
    return RoutedTarget(
        *plain,
        texts_of(route, "alike"),
        whole_number_of(route, "cluster"),
        number_of(route, "probability"),
        REASONS[text_of(route, "reason")],
    )
