"""Atomic writes, and files that carry a checksum of their content."""

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from manymetrics.errors import EnvironmentProblem

DIGEST = 32  # bytes of SHA-256
TEMPORARY = re.compile(r"\..+\.\d+\.tmp")  # the name of a file that a killed process did not finish
NO_ROOM = "Make room or choose another folder; nothing that was there is lost."


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
