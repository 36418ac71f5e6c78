"""A run on disk: one sealed file for each finished unit, named by the hash of all that went into it.

    run/run.json                  that this folder is a run, and its format
    run/recipe.toml               what was asked for last, for people to read
    run/plan.json                 the keys of the units that were asked for last, stage by stage
    run/units/STAGE/ab/ab12…      seal and result of one unit; key = hash of stage, code, name, spec, and inputs
    run/failed/ab12….json         a unit that failed: its stage, name, error, and how often it was tried
    run/learned/                  where the model comes from: S, X, E, clusters, recipe, what its metrics are
    run/manifest.json             written last: every unit's key and the hash of its result, the identity of the run
    run/manifests/cd34….json      the same for each recipe that was carried out here
    run/.lock                     who writes here

A unit that is there is not done again; a damaged one counts as not there, and so does one that failed. Changing a task
changes the keys of what depends on it and of nothing else, so one folder can serve several recipes, seeds and banks.

The file of a unit with parts holds their values by their hashes, and grows when parts are added. The manifest has the
hash of the values that were asked for, whatever else the file holds.
"""

import hashlib
import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from manymetrics.errors import EnvironmentProblem, InputError
from manymetrics.store.files import LEFT_OVER, read_sealed, remove_left_overs, sealed, telling_of, write_atomically
from manymetrics.store.folders import LIBRARY
from manymetrics.store.lock import Lock
from manymetrics.values import Unit

FORMAT = 3
MARK, RECIPE, PLAN, MANIFEST, LOCK = "run.json", "recipe.toml", "plan.json", "manifest.json", ".lock"
OWN = (MARK, RECIPE, PLAN, MANIFEST)  # the files beside the folders
_KEY = re.compile("[0-9a-f]{64}")  # the name of a unit's file
SECOND_TRY = 1.0  # seconds until a write that failed is tried once more: a network disk may only have stumbled


@dataclass(frozen=True)
class Failure:
    """A unit that has no result, and why."""

    stage: str
    unit: str
    error: str
    attempts: int = 1


