"""Backup and restore: all rows of a database and the models in use.

A backup is a folder:

    service.db       the rows, as an SQLite database, from whichever database they come
    models/          the models, each under its fingerprint
    backup.json      the rows of each table, and hashes

A backup is taken while the service runs and shows one moment. It can be restored into any empty database, SQLite or
PostgreSQL. Copies are counted and hashed on both sides before they are committed.
"""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC
from pathlib import Path

from sqlalchemy import Connection, MappingResult, Table, func, select, text

import manymetrics as mm
from manymetrics.service.storage.database import Database, open_database
from manymetrics.service.storage.tables import Model, Record, Version, now

ROWS, MODELS, MANIFEST = "service.db", "models", "backup.json"
FORMAT = 1
CHUNK = 1_000  # rows read at once
NOT_COPIED = ("sessions",)  # users of the pages sign in again
TABLES = tuple(table for table in Record.metadata.sorted_tables if table.name not in NOT_COPIED)  # referred to first
NO_BACKUP = "This folder is no backup, or not a complete one of this version. Give one that `service backup` has made."


@dataclass(frozen=True)
class TableContent:
    """How many rows a table has, and a hash of them that does not depend on their order."""

    rows: int
    sha256: str


Contents = Mapping[str, TableContent]  # by table


def back_up(url: str, folder: Path, *, models: bool = True) -> Contents:
    """Make a backup in a folder that does not exist yet; it gets its name when it is complete."""
    if folder.exists():
        raise mm.InputError("There is a folder or file of this name already. Give another for the backup.")
    with closing(Database(url, must_exist=True)) as database, _new_folder(folder) as part:
        if not database.is_migrated():
            raise mm.InputError("The database is of another version of the package. Back it up with that version.")
        _write_rows(database, part / ROWS)
        with closing(Database(f"sqlite:///{part / ROWS}")) as copy, _snapshot(copy) as rows:
            contents = read_contents(rows)
            saved = _save_models(copy, part / MODELS) if models else []
        manifest = {
            "format": FORMAT,
            "package": mm.__version__,
            "made_at": now().isoformat(),
            "models": saved,
            "rows_sha256": _file_hash(part / ROWS),
            "tables": {name: asdict(content) for name, content in contents.items()},
        }
        (part / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return contents


def restore(folder: Path, url: str, *, models: Path | None = None) -> Contents:
    """Fill an empty database with a backup; its models go to folders of their own under `models`."""
    rows_hash, names = _read_manifest(folder)
    if names and models is None:
        raise mm.InputError("This backup has models. Name the folder for them with --models.")
    if _file_hash(folder / ROWS) != rows_hash:
        raise mm.DataError("The rows of this backup do not match their hash: the file is damaged. Use another.")
    paths = {name: _copy_model(folder / MODELS / name, name, Path(models or ".") / name) for name in names}
    with tempfile.TemporaryDirectory() as temporary:
        copy = shutil.copyfile(folder / ROWS, Path(temporary) / ROWS)  # migrated there
        source, target = open_database(f"sqlite:///{copy}"), open_database(url)
        with closing(source), closing(target), _snapshot(source) as rows:
            return _copy_rows(rows, target, model_paths=paths)


def read_contents(connection: Connection) -> Contents:
    """The number and the hash of the rows of each table."""
    contents = {}
    for table in TABLES:
        total = count = 0
        for row in _rows(connection, table):
            line = json.dumps(list(row.values()), sort_keys=True, default=lambda time: time.astimezone(UTC).isoformat())
            total += int.from_bytes(hashlib.sha256(line.encode()).digest(), "big")
            count += 1
        contents[table.name] = TableContent(count, f"{total % 2**256:064x}")
    return contents


def _copy_rows(rows: Connection, target: Database, *, model_paths: Mapping[str, str]) -> Contents:
    """Copy all rows into an empty database, compare, and commit; `model_paths` gives models another folder."""
    with target.write() as session:
        connection = session.connection()
        if any(connection.scalar(select(func.count()).select_from(table)) for table in TABLES):
            raise mm.InputError("The database to be filled has rows already. Give an empty one.")
        for table in TABLES:
            for chunk in _rows(rows, table).partitions():
                connection.execute(table.insert(), [*map(dict, chunk)])
        contents = read_contents(rows)
        if read_contents(connection) != contents:
            raise mm.DataError("The copy differs from the original, and was undone. Are the disks sound?")
        for fingerprint, path in model_paths.items():
            session.get_one(Model, fingerprint).path = path
    return contents


def _rows(connection: Connection, table: Table) -> MappingResult:
    return connection.execute(select(table).execution_options(yield_per=CHUNK)).mappings()


@contextlib.contextmanager
def _snapshot(database: Database) -> Iterator[Connection]:
    """A connection that sees the database at one moment; others may write meanwhile."""
    with database.engine.connect() as connection:
        connection.execute(text("BEGIN" if database.is_sqlite else "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
        yield connection
        connection.rollback()


def _write_rows(database: Database, path: Path) -> None:
    """Copy all rows into a new SQLite file; from SQLite by its own backup API."""
    if not database.is_sqlite:
        with closing(open_database(f"sqlite:///{path}")) as target, _snapshot(database) as rows:
            _copy_rows(rows, target, model_paths={})
        return
    path.touch(mode=0o600)
    source_path = str(database.url.database)
    with closing(sqlite3.connect(source_path, timeout=60)) as source, closing(sqlite3.connect(path)) as file:
        source.backup(file)
        file.execute("PRAGMA journal_mode = DELETE")  # one file, whatever the mode of the original
        if file.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            raise mm.DataError("The database is damaged. Restore an earlier backup into a new one.")


@contextlib.contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A folder to be filled, which gets its name when that is done and is removed if it fails."""
    part = folder.absolute().parent / f".{folder.name}.{secrets.token_hex(4)}.part"
    try:
        part.mkdir(mode=0o700)
        yield part
        for path in [*part.rglob("*"), part]:
            _sync(path)
        part.rename(folder)
        _sync(folder.absolute().parent)
    except OSError as error:
        raise mm.EnvironmentProblem(f"The backup cannot be written: {error.strerror}. Give another folder.") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _save_models(database: Database, folder: Path) -> Sequence[str]:
    """Save every model that a version of a classifier needs, and the live one; gives their fingerprints."""
    with database.read() as session:
        needed = {*session.scalars(select(Version.model)), *session.scalars(Model.latest_live())}
        paths = {model.fingerprint: model.path for model in session.scalars(select(Model))}
    for fingerprint in needed:
        _copy_model(paths[fingerprint], fingerprint, folder / fingerprint)
    return sorted(needed)


def _copy_model(source: Path | str, fingerprint: str, target: Path) -> str:
    """Copy the model with this fingerprint to a folder; gives the path of the folder."""
    model = mm.load_model(source)
    if model.fingerprint != fingerprint:
        raise mm.DataError("The folder of a model that is in use holds another model. Put the right one back.")
    target.parent.mkdir(parents=True, exist_ok=True)
    model.save(target)
    return str(target.resolve())


def _read_manifest(folder: Path) -> tuple[str, list[str]]:
    """The hash of the rows, and the fingerprints of the models."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        rows_hash, models = str(manifest["rows_sha256"]), [str(name) for name in manifest["models"]]
        is_known = manifest["format"] == FORMAT
    except (OSError, ValueError, KeyError, TypeError):
        raise mm.InputError(NO_BACKUP) from None
    if not is_known or not all(map(str.isalnum, models)) or not (folder / ROWS).is_file():
        raise mm.InputError(NO_BACKUP)
    return rows_hash, models


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
