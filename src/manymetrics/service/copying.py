"""All rows of one database -> another, in one transaction; both sides are counted and hashed."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, func, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

import manymetrics as mm
from manymetrics.service.database import Database, open_database
from manymetrics.service.records import Record

CHUNK = 1_000  # rows at once
LEFT = ("sessions",)  # who is signed in to the pages signs in again
TABLES = tuple(one for one in Record.metadata.sorted_tables if one.name not in LEFT)  # those referred to come first


@dataclass(frozen=True)
class Content:
    """How many rows a table has, and a hash of them that does not depend on their order."""

    rows: int
    sha256: str


Contents = Mapping[str, Content]  # by table


def move(source: str, target: str) -> Contents:
    """Copy everything from the database of one URL to the empty database of another; nothing is written meanwhile."""
    require_there(source)
    with (
        contextlib.closing(open_database(source)) as old,
        contextlib.closing(open_database(target)) as new,
        snapshot(old, writing=False) as rows,
    ):
        return copy_into(new, rows)


def require_there(url: str) -> None:
    """Refuse to read from a file that is not there, instead of making it."""
    with contextlib.suppress(ArgumentError):  # told of when the database is opened
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_file():
            raise mm.InputError("There is no database at this URL. Give the one that the service uses.")


@contextlib.contextmanager
def snapshot(database: Database, *, writing: bool = True) -> Iterator[Connection]:
    """A connection that sees the database as it is at one moment; others may go on writing, unless told otherwise."""
    with database.engine.connect() as connection:
        if database.is_sqlite:
            connection.execute(text("BEGIN" if writing else "BEGIN IMMEDIATE"))
        else:
            connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
        if not (writing or database.is_sqlite):
            for table in TABLES:
                connection.execute(text(f"LOCK TABLE {table.name} IN SHARE MODE"))
        yield connection
        connection.rollback()


def copy_into(target: Database, rows: Connection, *, then: Mapping[str, str] | None = None) -> Contents:
    """Copy all rows into an empty database, compare, and commit; `then` gives models another folder."""
    with target.write() as session:
        connection = session.connection()
        if any(_count(connection, table) for table in TABLES):
            raise mm.InputError("The database to be filled has rows already. Give an empty one.")
        for table in TABLES:
            for chunk in _chunks(rows, table):
                connection.execute(table.insert(), chunk)
        wanted = contents(rows)
        if contents(connection) != wanted:
            raise mm.DataError("The copy differs from the original, and was undone. Are the disks sound?")
        models = Record.metadata.tables["models"]
        for fingerprint, path in (then or {}).items():
            connection.execute(models.update().where(models.c.fingerprint == fingerprint).values(path=path))
    return wanted


def contents(connection: Connection) -> Contents:
    """What is in each table."""
    return {table.name: _content(connection, table) for table in TABLES}


def _content(connection: Connection, table: Table) -> Content:
    total = count = 0
    for chunk in _chunks(connection, table):
        for row in chunk:
            written = json.dumps(list(row.values()), sort_keys=True, default=_written)
            total += int.from_bytes(hashlib.sha256(written.encode()).digest(), "big")
            count += 1
    return Content(count, f"{total % 2**256:064x}")


def _chunks(connection: Connection, table: Table) -> Iterator[Sequence[dict[str, Any]]]:
    found = connection.execute(select(table).execution_options(yield_per=CHUNK))
    for part in found.mappings().partitions(CHUNK):
        yield [dict(row) for row in part]


def _count(connection: Connection, table: Table) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def _written(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    raise TypeError(f"a column of type {type(value).__name__}")
