"""The database: its tables, its journal, its transactions, on SQLite and on PostgreSQL."""

import sqlite3

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text
from tests.service.conftest import in_threads

import manymetrics as mm
from manymetrics.service.domain.errors import Conflict, Invalid, NotFound
from manymetrics.service.domain.fitting import FittedClassifiers
from manymetrics.service.settings import Settings
from manymetrics.service.storage.database import open_database, safe_journal
from manymetrics.service.storage.tables import Record, Version


@pytest.mark.parametrize(
    ("mode", "versions"),
    [
        ("WAL", [(3, 44, 6), (3, 50, 7), (3, 51, 3), (3, 53, 0)]),
        ("DELETE", [(3, 44, 5), (3, 45, 0), (3, 51, 2), (3, 52, 0)]),
    ],
)
def test_a_write_ahead_log_is_used_where_sqlite_cannot_damage_the_database(mode, versions):
    assert {version: safe_journal(version) for version in versions} == dict.fromkeys(versions, mode)


def test_a_new_sqlite_file_has_the_safe_journal_and_is_its_owners_alone(tmp_path):
    open_database(f"sqlite:///{tmp_path}/a.db").close()
    with sqlite3.connect(tmp_path / "a.db") as connection:
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    assert mode == safe_journal(sqlite3.sqlite_version_info).lower()
    assert (tmp_path / "a.db").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("version", [None, "0001"])
def test_migrations_make_exactly_the_tables_of_the_records(database_url, version):
    database = open_database(database_url)
    if version is not None:  # as an earlier version left it
        with database.write() as session:
            session.execute(text("DROP TABLE sessions"))
            session.execute(text("UPDATE alembic_version SET version_num = '0001'"))
        assert not database.is_migrated()
        database.migrate()
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Record.metadata) == []
    assert database.is_migrated()
    database.close()


def test_several_processes_may_migrate_at_once(database_url):
    assert in_threads(lambda url: open_database(url).close(), [database_url] * 4) == []


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("nonsense", "The URL of the database cannot be read"),
        ("mysql://host/name", "neither SQLite nor PostgreSQL"),
        ("sqlite://", "A database in memory is lost"),
        ("sqlite:////no/such/folder/a.db", "The database cannot be opened"),
        ("postgresql://nobody@127.0.0.1:9/none", "The database cannot be opened"),
    ],
)
def test_a_database_that_cannot_be_used_is_refused_with_a_sentence(url, told):
    with pytest.raises(mm.ManyMetricsError, match=told):
        open_database(url)


def test_settings_are_read_from_the_environment_and_checked(monkeypatch):
    monkeypatch.setenv("MANYMETRICS_MOST_TEXTS", "7")
    monkeypatch.setenv("MANYMETRICS_HOSTS", "a.example, b.example")
    monkeypatch.setenv("MANYMETRICS_SECURE_COOKIES", "no")
    settings = Settings.from_environment(rate=3.0, database=None)
    assert (settings.most_texts, settings.hosts) == (7, ("a.example", "b.example"))
    assert (settings.secure_cookies, settings.rate) == (False, 3)
    monkeypatch.setenv("MANYMETRICS_MOST_TEXTS", "many")
    with pytest.raises(mm.InputError, match=r"most_texts .MANYMETRICS_MOST_TEXTS. is .many."):
        Settings.from_environment()
    monkeypatch.delenv("MANYMETRICS_MOST_TEXTS")
    with pytest.raises(mm.InputError, match=r"The setting rate .MANYMETRICS_RATE. is -1"):
        Settings.from_environment(rate=-1)


def test_the_cache_is_bounded_by_classifiers_and_by_examples(model):
    one = model.adapt(["a lamp", "a song"], ["lamp", "music"])
    for classifiers, examples, kept in ((3, 100, [2, 3, 4]), (100, 5, [3, 4])):
        settings = Settings(cached_classifiers=classifiers, cached_examples=examples)
        cache = FittedClassifiers(None, None, settings)
        for number in range(5):
            cache.put(("a", number), one)
        assert [cache.get(Version(classifier_id="a", number=number)) for number in kept] == [one] * len(kept)
        assert len(cache) == len(kept)


def test_tenants_and_keys_are_refused_with_a_sentence(service):
    tenants = service.tenants
    acme = tenants.create("acme").id
    refusals = [
        (Conflict, "There is a tenant of this name already", lambda: tenants.create("acme")),
        (Invalid, "The name of a tenant is empty", lambda: tenants.create(" ")),
        (Invalid, "There is no such limit", lambda: tenants.create("b", limits={"colour": 1})),
        (Invalid, "A key needs scopes out of read, write", lambda: tenants.create_key(acme, scopes=("all",))),
        (NotFound, "There is no such tenant", lambda: tenants.find("nobody")),
        (NotFound, "There is no such key", lambda: tenants.revoke("0" * 16)),
    ]
    for kind, message, act in refusals:
        with pytest.raises(kind, match=message):
            act()
