"""Reading, writing and migrating one database, the same way on SQLite and on PostgreSQL.

SQLite has one writer at a time: a lock in the process, `BEGIN IMMEDIATE` between processes. Its write-ahead log can
damage a database in versions before 3.51.3 (except 3.44.6 and 3.50.7), so these use a rollback journal. The journal
mode is set once, when the file is made, and every commit reaches the disk before it is acknowledged.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, OperationalError
from sqlalchemy.orm import Session, sessionmaker

import manymetrics as mm
from manymetrics.service.storage.tables import Record

MIGRATIONS = Path(__file__).parent / "migrations"
BUSY_SECONDS = 5
POOL_SIZE = 20  # connections to PostgreSQL
MIGRATION_LOCK = 7_190_418  # any number, the same for all processes on one PostgreSQL


def safe_journal(version: tuple[int, ...]) -> str:
    """The journal mode that cannot damage a database of this version of SQLite."""
    fixed = version >= (3, 51, 3) and version[:2] != (3, 52)
    backported = (3, 44, 6) <= version < (3, 45) or (3, 50, 7) <= version < (3, 51)
    return "WAL" if fixed or backported else "DELETE"


class Database:
    """Connections to one database, and its transactions; `with database.read() as session` changes nothing."""

    def __init__(self, url: str, *, must_exist: bool = False) -> None:
        self.url = _parse_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._write_lock = threading.Lock() if self.is_sqlite else contextlib.nullcontext()
        pool = {"pool_size": POOL_SIZE, "max_overflow": 0, "pool_pre_ping": True, "pool_timeout": BUSY_SECONDS}
        self.engine = (
            _sqlite_engine(self.url, must_exist=must_exist) if self.is_sqlite else create_engine(self.url, **pool)
        )
        self.read = sessionmaker(self.engine, expire_on_commit=False)

    @contextlib.contextmanager
    def write(self) -> Iterator[Session]:
        """A transaction that is committed when the block ends, or undone when it fails; one at a time on SQLite."""
        with self._write_lock, self.read() as session:
            if self.is_sqlite:
                session.execute(text("BEGIN IMMEDIATE"))
            yield session
            session.commit()

    def migrate(self) -> None:
        """Bring the tables to the form this version of the package knows; several processes may do so at once."""
        script = ScriptDirectory(str(MIGRATIONS))

        def steps(revision: Any, _: MigrationContext) -> Any:
            return script._upgrade_revs("head", revision)  # the call that alembic's own command makes

        with self.write() as session:
            if not self.is_sqlite:
                session.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
            context = MigrationContext.configure(session.connection(), opts={"fn": steps})
            if context.get_current_revision() is None:  # an empty database
                Record.metadata.create_all(session.connection())
                context.stamp(script, "head")
            with Operations.context(context):
                context.run_migrations()

    def is_migrated(self) -> bool:
        """Whether the tables have the form this version of the package knows."""
        with self.engine.connect() as connection:
            revision = MigrationContext.configure(connection).get_current_revision()
        return revision == ScriptDirectory(str(MIGRATIONS)).get_current_head()

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()


def open_database(url: str) -> Database:
    """The database of this URL, migrated."""
    try:
        database = Database(url)
        database.migrate()
    except (OSError, OperationalError, sqlite3.Error) as error:
        raise mm.EnvironmentProblem(
            f"The database cannot be opened ({type(error).__name__}). Check its URL, and that it runs and can be "
            "written to."
        ) from error
    return database


def _parse_url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise mm.InputError(
            "The URL of the database cannot be read. Give one such as sqlite:///service.db or "
            "postgresql://user@host/name."
        ) from None
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise mm.InputError("The database is neither SQLite nor PostgreSQL. Give a URL of one of these.")
    return parsed.set(drivername="postgresql+psycopg") if parsed.drivername == "postgresql" else parsed


def _sqlite_engine(url: URL, *, must_exist: bool) -> Engine:
    if not url.database or url.database == ":memory:":
        raise mm.InputError("A database in memory is lost with its process. Give a file: sqlite:///service.db.")
    if not Path(url.database).is_file():
        if must_exist:
            raise mm.InputError("There is no database at this URL. Give the one that the service uses.")
        Path(url.database).touch(mode=0o600)
        with contextlib.closing(sqlite3.connect(url.database, timeout=BUSY_SECONDS)) as connection:
            connection.execute(f"PRAGMA journal_mode = {safe_journal(sqlite3.sqlite_version_info)}")
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions begin where this module says so
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")

    return engine
