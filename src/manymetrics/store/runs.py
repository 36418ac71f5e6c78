"""A run on disk: one file with a checksum for each finished job, named by the hash of everything it depends on.

    run/run.json                  marks the folder as a run, with its format
    run/recipe.toml               the last recipe, for people to read
    run/jobs/STAGE/ab/ab12…      checksum and result of one job; key = hash of stage, code, name, spec and inputs
    run/learned/                  where the model comes from: S, X, E, clusters, recipe, description of its metrics
    run/manifest.json             written last: every job's key and the hash of its result, the identity of the run
    run/.lock                     locked by the process that writes here, which it names; the operating system releases
                                  the lock when that process ends, however it ends

A job whose result is stored is not run again; a damaged result counts as missing, and a job that failed runs again.
Changing a task changes the keys of what depends on it only, so one folder can serve several recipes, seeds and banks.

The file of a job with parts holds their values by their hashes, and grows when parts are added. The manifest has the
hash of the requested values, whatever else the file holds.
"""

import errno
import hashlib
import json
import os
import re
import socket
import stat
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manymetrics.errors import EnvironmentProblem, InputError
from manymetrics.store.files import (
    LIBRARY,
    TEMPORARY,
    raise_os_error,
    read_checked,
    remove_temporary_files,
    with_checksum,
    write_atomically,
)
from manymetrics.values import Job

FORMAT = 4
MARK, RECIPE, MANIFEST, LOCK = "run.json", "recipe.toml", "manifest.json", ".lock"
RUN = {"library": LIBRARY, "kind": "run"}
SECOND_TRY = 1.0  # seconds until a failed write is tried once more: a network disk may recover
REPAIR = "Repair the folder or its disk, and give the same command again; finished jobs are not lost."

_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_HOLDER = re.compile(r"process \d{1,20} on [\w.-]{1,255}")


@dataclass(frozen=True)
class Failure:
    """A job without a result, and its error."""

    stage: str
    job: str
    error: str


