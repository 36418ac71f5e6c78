"""Backups carry every row and every model, between SQLite and PostgreSQL, and refuse what would do harm."""

import json
import shutil
import sqlite3

import pytest
from sqlalchemy import inspect
from starlette.testclient import TestClient
from tests.service.conftest import EXAMPLES, new_database, on_sqlite

import manymetrics as mm
from command_line import assert_refused, printed_json, run
from manymetrics.service.http import create_app
from manymetrics.service.settings import Settings
from manymetrics.service.storage.backup import NOT_COPIED, TABLES, back_up, restore
from manymetrics.service.storage.database import open_database
from manymetrics.service.storage.tables import Example

TEXTS = ["lamp on now", "jazz again"]


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request, tmp_path):
    return new_database(request, tmp_path / "another.db")


@pytest.fixture
def used(client, classifier):
    """A service in use: a classifier with three versions, one of them rolled back, and a kept answer."""
    path = f"/v1/classifiers/{classifier}"
    added = {"add": [{"text": "an umlaut ü and 語", "label": None}]}
    assert client.post(f"{path}/examples", json=added, headers={"Idempotency-Key": "once"}).status_code == 200
    assert client.post(f"{path}/rollback", json={"version": 1}).status_code == 200
    return classifier


def answers_of_running(client, classifier):
    path = f"/v1/classifiers/{classifier}"
    found = [client.get(f"{path}{rest}").json() for rest in ("", "/versions", "/examples", "/examples?version=2")]
    return [*found, client.post(f"{path}/predictions", json={"texts": TEXTS}).json()]


def test_a_backup_of_a_running_service_is_restored_with_all_it_knew(client, used, database_url, empty_url, tmp_path):
    before = answers_of_running(client, used)
    kept = back_up(database_url, tmp_path / "backup")
    assert (tmp_path / "backup").stat().st_mode & 0o077 == 0  # only its owner can read it
    client.delete(f"/v1/classifiers/{used}")
    assert restore(tmp_path / "backup", empty_url, models=tmp_path / "models") == kept
    with TestClient(create_app(Settings(database=empty_url)), headers=client.headers) as there:
        assert answers_of_running(there, used) == before
        live = there.app.state.service.models.live()
    assert live.folder == tmp_path / "models" / live.fingerprint
    assert kept["examples"].rows == len(EXAMPLES) + 1
    assert kept["replies"].rows == 1


def test_every_table_is_carried_except_who_is_signed_in(service):
    there = set(inspect(service.database.engine).get_table_names())
    assert there == {table.name for table in TABLES} | {*NOT_COPIED, "alembic_version"}


def test_a_copy_that_differs_is_undone(app, used, database_url, tmp_path, monkeypatch):
    target = f"sqlite:///{tmp_path}/target.db"
    back_up(database_url, tmp_path / "backup", models=False)
    monkeypatch.setattr("manymetrics.service.storage.backup.CHUNK", 2)
    seen = iter(range(100))
    monkeypatch.setattr("manymetrics.service.storage.backup.read_contents", lambda connection: next(seen))
    with pytest.raises(mm.DataError, match="differs"):
        restore(tmp_path / "backup", target)
    database = open_database(target)
    with database.read() as session:
        assert session.query(Example).count() == 0
    database.close()


def test_a_changed_or_partial_backup_is_refused(service, used, database_url, tmp_path):
    back_up(database_url, tmp_path / "backup", models=False)
    rows = tmp_path / "backup" / "service.db"
    content = bytearray(rows.read_bytes())
    content[-1] ^= 1
    rows.write_bytes(content)
    url = f"sqlite:///{tmp_path}/new.db"
    with pytest.raises(mm.DataError, match="do not match their hash"):
        restore(tmp_path / "backup", url)
    rows.unlink()
    for folder in (tmp_path / "backup", tmp_path):
        with pytest.raises(mm.InputError, match="no backup"):
            restore(folder, url)


def test_a_name_of_a_model_in_a_backup_is_no_way_out_of_its_folder(service, used, database_url, tmp_path):
    back_up(database_url, tmp_path / "backup", models=False)
    about = tmp_path / "backup" / "backup.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "models": ["../../outside"]}))
    with pytest.raises(mm.InputError, match="no backup"):
        restore(tmp_path / "backup", f"sqlite:///{tmp_path}/new.db", models=tmp_path / "models")


def test_a_backup_never_replaces_anything_and_fails_without_a_trace(service, used, database_url, tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(mm.InputError, match="already"):
        back_up(database_url, tmp_path / "there")
    with service.database.write() as session:
        session.connection().exec_driver_sql("UPDATE models SET path = 'gone'")
    with pytest.raises(mm.ModelError, match="no model folder"):
        back_up(database_url, tmp_path / "new")
    assert {path.name for path in tmp_path.iterdir()} <= {"there", "service.db"}


def test_a_database_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(mm.InputError, match="no database at this URL"):
        back_up(f"sqlite:///{tmp_path}/missing.db", tmp_path / "backup")
    assert list(tmp_path.iterdir()) == []


def test_the_commands_say_how_many_rows_were_carried(service, used, database_url, tmp_path):
    folder, target = tmp_path / "backup", f"sqlite:///{tmp_path}/restored.db"
    restoring = ("service", "restore", folder, "--models", tmp_path / "m", "--database", target)
    made = printed_json("service", "backup", folder, "--database", database_url)
    assert printed_json(*restoring) == made
    assert_refused(run(*restoring), "Give an empty one")


@on_sqlite
def test_a_damaged_sqlite_database_is_not_backed_up(service, used, database_url, tmp_path):
    damaged = tmp_path / "damaged.db"
    shutil.copy(database_url.removeprefix("sqlite:///"), damaged)
    with sqlite3.connect(damaged) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET rootpage = 3 WHERE name = 'examples_of_classifier'")
    connection.close()
    with pytest.raises(mm.DataError, match="damaged"):
        back_up(f"sqlite:///{damaged}", tmp_path / "backup")
    assert not (tmp_path / "backup").exists()
