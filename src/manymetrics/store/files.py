"""Atomic writes, files that carry a checksum of their content, and folders of files that are replaced as a whole.

    folder/checksums.json     library, kind and format of the folder, and the SHA-256 of every other file in it

A folder is written beside its path. The old one is renamed, the new one takes its path, the old one is removed. If the
process ends between the two renames, the next reader or writer renames the old one back. Only a missing or empty
folder, or a complete one of the same kind without other files, is written to.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from manymetrics.errors import EnvironmentProblem, InputError, ModelError

DIGEST = 32  # bytes of SHA-256
TEMPORARY = re.compile(r"\..+\.\d+\.tmp")  # the name of a file that a killed process did not finish
NO_ROOM = "Make room or choose another folder; nothing that was there is lost."
LIBRARY, CHECKSUMS = "manymetrics", "checksums.json"
MAX_FILE_BYTES = 4 * 2**30
MAX_CHECKSUMS_BYTES = 2**20


@contextlib.contextmanager
def raise_os_error(action: str, path: Path, cure: str) -> Iterator[None]:
    """Raise errors of the operating system as `EnvironmentProblem`."""
    try:
        yield
    except OSError as problem:
        raise EnvironmentProblem(f"Could not {action} {path}: {problem.strerror or problem}. {cure}") from problem


def write_atomically(path: Path, payload: bytes) -> None:
    """Write a temporary file and rename it to `path`; after a crash or on a full disk the old file is unchanged."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with raise_os_error("write", path, NO_ROOM):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o644)
            with os.fdopen(handle, "wb") as file:
                file.write(payload)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            sync_folder(path.parent)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise


def remove_temporary_files(folder: Path) -> None:
    """Remove the temporary files of killed processes from a folder and its subfolders; links are not followed."""
    for parent, _, names in os.walk(folder, followlinks=False):
        for name in filter(TEMPORARY.fullmatch, names):
            (Path(parent) / name).unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that a rename in it survives a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def with_checksum(payload: bytes, name: str) -> bytes:
    """The payload after a checksum of `name` and payload."""
    return hashlib.sha256(name.encode() + b"\0" + payload).digest() + payload


def read_checked(path: Path, name: str) -> bytes | None:
    """The payload of a file with a checksum, or None if it is missing, damaged or was written with another name."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    return raw[DIGEST:] if with_checksum(raw[DIGEST:], name) == raw else None


@dataclass(frozen=True)
class Kind:
    """A kind of folder: its name in messages, and the format that this version writes and reads."""

    name: str
    format: int
    again: str  # what to do about a folder of another format


class _Checksums(msgspec.Struct):
    """The content of checksums.json; older versions wrote no library."""

    library: Any = None
    kind: Any = None
    format: Any = None
    files: dict[str, str] = {}


def write_folder(path: Path, files: Mapping[str, bytes], kind: Kind) -> None:
    """Write a folder of files, or replace it, if `check_output_folder` allows it."""
    path = path.absolute()
    checksums = {name: hashlib.sha256(payload).hexdigest() for name, payload in sorted(files.items())}
    content = {"library": LIBRARY, "kind": kind.name, "format": kind.format, "files": checksums}
    with raise_os_error("write", path, NO_ROOM):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path.parent):
            _recover(path)
            check_output_folder(path, kind)
            _remove_temporary_folders(path)
            try:
                new = _beside(path, "new")
                new.mkdir()
                for name, payload in {**files, CHECKSUMS: json.dumps(content, indent=1).encode()}.items():
                    write_atomically(new / name, payload)
                if path.exists():
                    path.rename(_beside(path, "old"))
                new.rename(path)
                with contextlib.suppress(OSError):  # not supported by some disks
                    sync_folder(path.parent)
            finally:
                _recover(path)
                with contextlib.suppress(OSError):
                    _remove_temporary_folders(path)


def read_folder(folder: Path, names: Iterable[str], kind: Kind) -> dict[str, bytes]:
    """These files of a folder; each must match its checksum."""
    wanted, path = list(names), folder.absolute()
    with raise_os_error("read", folder, "Give a folder that can be read."):
        try:
            return _read_files(folder, wanted, kind)
        except (ModelError, OSError):  # it may have been replaced meanwhile: try again while nobody writes
            with _locked(path.parent):
                with contextlib.suppress(OSError):
                    _recover(path)
                return _read_files(folder, wanted, kind)


def folder_fingerprint(folder: Path) -> str | None:
    """The hash of a folder's checksums, which changes with its content; None if it has none."""
    try:
        return hashlib.sha256((folder / CHECKSUMS).read_bytes()).hexdigest()
    except OSError:
        return None


