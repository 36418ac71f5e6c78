"""A run on disk: one file with a checksum for each finished job, named by the hash of everything it depends on.

    run/run.json                  marks the folder as a run, with its format
    run/recipe.toml               the last recipe, for people to read
    run/plan.json                 the keys of the jobs of the last learning, by stage
    run/jobs/STAGE/ab/ab12…      checksum and result of one job; key = hash of stage, code, name, spec and inputs
    run/failed/ab12….json         a job that failed: its stage, name, error and number of attempts
    run/learned/                  where the model comes from: S, X, E, clusters, recipe, description of its metrics
    run/manifest.json             written last: every job's key and the hash of its result, the identity of the run
    run/manifests/cd34….json      the same for each recipe that was learned here
    run/.lock                     the process that writes here

A job whose result is stored is not run again; a damaged result counts as missing, and a job that failed runs again.
Changing a task changes the keys of what depends on it only, so one folder can serve several recipes, seeds and banks.

The file of a job with parts holds their values by their hashes, and grows when parts are added. The manifest has the
hash of the requested values, whatever else the file holds.
"""

import contextlib
import hashlib
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from manymetrics.errors import EnvironmentProblem, InputError
from manymetrics.store.files import (
    TEMPORARY,
    raise_os_error,
    read_checked,
    remove_temporary_files,
    with_checksum,
    write_atomically,
)
from manymetrics.store.folders import LIBRARY
from manymetrics.store.lock import Lock
from manymetrics.values import Job

FORMAT = 4
MARK, RECIPE, PLAN, MANIFEST, LOCK = "run.json", "recipe.toml", "plan.json", "manifest.json", ".lock"
RUN = {"library": LIBRARY, "kind": "run"}
SECOND_TRY = 1.0  # seconds until a failed write is tried once more: a network disk may recover
_KEY = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Failure:
    """A job without a result, and its error."""

    stage: str
    job: str
    error: str
    attempts: int = 1


