"""A service on a database of its own, with two tenants; the same tests run on SQLite and on PostgreSQL."""

import pytest
from starlette.testclient import TestClient
from tests.service.postgres import Postgres, missing

from manymetrics.service.api import create_app
from manymetrics.service.settings import Settings

EXAMPLES = [
    {"text": "turn on the lamp", "label": "lamp"},
    {"text": "lamp on please", "label": "lamp"},
    {"text": "switch the lamp on now", "label": "lamp"},
    {"text": "play some jazz", "label": "music"},
    {"text": "put on music", "label": "music"},
    {"text": "start the song again", "label": "music"},
]


@pytest.fixture(scope="session")
def model_folder(make_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "model"
    make_model().save(folder)
    return folder


@pytest.fixture(scope="session")
def postgres():
    if missing():
        pytest.skip(missing())
    server = Postgres()
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/service.db"
    return request.getfixturevalue("postgres").new_database()


@pytest.fixture
def settings(database_url, model_folder):
    return Settings(database=database_url, model=model_folder, remember_keys=0, model_check=0, secure_cookies=False)


@pytest.fixture
def app(settings):
    app = create_app(settings)
    yield app
    app.state.service.stop()


@pytest.fixture
def service(app):
    return app.state.service


@pytest.fixture
def make_client(app, service):
    """A client of a tenant of this name; the tenant is made where it is not there."""

    def make(name="acme", scopes=("read", "write")):
        known = {tenant.name: tenant.id for tenant in service.tenants.list()}
        tenant = known.get(name) or service.tenants.create(name).id
        key = service.tenants.create_key(tenant, scopes=scopes)
        return TestClient(app, headers={"Authorization": f"Bearer {key}"}, raise_server_exceptions=False)

    return make


@pytest.fixture
def client(make_client):
    return make_client()


@pytest.fixture
def classifier(client):
    """The id of a classifier of the tenant acme."""
    return client.post("/v1/classifiers", json={"name": "home", "examples": EXAMPLES}).json()["id"]