def check_output_folder(path: Path, kind: Kind, *, replace: bool = True) -> None:
    """Refuse a path that holds anything but a folder of this kind; without `replace`, refuse that too."""
    if not path.is_symlink() and not path.exists():
        return
    if path.is_symlink() or not path.is_dir():
        raise InputError(f"{path} is there already and is not a folder. Give a new folder.")
    with raise_os_error("read", path, "Give a new folder."):
        names = sorted(entry.name for entry in path.iterdir())
        try:
            expected = {CHECKSUMS, *_read_checksums(path, kind)} if names else set()
        except ModelError:
            message = f"{path} is there already and is not a {kind.name}. Give a new folder, or move what is in it."
            raise InputError(message) from None
    if others := [name for name in names if name not in expected]:
        raise InputError(
            f"{path} holds {others[0]!r} beside a {kind.name}, which saving over it would lose. "
            "Move that file, or give a new folder."
        )
    if names and not replace:
        raise InputError(f"{path} holds a {kind.name} already. Add --replace to replace it, or give another folder.")


def _read_files(folder: Path, names: Iterable[str], kind: Kind) -> dict[str, bytes]:
    if not folder.is_dir():
        raise ModelError(f"There is no {kind.name} folder {folder}. Give a folder that was saved as one.")
    checksums = _read_checksums(folder, kind)
    cure = f"Copy the {kind.name} again from where it was saved."
    files = {}
    for name in names:
        path = folder / name
        if name not in checksums or not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
            raise ModelError(f"{path} is missing or not a file of a {kind.name}. {cure}")
        files[name] = path.read_bytes()
        if hashlib.sha256(files[name]).hexdigest() != checksums[name]:
            raise ModelError(f"{path} is damaged: its content does not match its checksum. {cure}")
    return files


def _read_checksums(folder: Path, kind: Kind) -> dict[str, str]:
    """The checksums of a folder of this kind and format."""
    path, cure = folder / CHECKSUMS, "Give a folder that was saved as one."
    if not path.is_file() or path.stat().st_size > MAX_CHECKSUMS_BYTES:
        raise ModelError(f"{folder} is not a saved {kind.name}: it has no {CHECKSUMS}. {cure}")
    try:
        header = msgspec.json.decode(path.read_bytes(), type=_Checksums)
    except (ValueError, RecursionError) as problem:
        raise ModelError(f"{path} is damaged. Copy the {kind.name} again from where it was saved.") from problem
    if header.library is not None and (header.library, header.kind) != (LIBRARY, kind.name):
        raise ModelError(f"{folder} is not a {kind.name} of manymetrics. Give another folder.")
    number = header.format if header.library is not None and isinstance(header.format, int) else None
    if number != kind.format:
        cure = "Upgrade manymetrics to load it." if number is not None and number > kind.format else kind.again
        version = "of an older version" if number is None else number
        raise ModelError(f"{folder} has the format {version}, and this version reads format {kind.format}. {cure}")
    return header.files


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait until no other process or thread writes into a folder, and lock it."""
    from filelock import lock_descriptor  # slow to load

    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # some systems and network disks have no such lock
            handle = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, handle)
            lock_descriptor(handle, poll_interval=0.01)
        yield


def _beside(path: Path, role: str) -> Path:
    return path.with_name(f".{path.name}.{LIBRARY}-{role}")


def _recover(path: Path) -> None:
    """Rename an old folder back if nothing took its path."""
    if path.name and not path.exists() and (_beside(path, "old") / CHECKSUMS).is_file():
        _beside(path, "old").rename(path)


def _remove_temporary_folders(path: Path) -> None:
    """Remove a new folder that was not finished, and an old one that was replaced."""
    for folder in (_beside(path, "new"), *([_beside(path, "old")] if path.exists() else [])):
        if folder.is_dir() and not folder.is_symlink():
            (folder / CHECKSUMS).unlink(missing_ok=True)  # first, so that an incomplete folder is never renamed back
            shutil.rmtree(folder)