class Run:
    """The finished jobs of a long computation, in a folder that one process at a time may write to."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._recipe: str | None = None
        self._lock: Lock | None = None
        self._plan: defaultdict[str, set[str]] = defaultdict(set)
        self._results: defaultdict[str, dict[str, str]] = defaultdict(dict)  # stage -> key -> hash of the result
        self._parts: dict[str, dict[str, Any]] = {}  # key -> hash of a part -> its value

    @classmethod
    def open(cls, folder: str | Path, recipe: str | None = None) -> "Run":
        """A new run, or one to resume, locked by this process until it is closed.

        The recipe, as TOML, is stored for people to read; each recipe has its own manifest.
        """
        run = cls(folder)
        check_run_folder(run.folder)
        run._lock, run._recipe = Lock(run.folder / LOCK), recipe
        try:
            write_json(run.folder / MARK, RUN)
            with os_errors(run.folder):
                remove_temporary_files(run.folder)
            if recipe is not None:
                write_atomically(run.folder / RECIPE, recipe.encode())
        except BaseException:
            run.close()
            raise
        return run

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let other processes write to the folder."""
        if self._lock is not None:
            self._lock.release()

    @staticmethod
    def key(stage: str, job: Job, code: str) -> str:
        """The hash of everything a job's result depends on except its parts; `code` is the hash of its function."""
        inputs = [hashlib.sha256(part).hexdigest() for part in job.inputs]
        content = json.dumps([FORMAT, stage, code, job.name, job.spec, inputs], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def plan(self, stage: str, keys: Sequence[str]) -> None:
        """Store the keys of the requested jobs."""
        self._plan[stage].update(keys)
        write_json(self.folder / PLAN, {stage: sorted(keys) for stage, keys in self._plan.items()})

    def get(self, stage: str, key: str, job: Job) -> bytes | None:
        """The stored result of a job, if any; for a job with parts, the stored parts."""
        with os_errors(self.folder):
            payload = read_checked(self._path(stage, key), key)
        if job.parts:
            stored = _parse_json(payload or b"") or {}
            values = {name: stored[digest] for name, digest in job.parts.items() if digest in stored}
            self._note_parts(stage, key, {job.parts[name]: value for name, value in values.items()})
            return json.dumps(values, sort_keys=True).encode()
        if payload is not None:
            self._results[stage][key] = hashlib.sha256(payload).hexdigest()
        return payload

    def put(self, stage: str, key: str, job: Job, payload: bytes) -> None:
        """Store the result of a job; for a job with parts, in addition to the stored parts."""
        path = self._path(stage, key)
        if job.parts:
            values = {job.parts[name]: value for name, value in json.loads(payload).items()}
            with os_errors(self.folder):
                stored = _parse_json(read_checked(path, key) or b"") or {}
            payload = json.dumps(stored | values, sort_keys=True).encode()
            self._note_parts(stage, key, values)
        else:
            self._results[stage][key] = hashlib.sha256(payload).hexdigest()
        try:
            write_atomically(path, with_checksum(payload, key))
        except EnvironmentProblem:
            time.sleep(SECOND_TRY)
            write_atomically(path, with_checksum(payload, key))
        with os_errors(self.folder):
            self._failure_path(key).unlink(missing_ok=True)

    def fail(self, stage: str, key: str, name: str, error: str) -> Failure:
        """Store that a job failed; it is run again when the run is resumed."""
        before = read_failure(self._failure_path(key))
        failure = Failure(stage, name, error, 1 + (before.attempts if before else 0))
        write_json(self._failure_path(key), asdict(failure))
        return failure

    def finish(self) -> None:
        """Write the manifest, and remove failures of jobs that are not requested any more."""
        if self._recipe is not None:
            write_json(self._recipe_manifest, self._results)
        write_json(self.folder / MANIFEST, self._results)
        requested = set().union(*self._plan.values())
        with os_errors(self.folder):
            for path in (self.folder / "failed").glob("*.json"):
                if _KEY.fullmatch(path.stem) and path.stem not in requested:
                    path.unlink()

    def differs_from_manifest(self) -> bool:
        """Whether a stored result is not the one in the last manifest of this recipe."""
        manifest = read_json(self._recipe_manifest) or {}
        return any(
            isinstance(manifest.get(stage), dict) and manifest[stage].get(key, digest) != digest
            for stage, hashes in self._results.items()
            for key, digest in hashes.items()
            if key not in self._parts
        )

    @property
    def _recipe_manifest(self) -> Path:
        if self._recipe is None:
            return self.folder / MANIFEST
        return self.folder / "manifests" / f"{hashlib.sha256(self._recipe.encode()).hexdigest()[:16]}.json"

    def _note_parts(self, stage: str, key: str, values: dict[str, Any]) -> None:
        """The hash of a job with parts is that of all parts that were requested."""
        parts = self._parts.setdefault(key, {})
        parts.update(values)
        self._results[stage][key] = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _path(self, stage: str, key: str) -> Path:
        return self.folder / "jobs" / stage / key[:2] / key

    def _failure_path(self, key: str) -> Path:
        return self.folder / "failed" / f"{key}.json"


@contextlib.contextmanager
def os_errors(folder: Path) -> Iterator[None]:
    """Raise errors of the operating system about a run as `EnvironmentProblem`."""
    cure = "Repair the folder or its disk, and give the same command again; finished jobs are not lost."
    with raise_os_error("read or change", folder, cure):
        yield


def is_run(folder: Path) -> bool:
    """Whether a folder is a run of this format."""
    return read_json(folder / MARK) == {"format": FORMAT, **RUN}


def check_run_folder(folder: Path) -> None:
    """Refuse a folder that is neither empty nor a run."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, and a run is a folder. Give another path.")
    with os_errors(folder):
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    unfinished = {f".{name}" for name in (MARK, RECIPE, PLAN, MANIFEST)}  # before the number of their process
    used = any(
        name != LOCK and not (TEMPORARY.fullmatch(name) and name.rsplit(".", 2)[0] in unfinished) for name in names
    )
    if used and not is_run(folder):
        raise InputError(
            f"{folder} is there already and is not a run of this version. Give a new folder, or the one of a run."
        )


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON with the same bytes for the same content."""
    write_atomically(path, json.dumps({"format": FORMAT, **content}, indent=1, sort_keys=True).encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """The content of such a file, or None if it cannot be read."""
    try:
        return _parse_json(path.read_bytes())
    except OSError:
        return None


def read_failure(path: Path) -> Failure | None:
    """A stored failure, or None if it cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Failure)
    except (OSError, ValueError, RecursionError):
        return None


def _parse_json(payload: bytes) -> dict[str, Any] | None:
    """An object of JSON, or None if it is something else."""
    try:
        content = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
