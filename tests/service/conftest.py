"""A service on a database of its own, with two tenants; the same tests run on SQLite and on PostgreSQL."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest
from starlette.testclient import TestClient
from tests.conftest import LAMPS, MUSIC
from tests.service.postgres import Postgres, missing

from manymetrics.service.http import create_app
from manymetrics.service.settings import Settings

TEXTS = {"lamp": LAMPS[:3], "music": MUSIC[:3]}
EXAMPLES = [{"text": text, "label": label} for label, texts in TEXTS.items() for text in texts]
HOME = {"name": "home", "examples": EXAMPLES}


@pytest.fixture(scope="session")
def postgres():
    if missing():
        pytest.skip(missing())
    server = Postgres()
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    return new_database(request, tmp_path / "service.db")


def new_database(request, path):
    """The URL of an empty database of the kind that is asked for."""
    is_sqlite = request.param == "sqlite"
    return f"sqlite:///{path}" if is_sqlite else request.getfixturevalue("postgres").new_database()


on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)  # what is the same on both


@pytest.fixture
def settings(database_url, model_folder):
    return Settings(database=database_url, model=model_folder, remember_keys=0, model_check=0, secure_cookies=False)


@pytest.fixture
def make_app(settings):
    """Makes an app with some settings changed; its service is stopped afterwards."""
    apps = []

    def make(**changes):
        apps.append(create_app(replace(settings, **changes)))
        return apps[-1]

    yield make
    for app in apps:
        app.state.service.stop()


@pytest.fixture
def app(make_app):
    return make_app()


@pytest.fixture
def service(app):
    return app.state.service


def make_key(service, name="acme", *, limits=None, **options):
    """A key of the tenant of this name, which is created if there is none."""
    ids = {tenant.name: tenant.id for tenant in service.tenants.list()}
    return service.tenants.create_key(ids.get(name) or service.tenants.create(name, limits=limits).id, **options)


def caller_of(service, name="acme"):
    """The owner of such a key, for calls without HTTP."""
    return service.tenants.authenticate(make_key(service, name))


def client_of(app, name="acme", *, scopes=("read", "write"), **limits):
    """A client of the tenant of this name."""
    key = make_key(app.state.service, name, scopes=scopes, limits=limits)
    return TestClient(app, headers={"Authorization": f"Bearer {key}"}, raise_server_exceptions=False)


@pytest.fixture
def make_client(app):
    return partial(client_of, app)


@pytest.fixture
def client(make_client):
    return make_client()


@pytest.fixture
def caller(service):
    return caller_of(service)


def create(client, *more, **options):
    """Create a classifier with the examples and some more; what the service says of it."""
    return client.post("/v1/classifiers", json={**HOME, "examples": [*EXAMPLES, *more], **options}).json()


@pytest.fixture
def classifier(client):
    """The id of a classifier of the tenant acme."""
    return create(client)["id"]


def in_threads(function, arguments):
    """Call a function with each of the arguments at the same time; gives the exceptions."""
    with ThreadPoolExecutor(len(arguments)) as pool:
        calls = [pool.submit(function, argument) for argument in arguments]
    return [call.exception() for call in calls if call.exception() is not None]
