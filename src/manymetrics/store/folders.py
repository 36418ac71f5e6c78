"""A folder of files that belong together: a saved model, a saved classifier. There whole or not at all.

    folder/checksums.json     whose folder it is (library, kind, format), and the SHA-256 of every other file in it

A folder is written beside its place and exchanged with the old one in one step of the system. Where the system has no
such step, the old one is moved aside first, and whoever opens the folder next moves it back if nothing took its place.
Only an empty place, or a folder that holds a whole one of the same kind and nothing else, is ever written to.
"""

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manymetrics.errors import EnvironmentProblem, InputError, ManyMetricsError, ModelError
from manymetrics.store.files import sync_folder, write_atomically

LIBRARY, SEAL = "manymetrics", "checksums.json"
LARGEST = 4 * 2**30  # bytes of one file
LARGEST_SEAL = 2**20
_EXCHANGE, _HERE = 2, -100  # RENAME_EXCHANGE and AT_FDCWD of Linux


@dataclass(frozen=True)
class Kind:
    """A kind of folder: what it is called in messages, and the format that this version writes and reads."""

    name: str
    format: int
    again: str  # what to do about a folder of another format


def write_folder(path: Path, files: Mapping[str, bytes], kind: Kind) -> None:
    """Write a folder of files beside its place and move it there, where `require_place` allows it."""
    path = path.absolute()
    require_place(path, kind)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path.parent):
            _recover(path)
            require_place(path, kind)
            try:
                _remove_left_overs(path)
                new = _beside(path, "new")
                new.mkdir()
                for name, payload in [*files.items(), (SEAL, _seal(files, kind))]:
                    write_atomically(new / name, payload)
                _exchange(new, path)
                with contextlib.suppress(OSError):  # some disks cannot
                    sync_folder(path.parent)
            finally:
                with contextlib.suppress(OSError):
                    _remove_left_overs(path)
    except OSError as problem:
        raise EnvironmentProblem(
            f"Could not write {path}: {problem.strerror or problem}. Make room or choose another folder; "
            "what was there is there still."
        ) from problem


def read_folder(folder: Path, names: Iterable[str], kind: Kind) -> dict[str, bytes]:
    """These files of a folder, each checked against its checksum before anything is made of it."""
    wanted, path = list(names), folder.absolute()
    try:
        try:
            return _read_checked(folder, wanted, kind)
        except (ModelError, OSError):  # it may have been exchanged meanwhile: once more, while nobody writes
            with _alone(path.parent):
                with contextlib.suppress(OSError):
                    _recover(path)
                return _read_checked(folder, wanted, kind)
    except OSError as problem:
        raise EnvironmentProblem(
            f"Could not read {folder}: {problem.strerror or problem}. Give a folder that can be read."
        ) from problem


def _read_checked(folder: Path, names: Iterable[str], kind: Kind) -> dict[str, bytes]:
    if not folder.is_dir():
        raise ModelError(f"There is no {kind.name} folder {folder}. Give a folder that was saved as one.")
    sums = _read_seal(folder, kind)
    files = {}
    for name in names:
        path = folder / name
        if name not in sums or not path.is_file() or path.stat().st_size > LARGEST:
            raise ModelError(
                f"{path} is missing or not a file of a {kind.name}. Copy the {kind.name} again from where it was saved."
            )
        files[name] = path.read_bytes()
        if hashlib.sha256(files[name]).hexdigest() != sums[name]:
            raise ModelError(
                f"{path} is damaged: its content does not match its checksum. "
                f"Copy the {kind.name} again from where it was saved."
            )
    return files


def seal_of(folder: Path) -> str | None:
    """The hash of a folder's checksums, by which it is known again; None where it has none."""
    try:
        return hashlib.sha256((folder / SEAL).read_bytes()).hexdigest()
    except OSError:
        return None


