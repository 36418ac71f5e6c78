"""The database: its tables, its journal, its transactions, on SQLite and on PostgreSQL."""

import sqlite3
import threading

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import select

import manymetrics as mm
from manymetrics.service.assembly import Service
from manymetrics.service.cache import FittedCache
from manymetrics.service.database import Database, open_database, safe_journal
from manymetrics.service.problems import Conflict, Invalid, NotFound
from manymetrics.service.records import Record, Tenant
from manymetrics.service.settings import Settings
from manymetrics.service.tenants import new_id
from manymetrics.service.values import Labelled

SHOTS = [Labelled("turn on the lamp", "lamp"), Labelled("play some jazz", "music")]


@pytest.fixture
def database(database_url):
    found = open_database(database_url)
    yield found
    found.close()


@pytest.mark.parametrize(
    ("version", "mode"),
    [
        ((3, 40, 1), "DELETE"),
        ((3, 44, 5), "DELETE"),
        ((3, 44, 6), "WAL"),
        ((3, 45, 0), "DELETE"),
        ((3, 50, 6), "DELETE"),
        ((3, 50, 7), "WAL"),
        ((3, 51, 2), "DELETE"),
        ((3, 51, 3), "WAL"),
        ((3, 52, 0), "DELETE"),
        ((3, 53, 0), "WAL"),
        ((4, 0, 0), "WAL"),
    ],
)
def test_a_write_ahead_log_is_used_where_sqlite_cannot_damage_the_database(version, mode):
    assert safe_journal(version) == mode


def test_a_new_sqlite_file_has_the_safe_journal_and_is_its_owners_alone(tmp_path):
    open_database(f"sqlite:///{tmp_path}/a.db").close()
    with sqlite3.connect(tmp_path / "a.db") as connection:
        assert (
            connection.execute("PRAGMA journal_mode").fetchone()[0] == safe_journal(sqlite3.sqlite_version_info).lower()
        )
    assert (tmp_path / "a.db").stat().st_mode & 0o077 == 0


def test_migrations_make_exactly_the_tables_of_the_records(database):
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Record.metadata) == []
    assert database.is_migrated()


def test_several_processes_may_migrate_at_once(database_url):
    failed = []

    def migrate():
        try:
            open_database(database_url).close()
        except Exception as problem:
            failed.append(problem)

    threads = [threading.Thread(target=migrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_a_write_that_fails_leaves_nothing(database):
    def fail():
        with database.write() as session:
            session.add(Tenant(id=new_id("ten"), name="half", limits={}))
            session.flush()
            raise KeyError("in between")

    with pytest.raises(KeyError):
        fail()
    with database.read() as session:
        assert session.scalars(select(Tenant)).all() == []


def test_writes_of_many_threads_are_all_kept(database):
    def write(number):
        with database.write() as session:
            session.add(Tenant(id=new_id("ten"), name=f"tenant {number}", limits={}))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.read() as session:
        assert len(session.scalars(select(Tenant)).all()) == 20


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("nonsense", "The URL of the database cannot be read"),
        ("mysql://host/name", "neither SQLite nor PostgreSQL"),
        ("sqlite://", "A database in memory is lost"),
        ("sqlite:////no/such/folder/a.db", "The database file cannot be made"),
    ],
)
def test_a_database_that_cannot_be_used_is_refused_with_a_sentence(url, told):
    with pytest.raises(mm.ManyMetricsError, match=told):
        Database(url)


def test_a_server_that_does_not_answer_is_said_to_be_unreachable():
    with pytest.raises(mm.EnvironmentProblem, match="The database cannot be opened"):
        open_database("postgresql://nobody@127.0.0.1:9/none")


def test_settings_are_read_from_the_environment_and_checked(monkeypatch):
    monkeypatch.setenv("MANYMETRICS_MOST_TEXTS", "7")
    monkeypatch.setenv("MANYMETRICS_HOSTS", "a.example, b.example")
    monkeypatch.setenv("MANYMETRICS_SECURE_COOKIES", "no")
    found = Settings.from_environment(rate=3.0, database=None)
    assert (found.most_texts, found.hosts, found.secure_cookies, found.rate) == (
        7,
        ("a.example", "b.example"),
        False,
        3,
    )
    monkeypatch.setenv("MANYMETRICS_MOST_TEXTS", "many")
    with pytest.raises(mm.InputError, match="MANYMETRICS_MOST_TEXTS is not a whole number"):
        Settings.from_environment()
    with pytest.raises(mm.InputError, match="The setting rate is -1"):
        Settings(rate=-1)


def test_the_cache_is_bounded_by_classifiers_and_by_examples(model):
    one = model.adapt(["a lamp", "a song"], ["lamp", "music"])
    cache = FittedCache(classifiers=3, examples=100)
    for number in range(5):
        cache.keep(("a", number), one)
    assert len(cache) == 3
    cache = FittedCache(classifiers=100, examples=5)
    for number in range(5):
        cache.keep(("a", number), one)
    assert len(cache) == 2
    assert cache.get(("a", 4), lambda: pytest.fail("it is kept")) is one


def test_a_thousand_tenants_are_served_by_one_process_with_a_small_cache(settings):
    from dataclasses import replace

    service = Service(replace(settings, cached_classifiers=10))
    if not service.database.is_sqlite:
        service.stop()
        pytest.skip("the same on both, and slow")
    callers = []
    for number in range(1000):
        tenant = service.tenants.create(f"tenant {number}")
        if number % 100 == 0:
            caller = service.tenants.authenticate(service.tenants.create_key(tenant.id))
            callers.append((caller, service.classifiers.create(caller, name="x", examples=SHOTS * 2).id))
    for caller, one in callers * 2:
        assert service.answering.predict(caller, one, ["a lamp"]).items[0].label == "lamp"
    assert len(service.cache) == 10
    service.stop()


def test_tenants_and_keys_are_refused_with_a_sentence(service):
    service.tenants.create("acme")
    with pytest.raises(Conflict, match="There is a tenant of this name already"):
        service.tenants.create("acme")
    with pytest.raises(Invalid, match="The name of a tenant is empty"):
        service.tenants.create(" ")
    with pytest.raises(Invalid, match="There is no such limit"):
        service.tenants.create("b", limits={"colour": 1})
    with pytest.raises(Invalid, match="A key needs scopes out of read, write, operate"):
        service.tenants.create_key(service.tenants.find("acme").id, scopes=("all",))
    with pytest.raises(NotFound, match="There is no such tenant"):
        service.tenants.find("nobody")
    with pytest.raises(NotFound, match="There is no such key"):
        service.tenants.revoke("0" * 16)
