"""Backups: a folder with all rows, every model that is in use, and hashes of both.

    service.db       the rows, as an SQLite database, whichever database they come from
    models/          the models, each under its fingerprint
    backup.json      what there is: the rows of each table, and hashes

A backup is taken while the service runs, and shows one moment. It is restored into any empty database, so that it is a
way from SQLite to PostgreSQL and back as well.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import select

import manymetrics as mm
from manymetrics.service.copying import Contents, contents, copy_into, require_there, snapshot
from manymetrics.service.database import Database, open_database
from manymetrics.service.records import Model, Version, now

ROWS, MODELS, ABOUT = "service.db", "models", "backup.json"
FORMAT = 1
ANOTHER_VERSION = "The database has the form of another version of the package. Use that version to back it up."
NO_BACKUP = "This folder is no backup, or not a whole one. Give one that `manymetrics service backup` has made."
DAMAGED = "The rows of this backup do not match their hash: the file was changed or damaged. Use another backup."


def back_up(url: str, folder: Path, *, models: bool = True) -> Contents:
    """Make a backup in a folder that is not there yet; it appears there when it is whole."""
    if folder.exists():
        raise mm.InputError("There is a folder or file of this name already. Give another for the backup.")
    require_there(url)
    with contextlib.closing(Database(url)) as database, _beside(folder) as made:
        if not database.is_migrated():
            raise mm.InputError(ANOTHER_VERSION)
        _copy_rows(database, made / ROWS)
        with contextlib.closing(Database(f"sqlite:///{made / ROWS}")) as copy, snapshot(copy) as rows:
            found = contents(rows)
            kept = _copy_models(copy, made / MODELS) if models else []
        about = {
            "format": FORMAT,
            "package": mm.__version__,
            "made_at": now().isoformat(),
            "models": kept,
            "rows_sha256": _hash(made / ROWS),
            "tables": {name: asdict(one) for name, one in found.items()},
        }
        (made / ABOUT).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return found


def restore(folder: Path, url: str, *, models: Path | None = None) -> Contents:
    """Fill an empty database with a backup; its models go to folders of their own under `models`."""
    about = _read_about(folder)
    if about["models"] and models is None:
        raise mm.InputError("This backup has models. Say with --models where they are to be kept.")
    if _hash(folder / ROWS) != about["rows_sha256"]:
        raise mm.DataError(DAMAGED)
    places = {one: str(_restore_model(folder / MODELS / one, Path(models or ".") / one)) for one in about["models"]}
    with tempfile.TemporaryDirectory() as place:
        copied = shutil.copyfile(folder / ROWS, Path(place) / ROWS)  # brought to the form of this version there
        with (
            contextlib.closing(open_database(f"sqlite:///{copied}")) as rows,
            contextlib.closing(open_database(url)) as target,
            snapshot(rows) as source,
        ):
            return copy_into(target, source, then=places)


@contextlib.contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """A folder to be filled, which gets its name when that is done and is gone if it fails."""
    made = folder.absolute().parent / f".{folder.name}.{secrets.token_hex(4)}.part"
    try:
        made.mkdir(mode=0o700)
        yield made
        for path in [*made.rglob("*"), made]:
            _sync(path)
        made.rename(folder)
        _sync(folder.absolute().parent)
    except OSError as problem:
        raise mm.EnvironmentProblem(f"The backup cannot be written: {problem.strerror}. Give another place.") from None
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _copy_rows(database: Database, path: Path) -> None:
    """All rows into a new SQLite file; the API for backups is asked where they come from SQLite."""
    if database.is_sqlite:
        path.touch(mode=0o600)
        with (
            contextlib.closing(sqlite3.connect(str(database.url.database), timeout=60)) as source,
            contextlib.closing(sqlite3.connect(path)) as target,
        ):
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")  # one file, whatever the mode of the original
            if target.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
                raise mm.DataError("The database is damaged. Restore an earlier backup into a new one.")
        return
    with contextlib.closing(open_database(f"sqlite:///{path}")) as target, snapshot(database) as rows:
        copy_into(target, rows)


def _copy_models(database: Database, folder: Path) -> Sequence[str]:
    """Save every model that a version of a classifier needs, and the live one."""
    with database.read() as session:
        used = set(session.scalars(select(Version.model).distinct()))
        known = {one.fingerprint: one for one in session.scalars(select(Model))}
    live = max((one for one in known.values() if one.live_at), key=lambda one: str(one.live_at), default=None)
    wanted = used | ({live.fingerprint} if live else set())
    for fingerprint in sorted(wanted):
        if fingerprint not in known:
            raise mm.DataError("A model that is in use is not registered. Back up --without-models.")
        _save_model(mm.load_model(known[fingerprint].path), fingerprint, folder / fingerprint)
    return sorted(wanted)


def _restore_model(saved: Path, place: Path) -> Path:
    """A model of a backup, in a place of its own; one that is there already stays."""
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        _save_model(mm.load_model(saved), saved.name, place)
    elif mm.load_model(place).fingerprint != saved.name:
        raise mm.InputError("The folder for the models holds another model. Give another with --models.")
    return place.resolve()


def _save_model(model: mm.MetricModel, fingerprint: str, place: Path) -> None:
    if model.fingerprint != fingerprint:
        raise mm.DataError("The folder of a model that is in use holds another model. Put the right one back.")
    place.parent.mkdir(exist_ok=True)
    model.save(place)


def _read_about(folder: Path) -> dict[str, Any]:
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        models = [str(one) for one in about["models"]]
        whole = all(one.isalnum() for one in models) and isinstance(about["rows_sha256"], str)
        known = about["format"] == FORMAT
    except (OSError, ValueError, KeyError, TypeError):
        raise mm.InputError(NO_BACKUP) from None
    if not known:
        raise mm.InputError("This backup was made by a newer version of the package. Use that one.")
    if not whole or not (folder / ROWS).is_file():
        raise mm.InputError(NO_BACKUP)
    return {**about, "models": models}


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
