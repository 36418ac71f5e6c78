"""List, show and clean runs on disk."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manymetrics.errors import InputError
from manymetrics.store.lock import Lock, holder_of
from manymetrics.store.runs import LOCK, MANIFEST, PLAN, Failure, is_run, job_files, os_errors, read_failure, read_json

_MANIFEST = re.compile(r"[0-9a-f]{16}\.json")


@dataclass(frozen=True)
class StageSummary:
    """One stage of a run."""

    stage: str
    asked: int  # jobs of the last learning
    done: int  # of them, those with a stored result
    others: int  # stored results of other recipes or banks
    size: int  # bytes of all stored results


@dataclass(frozen=True)
class RunSummary:
    """A run on disk."""

    folder: Path
    stages: tuple[StageSummary, ...]
    failures: tuple[Failure, ...]
    finished: bool  # all jobs of the last learning are in the manifest
    holder: str | None  # the process that writes to it

    @property
    def size(self) -> int:
        """The bytes of all its results."""
        return sum(stage.size for stage in self.stages)


@dataclass(frozen=True)
class Unused:
    """Results of a run that no recipe needs any more."""

    jobs: tuple[tuple[str, Path], ...]  # stage, file
    size: int  # bytes


def list_runs(folder: str | Path) -> list[RunSummary]:
    """The runs in a folder, or the folder itself if it is one."""
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"There is no folder {path}. Give the folder that holds your runs.")
    if is_run(path):
        return [show_run(path)]
    return [show_run(child) for child in sorted(path.iterdir()) if child.is_dir() and is_run(child)]


def show_run(folder: str | Path) -> RunSummary:
    """The progress of a run by stage."""
    path = _require_run(folder)
    plan, manifest = (_keys(read_json(path / name) or {}) for name in (PLAN, MANIFEST))
    failures = [read_failure(file) for file in sorted((path / "failed").glob("*.json"))]
    holder = holder_of(path / LOCK)
    return RunSummary(
        path,
        _summarize_stages(path, plan),
        tuple(failure for failure in failures if failure is not None),
        bool(plan) and all(plan[stage] <= manifest.get(stage, set()) for stage in plan),
        None if holder is None else str(holder),
    )


def find_unused(folder: str | Path, *, newest: bool = False) -> Unused:
    """The results that no recipe learned here needs; with `newest`, that the last one does not need."""
    path = _require_run(folder)
    keys = {
        key for content in _needed(path, newest=newest).values() for keys in _keys(content).values() for key in keys
    }
    if not keys:
        raise InputError(f"{path} does not say which jobs it needs: nothing was planned or finished in it.")
    with os_errors(path):
        jobs = tuple((stage, file) for stage, file in job_files(path) if file.name not in keys)
        return Unused(jobs, sum(file.stat().st_size for _, file in jobs))


def remove_unused(folder: str | Path, *, newest: bool = False) -> Unused:
    """Delete the results that `find_unused` returns."""
    path = _require_run(folder)
    lock = Lock(path / LOCK)
    try:
        unused = find_unused(path, newest=newest)
        needed = _needed(path, newest=newest)
        with os_errors(path):
            for _, file in unused.jobs:
                file.unlink(missing_ok=True)
            for manifest in _manifests(path):
                if manifest not in needed and not manifest.parent.is_symlink():
                    manifest.unlink()
    finally:
        lock.release()
    return unused


def _summarize_stages(path: Path, plan: dict[str, set[str]]) -> tuple[StageSummary, ...]:
    sizes: dict[str, dict[str, int]] = {stage: {} for stage in plan}
    for stage, file in job_files(path):
        sizes.setdefault(stage, {})[file.name] = file.stat().st_size
    summaries = []
    for stage, stored in sizes.items():
        asked = plan.get(stage, set())
        done, others = len(asked & stored.keys()), len(stored.keys() - asked)
        summaries.append(StageSummary(stage, len(asked), done, others, sum(stored.values())))
    return tuple(summaries)


def _require_run(folder: str | Path) -> Path:
    path = Path(folder)
    if not path.is_dir() or not is_run(path):
        raise InputError(f"{path} is not the folder of a run. Give what was given to learn as --run.")
    return path


def _needed(path: Path, *, newest: bool) -> dict[Path, dict[str, Any]]:
    """The plan and the manifests whose results are needed, with their content; a damaged one is an error."""
    with os_errors(path):
        contents = {file: read_json(file) for file in (path / PLAN, path / MANIFEST, *_manifests(path))}
        for file, content in contents.items():
            if content is None and file.exists():
                raise InputError(f"{file} is damaged, so the jobs it needs are not known. Learn again, or remove it.")
    latest, always = contents[path / MANIFEST], (path / PLAN, path / MANIFEST)
    return {
        file: content or {} for file, content in contents.items() if file in always or not newest or content == latest
    }


def _manifests(path: Path) -> list[Path]:
    """The manifests of recipes, without other files of the user."""
    return [file for file in sorted((path / "manifests").glob("*.json")) if _MANIFEST.fullmatch(file.name)]


def _keys(content: dict[str, Any]) -> dict[str, set[str]]:
    return {stage: {str(key) for key in keys} for stage, keys in content.items() if isinstance(keys, list | dict)}
