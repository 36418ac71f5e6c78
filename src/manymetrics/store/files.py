"""Bytes -> disk and back, so that a file is there whole or not at all, and damage is noticed."""

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from manymetrics.errors import EnvironmentProblem

DIGEST = 32  # bytes of SHA-256
LEFT_OVER = re.compile(r"\..+\.\d+\.tmp")  # what a process that was killed while it wrote a file leaves behind


def write_atomically(path: Path, payload: bytes) -> None:
    """Write a file beside its place and move it there; a crash or a full disk leaves the old one as it was."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o644)
        with os.fdopen(handle, "wb") as file:
            file.write(payload)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        sync_folder(path.parent)
    except OSError as problem:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise EnvironmentProblem(
            f"Could not write {path}: {problem.strerror or problem}. Make room or choose another folder; "
            "nothing that was there is lost."
        ) from problem


def remove_left_overs(folder: Path) -> None:
    """Remove what processes that were killed while they wrote files have left in a folder of ours; follows no link."""
    for place, _, names in os.walk(folder, followlinks=False):
        for name in names:
            if LEFT_OVER.fullmatch(name):
                (Path(place) / name).unlink(missing_ok=True)


@contextlib.contextmanager
def telling_of(folder: Path) -> Iterator[None]:
    """Say in a sentence what the system did not allow in a folder."""
    try:
        yield
    except OSError as problem:
        where = problem.filename if isinstance(problem.filename, str) else folder
        raise EnvironmentProblem(
            f"Could not read or change {where}: {problem.strerror or problem}. Mend the folder or its disk, and give "
            "the same command again; what is finished is kept."
        ) from problem


def sync_folder(folder: Path) -> None:
    """Make a rename in the folder last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sealed(payload: bytes, name: str) -> bytes:
    """A payload behind a checksum of itself and of the name it is kept under."""
    return hashlib.sha256(name.encode() + b"\0" + payload).digest() + payload


def read_sealed(path: Path, name: str) -> bytes | None:
    """The payload of a sealed file, or None where it is missing, damaged, or was sealed under another name."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    payload = raw[DIGEST:]
    return payload if hashlib.sha256(name.encode() + b"\0" + payload).digest() == raw[:DIGEST] else None
