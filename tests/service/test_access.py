"""Keys, scopes and tenants: whoever has no key gets nothing, and other tenants' things look like nothing at all."""

from datetime import timedelta
from functools import partial

import pytest
from starlette.testclient import TestClient
from tests.service.conftest import HOME, make_key

from manymetrics.service.domain.errors import Unauthenticated
from manymetrics.service.domain.tenants import Tenants
from manymetrics.service.http.auth import scopes_of
from manymetrics.service.storage.tables import Record

PUBLIC = {"/health", "/ready", "/docs", "/openapi.json"}  # the routes of the API that need no key
OPEN_PAGES = {"/sign-in", "/static/{name}"}  # pages that everybody sees
UNKNOWN = "cls_00000000000000000000000000000a"
BODIES = {
    "predictions": {"texts": ["a lamp"]},
    "explanations": {"text": "a lamp"},
    "evaluation": {},
    "suggestions": {"texts": ["a lamp"]},
    "rollback": {"version": 1},
    "examples": {"add": [{"text": "a", "label": "lamp"}]},
}


def routes_of(app):
    """(method, path) of every route that is answered by a function."""
    return sorted((method.upper(), path) for path, methods in app.openapi()["paths"].items() for method in methods)


def without_key(app):
    """Routes that nobody needs a key for."""
    routes = [(route.path, getattr(route, "dependant", None)) for route in every_route(app.routes)]
    return {path for path, dependant in routes if dependant is None or not list(scopes_of(dependant))}


def every_route(routes):
    for route in routes:
        inner = getattr(route, "effective_candidates", None) or getattr(route, "original_router", None)
        if inner is None:
            yield route
        else:
            yield from every_route(inner() if callable(inner) else inner.routes)


def address(path, classifier):
    return path.replace("{classifier_id}", classifier)


def body_for(method, path):
    if method == "PATCH":
        return {"name": "other"}
    return BODIES.get(path.rsplit("/", 1)[-1], HOME) if method == "POST" else None


def test_every_route_but_a_few_asks_for_a_key(app):
    assert without_key(app) == PUBLIC | OPEN_PAGES
    app.get("/v1/forgotten")(lambda: {})
    assert without_key(app) == PUBLIC | OPEN_PAGES | {"/v1/forgotten"}


def test_no_route_of_the_api_answers_without_a_good_key(app, service):
    expired, revoked, good = make_key(service, lifetime=timedelta(seconds=-1)), make_key(service), make_key(service)
    service.tenants.revoke(revoked.split("_")[1])
    bad_keys = [None, "", "mm_x", expired, revoked, good[:-1] + ("0" if good[-1] != "0" else "1"), good.upper()]
    client = TestClient(app)
    answers = set()
    for method, path in routes_of(app):
        if path in PUBLIC:
            continue
        for key in bad_keys:
            headers = {} if key is None else {"Authorization": f"Bearer {key}"}
            found = client.request(method, address(path, UNKNOWN), json=body_for(method, path), headers=headers)
            answers.add((found.status_code, found.text))
    assert len(answers) == 1
    assert answers.pop()[0] == 401


def test_a_key_is_good_in_its_header_and_nowhere_else(app, service):
    key, get = make_key(service), partial(TestClient(app).get, "/v1/classifiers")
    assert get(headers={"Authorization": f"Bearer {key}"}).status_code == 200
    assert get(headers={"Authorization": f"Basic {key}"}).status_code == 401
    assert get(params={"key": key, "api_key": key}).status_code == 401


def test_a_remembered_key_needs_no_database_until_it_is_revoked_or_expires(service):
    tenants, key = Tenants(service.database, remember=1000), make_key(service)
    assert tenants.remembered(key) is None
    assert tenants.authenticate(key) == tenants.remembered(key)
    tenants.revoke(key.split("_")[1])
    assert tenants.remembered(key) is None


def test_of_a_key_only_a_hash_is_kept(service):
    secret = make_key(service).split("_")[2]
    (stored,) = service.tenants.keys(service.tenants.find("acme").id)
    assert secret not in str(vars(stored))


def test_scopes_are_kept_to(make_client, classifier):
    reader = make_client(scopes=("read",))
    assert reader.get(f"/v1/classifiers/{classifier}").status_code == 200
    assert reader.delete(f"/v1/classifiers/{classifier}").status_code == 403
    assert reader.get("/metrics").status_code == 403
    assert make_client(scopes=("write",)).get("/v1/classifiers").status_code == 403
    assert make_client(scopes=("operate",)).get("/metrics").status_code == 200


def test_another_tenants_id_answers_as_an_unknown_one_on_every_route(app, client, classifier, make_client):
    other = make_client("other")
    tried = 0
    for method, path in routes_of(app):
        if "{" not in path:
            continue
        body = body_for(method, path)
        foreign = other.request(method, address(path, classifier), json=body)
        unknown = other.request(method, address(path, UNKNOWN), json=body)
        assert (foreign.status_code, foreign.content) == (unknown.status_code, unknown.content), path
        assert foreign.status_code == 404
        tried += 1
    assert tried >= 11
    assert client.get(f"/v1/classifiers/{classifier}").json()["version"] == 1
    assert other.get("/v1/classifiers").json() == {"items": [], "next": None}


def test_ids_of_examples_and_idempotency_keys_are_a_tenants_own(client, make_client):
    named = {"Idempotency-Key": "same"}
    classifiers = [one.post("/v1/classifiers", json=HOME, headers=named) for one in (client, make_client("other"))]
    first, second = (f"/v1/classifiers/{made.json()['id']}/examples" for made in classifiers)
    assert first != second
    example = client.get(first).json()["items"][0]["id"]
    for one in (example, "ex_00000000000000000000000000000a"):
        assert make_client("other").post(second, json={"remove": [one]}).status_code == 404


def test_deleting_a_tenant_leaves_nothing_of_it(service, client, caller, classifier):
    token = service.tenants.open_session(caller)
    service.tenants.delete(service.tenants.find("acme").id)
    with service.database.read() as session:
        counts = {name: session.execute(table.select()).all() for name, table in Record.metadata.tables.items()}
    assert {name for name, rows in counts.items() if rows} == {"models"}
    with pytest.raises(Unauthenticated, match="The session has ended"):
        service.tenants.find_session(token)
    assert client.get("/v1/classifiers").status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "service.example?x", "a#b", "a\\b", "", "user@service.example"])
def test_a_host_that_is_not_the_services_is_refused(make_app, host):
    client = TestClient(make_app(hosts=("service.example",)))
    assert client.get("/health", headers={"Host": "service.example"}).status_code == 200
    assert client.get("/health", headers={"Host": host}).status_code == 400