def require_place(path: Path, kind: Kind) -> None:
    """Refuse a place where a folder may not go: one that holds something else than such a folder."""
    if not path.is_symlink() and not path.exists():
        return
    if path.is_symlink() or not path.is_dir():
        raise InputError(f"{path} is there already and is not a folder. Give a new folder.")
    try:
        found = sorted(one.name for one in path.iterdir())
        ours = {SEAL, *_read_seal(path, kind)} if found else set()
    except OSError as problem:
        raise EnvironmentProblem(
            f"Could not read {path}: {problem.strerror or problem}. Give a new folder."
        ) from problem
    except ManyMetricsError:
        raise InputError(
            f"{path} is there already and is not a {kind.name}. Give a new folder, or move what is in it."
        ) from None
    if others := [name for name in found if name not in ours]:
        raise InputError(
            f"{path} holds {others[0]!r} beside a {kind.name}, which saving over it would lose. "
            "Move that file, or give a new folder."
        )


def _seal(files: Mapping[str, bytes], kind: Kind) -> bytes:
    sums = {name: hashlib.sha256(payload).hexdigest() for name, payload in sorted(files.items())}
    return json.dumps({"library": LIBRARY, "kind": kind.name, "format": kind.format, "files": sums}, indent=1).encode()


def _read_seal(folder: Path, kind: Kind) -> dict[str, str]:
    """The checksums of a folder of this kind and of the format that is read here."""
    path = folder / SEAL
    if not path.is_file() or path.stat().st_size > LARGEST_SEAL:
        raise ModelError(f"{folder} is not a saved {kind.name}: it has no {SEAL}. Give a folder that was saved as one.")
    try:
        said: Any = json.loads(path.read_text(encoding="utf-8"))
        whose = {name: said.get(name) for name in ("library", "kind", "format")}
        sums = {str(name): str(digest) for name, digest in said.get("files", {}).items()}
    except (ValueError, AttributeError, RecursionError) as problem:
        raise ModelError(
            f"{path} is damaged. Copy the {kind.name} again from where it was saved."
        ) from problem  # fmt: skip
    if whose["library"] is not None and (whose["library"], whose["kind"]) != (LIBRARY, kind.name):
        raise ModelError(f"{folder} is not a {kind.name} of manymetrics. Give another folder.")
    number = whose["format"] if whose["library"] is not None else None  # older versions did not say whose a folder is
    if number != kind.format:
        newer = isinstance(number, int) and number > kind.format
        found = number if isinstance(number, int) else "of an older version"
        what = "Upgrade manymetrics to load it." if newer else kind.again
        raise ModelError(f"{folder} has the format {found}, and this version reads format {kind.format}. {what}")
    return sums


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One writer at a time among all processes and threads that write into a folder; others wait."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, OSError):  # a system or a network disk may know no such lock
            import fcntl

            handle = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f".{path.name}.{LIBRARY}-{what}")


def _exchange(new: Path, place: Path) -> None:
    """Let a new folder take its place; what was there before is beside it."""
    if not place.exists():
        new.rename(place)
    elif not _exchange_at_once(new, place):
        try:
            place.rename(_beside(place, "old"))
            new.rename(place)
        except BaseException:
            _recover(place)
            raise


def _exchange_at_once(new: Path, place: Path) -> bool:
    """Exchange two folders in one step; False where the system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    if rename(_HERE, os.fsencode(new), _HERE, os.fsencode(place), _EXCHANGE) == 0:
        return True
    problem = ctypes.get_errno()
    if problem in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM):
        return False
    raise OSError(problem, os.strerror(problem))


def _recover(path: Path) -> None:
    """Move an old folder back that was moved aside, where nothing took its place."""
    if path.name and not path.exists() and (_beside(path, "old") / SEAL).is_file():
        _beside(path, "old").rename(path)


def _remove_left_overs(path: Path) -> None:
    """Remove what is beside a place: a folder that never took it, and one that another took it from."""
    for folder in (_beside(path, "new"), *([_beside(path, "old")] if path.exists() else [])):
        if folder.is_dir() and not folder.is_symlink():
            (folder / SEAL).unlink(missing_ok=True)  # first, so that half a folder is never moved back
            shutil.rmtree(folder)