class Run:
    """The finished units of a long computation, in a folder that one process at a time may write to."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._recipe: str | None = None
        self._lock: Lock | None = None
        self._plan: dict[str, set[str]] = {}
        self._results: dict[str, dict[str, str]] = {}  # stage -> key -> hash of the result
        self._parts: dict[tuple[str, str], dict[str, Any]] = {}  # (stage, key) -> hash of a part -> its value

    @classmethod
    def open(cls, folder: str | Path, recipe: str | None = None) -> "Run":
        """A run in this folder, new or to be gone on with, for this process alone until it is closed.

        The recipe, as TOML, is written down for people to read; its manifest is kept beside those of other recipes.
        """
        run = cls(folder)
        require_run_place(run.folder)
        run._lock, run._recipe = Lock(run.folder / LOCK), recipe
        try:
            write_json(run.folder / MARK, {"library": LIBRARY, "kind": "run"})
            run._tidy()
            if recipe is not None:
                write_atomically(run.folder / RECIPE, recipe.encode())
        except BaseException:
            run.close()
            raise
        return run

    def _tidy(self) -> None:
        """Remove what processes that were killed while they wrote here have left behind."""
        with telling_of(self.folder):
            for path in self.folder.iterdir():
                if _is_left_over(path):
                    path.unlink(missing_ok=True)
            for place in ("units", "failed", "manifests"):
                remove_left_overs(self.folder / place)

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *why: object) -> None:
        self.close()

    def close(self) -> None:
        """Let other processes write to the folder."""
        if self._lock is not None:
            self._lock.release()

    @staticmethod
    def key(stage: str, unit: Unit, code: str) -> str:
        """The hash of everything a unit's result depends on, its parts aside; `code` stands for what computes it."""
        inputs = [hashlib.sha256(part).hexdigest() for part in unit.inputs]
        content = json.dumps([FORMAT, stage, code, unit.name, unit.spec, inputs], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def plan(self, stage: str, keys: Sequence[str]) -> None:
        """Write down that these units are asked for."""
        self._plan.setdefault(stage, set()).update(keys)
        write_json(self.folder / PLAN, {stage: sorted(keys) for stage, keys in self._plan.items()})

    def get(self, stage: str, key: str, unit: Unit) -> bytes | None:
        """The result of a unit, or None where it has to be done; of a unit with parts, the parts that are there."""
        with telling_of(self.folder):
            payload = read_sealed(self._path(stage, key), key)
        if not unit.parts:
            if payload is not None:
                self._note(stage, key, payload)
            return payload
        values = _parts_in(payload)
        found = {name: values[mark] for name, mark in unit.parts.items() if mark in values}
        self._note_parts(stage, key, {unit.parts[name]: value for name, value in found.items()})
        return json.dumps(found, sort_keys=True).encode()

    def put(self, stage: str, key: str, unit: Unit, payload: bytes) -> None:
        """Keep the result of a unit; of a unit with parts, beside the parts that are there."""
        path, kept = self._path(stage, key), payload
        if unit.parts:
            found = {unit.parts[name]: value for name, value in json.loads(payload).items()}
            with telling_of(self.folder):
                values = _parts_in(read_sealed(path, key)) | found
            kept = json.dumps(values, sort_keys=True).encode()
            self._note_parts(stage, key, found)
        else:
            self._note(stage, key, payload)
        try:
            write_atomically(path, sealed(kept, key))
        except EnvironmentProblem:
            time.sleep(SECOND_TRY)
            write_atomically(path, sealed(kept, key))
        with telling_of(self.folder):
            self._failed(key).unlink(missing_ok=True)

    def fail(self, stage: str, key: str, name: str, error: str) -> Failure:
        """Write down that a unit failed, apart from the results: it is tried again on the next start."""
        before = read_failure(self._failed(key))
        failure = Failure(stage, name, error, 1 + (before.attempts if before else 0))
        write_json(self._failed(key), asdict(failure))
        return failure

    def finish(self) -> None:
        """Write down which units made up the run."""
        results = {stage: dict(units) for stage, units in self._results.items()}
        for (stage, key), values in self._parts.items():
            content = json.dumps(values, sort_keys=True).encode()
            results.setdefault(stage, {})[key] = hashlib.sha256(content).hexdigest()
        if self._recipe is not None:
            name = hashlib.sha256(self._recipe.encode()).hexdigest()[:16]
            write_json(self.folder / "manifests" / f"{name}.json", results)
        write_json(self.folder / MANIFEST, results)
        asked = {key for keys in self._plan.values() for key in keys}
        with telling_of(self.folder):
            for path in (self.folder / "failed").glob("*.json"):
                if _KEY.fullmatch(path.stem) and path.stem not in asked:  # of a task, recipe or code that is no more
                    path.unlink()

    def _note(self, stage: str, key: str, payload: bytes) -> None:
        self._results.setdefault(stage, {})[key] = hashlib.sha256(payload).hexdigest()

    def _note_parts(self, stage: str, key: str, values: dict[str, Any]) -> None:
        self._parts.setdefault((stage, key), {}).update(values)

    def _path(self, stage: str, key: str) -> Path:
        return self.folder / "units" / stage / key[:2] / key

    def _failed(self, key: str) -> Path:
        return self.folder / "failed" / f"{key}.json"


def _parts_in(payload: bytes | None) -> dict[str, Any]:
    """The values of a unit's parts by their hashes; none where the file holds something else."""
    try:
        values = {} if payload is None else json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def is_run(folder: Path) -> bool:
    """Whether a folder is a run of the format that is written here."""
    mark = read_json(folder / MARK)
    return mark is not None and mark.get("library") == LIBRARY and mark.get("kind") == "run"


def require_run_place(folder: Path) -> None:
    """Refuse a place that is neither empty nor a run, before anything is written to it."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, and a run is a folder. Give another path.")
    with telling_of(folder):
        others = folder.is_dir() and any(one.name != LOCK and not _is_left_over(one) for one in folder.iterdir())
    if others and not is_run(folder):
        raise InputError(
            f"{folder} is there already and is not a run of this version. Give a new folder, or the one of a run."
        )


def _is_left_over(path: Path) -> bool:
    """Whether this is what a process that was killed while it wrote a file of a run has left beside the file."""
    return any(LEFT_OVER.fullmatch(path.name) and path.name.startswith(f".{name}.") for name in OWN) and path.is_file()


def write_json(path: Path, content: dict[str, Any]) -> None:
    """JSON with the same bytes for the same content."""
    write_atomically(path, json.dumps({"format": FORMAT, **content}, indent=1, sort_keys=True).encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """The content of such a file, or None where there is none that can be read."""
    try:
        content = json.loads(path.read_bytes())
        return {name: value for name, value in content.items() if name != "format"}
    except (OSError, ValueError, AttributeError, RecursionError):
        return None


def read_failure(path: Path) -> Failure | None:
    """A failure that was written down."""
    try:
        return Failure(**(read_json(path) or {}))
    except TypeError:
        return None


def unit_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The stage and the file of every unit in a run."""
    for path in sorted((folder / "units").glob("*/??/*")):
        linked = any(one.is_symlink() for one in (path, *path.parents[:3]))
        if _KEY.fullmatch(path.name) and path.name.startswith(path.parent.name) and path.is_file() and not linked:
            yield path.parts[-3], path
