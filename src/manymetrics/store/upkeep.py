"""Runs on disk, looked at from outside: which there are, how far they came, and what nobody asks for any more."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manymetrics.errors import InputError
from manymetrics.store.files import telling_of
from manymetrics.store.lock import Lock, holder_of
from manymetrics.store.runs import LOCK, MANIFEST, PLAN, Failure, is_run, read_failure, read_json, unit_files

_MANIFEST = re.compile(r"[0-9a-f]{16}\.json")


@dataclass(frozen=True)
class StageSummary:
    """One stage of a run."""

    stage: str
    asked: int  # units that were asked for last
    done: int  # of them, that are there
    others: int  # units that are there for other recipes or banks
    size: int  # bytes of all that are there


@dataclass(frozen=True)
class RunSummary:
    """A run on disk."""

    folder: Path
    stages: tuple[StageSummary, ...]
    failures: tuple[Failure, ...]
    finished: bool  # all that was asked for last is in the manifest
    holder: str | None  # who writes to it

    @property
    def size(self) -> int:
        """The bytes of all its units."""
        return sum(stage.size for stage in self.stages)


@dataclass(frozen=True)
class Unused:
    """Units of a run that nobody asks for any more."""

    units: tuple[tuple[str, Path], ...]  # stage, file
    size: int  # bytes


def list_runs(folder: str | Path) -> list[RunSummary]:
    """The runs in a folder, or the folder itself if it is one."""
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"There is no folder {place}. Give the folder that holds your runs.")
    if is_run(place):
        return [show_run(place)]
    return [show_run(path) for path in sorted(place.iterdir()) if path.is_dir() and is_run(path)]


def show_run(folder: str | Path) -> RunSummary:
    """How far a run has come, stage by stage."""
    place = _require_run(folder)
    plan, manifest = (_keys(read_json(place / name) or {}) for name in (PLAN, MANIFEST))
    there: dict[str, dict[str, int]] = {stage: {} for stage in plan}
    for stage, path in unit_files(place):
        there.setdefault(stage, {})[path.name] = path.stat().st_size
    stages = tuple(
        StageSummary(
            stage,
            len(plan.get(stage, ())),
            len(plan.get(stage, set()) & found.keys()),
            len(found.keys() - plan.get(stage, set())),
            sum(found.values()),
        )
        for stage, found in there.items()
    )
    failures = [read_failure(path) for path in sorted((place / "failed").glob("*.json"))]
    holder = holder_of(place / LOCK)
    return RunSummary(
        place,
        stages,
        tuple(failure for failure in failures if failure is not None),
        bool(plan) and all(plan[stage] <= manifest.get(stage, set()) for stage in plan),
        None if holder is None else f"process {holder['pid']} on {holder['host']}",
    )


def find_unused(folder: str | Path, *, newest: bool = False) -> Unused:
    """The units that no recipe carried out here asks for; with `newest`, that the last one does not ask for."""
    place = _require_run(folder)
    kept = _all_keys(_kept_manifests(place, newest=newest))
    if not kept:
        raise InputError(f"{place} does not say which units it needs: nothing was planned or finished in it.")
    with telling_of(place):
        units = tuple((stage, path) for stage, path in unit_files(place) if path.name not in kept)
        return Unused(units, sum(path.stat().st_size for _, path in units))


def remove_unused(folder: str | Path, *, newest: bool = False) -> Unused:
    """Delete what `find_unused` finds."""
    place = _require_run(folder)
    lock = Lock(place / LOCK)
    try:
        unused = find_unused(place, newest=newest)
        kept = _kept_manifests(place, newest=newest)
        with telling_of(place):
            for _, path in unused.units:
                path.unlink(missing_ok=True)
            for path in _manifests(place):
                if path not in kept and not path.parent.is_symlink():
                    path.unlink()
    finally:
        lock.release()
    return unused


def _require_run(folder: str | Path) -> Path:
    place = Path(folder)
    if not place.is_dir() or not is_run(place):
        raise InputError(f"{place} is not the folder of a run. Give what was given to learn as --run.")
    return place


def _kept_manifests(place: Path, *, newest: bool) -> dict[Path, dict[str, Any]]:
    """The plan and the manifests whose units are kept, each with what it holds; one that cannot be read is an error."""
    with telling_of(place):
        found = {path: read_json(path) for path in (place / PLAN, place / MANIFEST, *_manifests(place))}
        for path, content in found.items():
            if content is None and path.exists():
                raise InputError(f"{path} is damaged, so the units it needs are not known. Learn again, or remove it.")
    latest, always = found[place / MANIFEST], (place / PLAN, place / MANIFEST)
    return {path: content or {} for path, content in found.items()
            if path in always or not newest or content == latest}  # fmt: skip


def _manifests(place: Path) -> list[Path]:
    """The manifests that runs have written, and nothing else that may lie beside them."""
    return [path for path in sorted((place / "manifests").glob("*.json")) if _MANIFEST.fullmatch(path.name)]


def _keys(content: dict[str, Any]) -> dict[str, set[str]]:
    return {stage: {str(key) for key in keys} for stage, keys in content.items() if isinstance(keys, list | dict)}


def _all_keys(kept: Mapping[Path, dict[str, Any]]) -> set[str]:
    return {key for content in kept.values() for keys in _keys(content).values() for key in keys}