class Run(AbstractContextManager["Run"]):
    """The finished jobs of a long computation, in a folder that one process at a time may write to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = ExitStack()
        self._results: defaultdict[str, dict[str, str]] = defaultdict(dict)  # stage -> key -> hash of the result
        self._parts: defaultdict[str, dict[str, Any]] = defaultdict(dict)  # key -> hash of a part -> its value

    @classmethod
    def open(cls, path: str | Path, recipe: str | None = None) -> "Run":
        """A new run, or one to resume, locked until it is closed; the recipe, as TOML, is stored for people to read."""
        folder = Path(path)
        check_run_folder(folder)
        run = cls(folder)
        with ExitStack() as lock:
            lock.enter_context(_locked(folder / LOCK))
            run._write_json(MARK, RUN)
            with raise_os_error("read or change", folder, REPAIR):
                remove_temporary_files(folder)
            if recipe is not None:
                write_atomically(folder / RECIPE, recipe.encode())
            run._lock = lock.pop_all()
        return run

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let other processes write to the folder."""
        self._lock.close()

    @staticmethod
    def key(stage: str, job: Job, code: str) -> str:
        """The hash of everything a job's result depends on except its parts; `code` is the hash of its function."""
        inputs = [hashlib.sha256(part).hexdigest() for part in job.inputs]
        content = json.dumps([FORMAT, stage, code, job.name, job.spec, inputs], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def get(self, stage: str, key: str, job: Job) -> bytes | None:
        """The stored result of a job, if any; for a job with parts, the stored parts."""
        payload = self._read(stage, key)
        if job.parts:
            stored = _parse_json(payload)
            values = {name: stored[digest] for name, digest in job.parts.items() if digest in stored}
            payload = json.dumps(values, sort_keys=True).encode()
        if payload is not None:
            self._note(stage, key, job, payload)
        return payload

    def put(self, stage: str, key: str, job: Job, payload: bytes) -> None:
        """Store the result of a job; for a job with parts, in addition to the stored parts."""
        values = self._note(stage, key, job, payload)
        if job.parts:
            payload = json.dumps(_parse_json(self._read(stage, key)) | values, sort_keys=True).encode()
        path, content = self._path(stage, key), with_checksum(payload, key)
        try:
            write_atomically(path, content)
        except EnvironmentProblem:
            time.sleep(SECOND_TRY)
            write_atomically(path, content)

    def finish(self) -> None:
        """Write the manifest."""
        self._write_json(MANIFEST, self._results)

    def differs_from_manifest(self) -> bool:
        """Whether a stored result is not the one in the manifest."""
        manifest = _read_json(self.folder / MANIFEST)
        return any(
            isinstance(manifest.get(stage), dict) and manifest[stage].get(key, digest) != digest
            for stage, hashes in self._results.items()
            for key, digest in hashes.items()
            if key not in self._parts
        )

    def _note(self, stage: str, key: str, job: Job, payload: bytes) -> dict[str, Any]:
        """Note the hash of a result, or of all parts that were requested; the values of these parts by their hashes."""
        values = {}
        if job.parts:
            values = {job.parts[name]: value for name, value in json.loads(payload).items()}
            self._parts[key].update(values)
            payload = json.dumps(self._parts[key], sort_keys=True).encode()
        self._results[stage][key] = hashlib.sha256(payload).hexdigest()
        return values

    def _path(self, stage: str, key: str) -> Path:
        return self.folder / "jobs" / stage / key[:2] / key

    def _read(self, stage: str, key: str) -> bytes | None:
        with raise_os_error("read or change", self.folder, REPAIR):
            return read_checked(self._path(stage, key), key)

    def _write_json(self, name: str, content: dict[str, Any]) -> None:
        """Write JSON with the same bytes for the same content."""
        payload = json.dumps({"format": FORMAT, **content}, indent=1, sort_keys=True)
        write_atomically(self.folder / name, payload.encode())


def is_run(folder: Path) -> bool:
    """Whether a folder is a run of this format."""
    return _read_json(folder / MARK) == {"format": FORMAT, **RUN}


def check_run_folder(folder: Path) -> None:
    """Refuse a folder that is neither empty nor a run."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, and a run is a folder. Give another path.")
    with raise_os_error("read or change", folder, REPAIR):
        names = {path.name for path in folder.iterdir()} - {LOCK} if folder.is_dir() else set()
    unfinished = {f".{name}" for name in (MARK, RECIPE, MANIFEST)}  # before the number of their process
    if not is_run(folder) and any(
        not TEMPORARY.fullmatch(name) or name.rsplit(".", 2)[0] not in unfinished for name in names
    ):
        raise InputError(
            f"{folder} is there already and is not a run of this version. Give a new folder, or the one of a run."
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a file that names this process, or refuse to if another process holds the lock."""
    from filelock import lock_descriptor  # slow to load, and reading a run does not need it

    with ExitStack() as stack:
        with raise_os_error("write", path, "Choose another folder, or repair this one."):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, _LOCK_FLAGS, 0o644)  # a link is not followed
            stack.callback(os.close, handle)
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(errno.EINVAL, "it is not a file")
        with raise_os_error("lock", path, "Choose a folder on another disk."):
            is_free = lock_descriptor(handle, blocking=False)
            holder = "" if is_free else os.pread(handle, 300, 0).decode(errors="replace")
        if not is_free:
            name = holder if _HOLDER.fullmatch(holder) else "another process"
            raise EnvironmentProblem(
                f"{path.parent} is in use by {name}. Wait until that one is done, or give another folder."
            )
        with suppress(OSError):  # on a full disk the folder is locked without a name
            os.truncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        try:
            yield
        finally:
            with suppress(OSError):  # a name that stays in the file blocks nobody
                os.truncate(handle, 0)


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a file; empty if it cannot be read."""
    try:
        return _parse_json(path.read_bytes())
    except OSError:
        return {}


def _parse_json(payload: bytes | None) -> dict[str, Any]:
    """An object of JSON; empty if it is something else."""
    try:
        content = json.loads(payload or b"")
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
