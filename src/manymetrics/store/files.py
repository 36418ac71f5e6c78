"""Bytes -> disk and back, so that a file is there whole or not at all, and damage is noticed."""

import hashlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from manymetrics.errors import EnvironmentProblem, InputError

DIGEST = 32  # bytes of SHA-256


def write_atomically(path: Path, payload: bytes) -> None:
    """Write a file beside its place and move it there; a crash or a full disk leaves the old one as it was."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as file:
            file.write(payload)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        sync_folder(path.parent)
    except OSError as problem:
        beside.unlink(missing_ok=True)
        raise EnvironmentProblem(
            f"Could not write {path}: {problem.strerror or problem}. Make room or choose another folder; "
            "nothing that was there is lost."
        ) from problem


def require_place(path: Path, files: Iterable[str]) -> None:
    """Refuse a place where a folder of these files may not go: one that holds something else than such a folder."""
    ours = all((path / name).is_file() for name in files)
    if path.exists() and not ours and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{path} is there already and is not a model. Give a new folder, or move what is in it.")


def write_folder(path: Path, files: dict[str, bytes]) -> None:
    """Write a folder of files beside its place and move it there, where `require_place` allows it."""
    path = path.absolute()
    require_place(path, files)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    aside = path.with_name(f".{path.name}.{os.getpid()}.old")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        for name, payload in files.items():
            write_atomically(beside / name, payload)
        if path.exists():
            path.rename(aside)
        beside.rename(path)
        sync_folder(path.parent)
    except OSError as problem:
        if aside.exists() and not path.exists():
            aside.rename(path)
        raise EnvironmentProblem(
            f"Could not write {path}: {problem.strerror or problem}. Make room or choose another folder; "
            "what was there is there still."
        ) from problem
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        shutil.rmtree(aside, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Make a rename in the folder last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sealed(payload: bytes) -> bytes:
    """A payload behind its own checksum."""
    return hashlib.sha256(payload).digest() + payload


def read_checked(path: Path) -> bytes | None:
    """The payload of a sealed file, or None where it is missing or damaged."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    payload = raw[DIGEST:]
    return payload if hashlib.sha256(payload).digest() == raw[:DIGEST] else None
