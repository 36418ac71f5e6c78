"""Sessions of the pages: who gets in, for how long, and that no other site can act for them."""

from datetime import timedelta

import pytest
from sqlalchemy import select, update
from starlette.testclient import TestClient
from tests.service.pages import Visitor, hidden, words

from manymetrics.service.api import create_app
from manymetrics.service.records import now
from manymetrics.service.settings import Settings
from manymetrics.service.web import OPEN, ROUTERS
from manymetrics.service.web.sessions import MOST, PageSession, Sessions


@pytest.fixture
def key(service):
    return service.tenants.create_key(service.tenants.create("acme").id)


@pytest.fixture
def visitor(app, key):
    found = Visitor(app)
    found.sign_in(key)
    return found


def test_a_key_opens_the_list_of_classifiers(app, key):
    visitor = Visitor(app)
    assert visitor.get("/").url.path == "/sign-in"
    assert visitor.sign_in(key).url.path == "/classifiers"
    assert "There is no classifier yet." in words(visitor.last)
    assert visitor.get("/").url.path == "/classifiers"


@pytest.mark.parametrize("wrong", ["", "mm_0123", f"mm_{'0' * 16}_{'0' * 64}", "<script>"])
def test_what_is_no_key_opens_nothing_and_is_not_repeated(app, key, wrong):
    visitor = Visitor(app)
    answer = visitor.sign_in(wrong)
    assert answer.status_code == 401
    assert "This key opens nothing." in words(answer)
    assert "mm_0" not in answer.text
    assert visitor.get("/classifiers").url.path == "/sign-in"


def test_the_cookie_is_kept_from_scripts_and_from_other_sites(app, key, settings):
    def cookie_of(app, base):
        client = TestClient(app, base_url=base, follow_redirects=False)
        token = hidden(client.get("/sign-in").text, "csrf")
        answer = client.post("/sign-in", data={"key": key, "csrf": token})
        return next(
            one for one in answer.headers.get_list("set-cookie") if "-session=" in one and "Max-Age=0" not in one
        )

    plain = cookie_of(app, "http://testserver")
    assert all(part in plain for part in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"))
    assert "Domain" not in plain
    secure = create_app(Settings(database=settings.database, remember_keys=0))
    over_https = cookie_of(secure, "https://testserver")
    secure.state.service.stop()
    assert over_https.startswith("__Host-")
    assert "Secure" in over_https


def test_only_a_hash_of_the_token_is_kept(visitor, service):
    token = visitor.client.cookies["manymetrics-session"]
    with service.database.read() as session:
        kept = session.scalars(select(PageSession)).one()
    assert token not in (kept.token_hash, kept.key_id)
    assert len(kept.token_hash) == 64


def test_signing_out_ends_the_session_everywhere(app, visitor):
    token = visitor.client.cookies["manymetrics-session"]
    visitor.get("/classifiers")
    assert visitor.post("/sign-out").url.path == "/sign-in"
    again = TestClient(app, cookies={"manymetrics-session": token})
    assert again.get("/classifiers").url.path == "/sign-in"


def test_a_session_ends_with_its_time_and_with_its_key(app, service, key):
    public = key.split("_")[1]

    def gets_in(end):
        visitor = Visitor(app)
        visitor.sign_in(key)
        before = visitor.get("/classifiers").url.path
        end()
        return before, visitor.get("/classifiers").url.path

    def run_out():
        with service.database.write() as session:
            session.execute(update(PageSession).values(expires_at=now() - timedelta(seconds=1)))

    assert gets_in(run_out) == ("/classifiers", "/sign-in")
    assert gets_in(lambda: service.tenants.revoke(public)) == ("/classifiers", "/sign-in")


def test_a_tenant_that_is_deleted_is_signed_out(app, service, visitor):
    service.tenants.delete(service.tenants.find("acme").id)
    assert visitor.get("/classifiers").url.path == "/sign-in"
    with service.database.read() as session:
        assert session.scalars(select(PageSession)).all() == []


def test_a_key_has_a_bounded_number_of_sessions(service, key):
    sessions, caller = Sessions(service.database), service.tenants.authenticate(key)
    tokens = [sessions.open(caller) for _ in range(MOST + 3)]
    with service.database.read() as session:
        assert len(session.scalars(select(PageSession)).all()) == MOST
    assert sessions.find(tokens[-1]).tenant == caller.tenant


def test_signing_in_again_makes_another_token_and_ends_the_earlier_one(app, visitor, key):
    first = visitor.client.cookies["manymetrics-session"]
    visitor.sign_in(key)
    assert visitor.client.cookies["manymetrics-session"] != first
    assert TestClient(app, cookies={"manymetrics-session": first}).get("/classifiers").url.path == "/sign-in"


def test_no_form_is_taken_without_the_token_of_its_session(app, visitor, key):
    other = Visitor(app)
    other.sign_in(key)
    foreign = hidden(other.get("/classifiers/new").text, "csrf")
    visitor.get("/classifiers/new")
    sent = {"name": "x", "sample": "banking-new"}
    for token in (None, "", "0" * 64, foreign):
        answer = visitor.post("/classifiers", carry=False, csrf=token, **sent)
        assert answer.status_code == 403
        assert "The form was not sent from this page" in words(answer)
    assert "There is no classifier yet." in words(visitor.get("/classifiers"))


def test_no_form_is_taken_that_another_site_sends(visitor):
    visitor.get("/classifiers/new")
    fields = {"csrf": hidden(visitor.last.text, "csrf"), "sample": "banking-new"}
    answer = visitor.client.post("/classifiers", data=fields, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403


def test_the_form_to_sign_in_has_a_token_too(app, key):
    client = TestClient(app)
    assert client.post("/sign-in", data={"key": key}).status_code == 400  # without the cookie of the form
    client.get("/sign-in")
    assert client.post("/sign-in", data={"key": key, "csrf": "0" * 64}).status_code == 403


def test_pages_follow_the_scopes_of_the_key(app, service):
    tenant = service.tenants.create("acme").id
    seen = {}
    for scope in ("read", "write", "operate"):
        visitor = Visitor(app)
        visitor.sign_in(service.tenants.create_key(tenant, scopes=(scope,)))
        seen[scope] = [visitor.get(f"/{one}").status_code for one in ("classifiers", "classifiers/new", "operator")]
    assert seen == {"read": [200, 403, 403], "write": [403, 200, 403], "operate": [403, 403, 200]}


def test_a_key_that_only_operates_comes_to_the_operators_page(app, service):
    visitor = Visitor(app)
    key = service.tenants.create_key(service.tenants.create("ops").id, scopes=("operate",))
    assert visitor.sign_in(key).url.path == "/operator"


def test_every_page_but_those_to_sign_in_asks_for_a_session_and_a_scope():
    routes = [route for module in ROUTERS for route in module.router.routes]
    asked = {route.path: {getattr(one.call, "scope", None) for one in route.dependant.dependencies} for route in routes}
    assert {path for path, scopes in asked.items() if not scopes} == OPEN == {"/", "/sign-in", "/static/{name}"}
    assert len(asked) > 10
