"""Sessions of the pages: who can sign in, for how long, and that no other site can act for them."""

from datetime import timedelta

import pytest
from sqlalchemy import select, update
from starlette.testclient import TestClient
from tests.service.conftest import make_key
from tests.service.pages import LAMPS_AND_MUSIC, Visitor, hidden, words

from manymetrics.service.domain.tenants import MAX_SESSIONS
from manymetrics.service.http import create_app
from manymetrics.service.settings import Settings
from manymetrics.service.storage.tables import PageSession, now


@pytest.fixture
def key(service):
    return make_key(service)


@pytest.fixture
def visitor(app, key):
    visitor = Visitor(app)
    visitor.sign_in(key)
    return visitor


def session_token(visitor):
    return visitor.client.cookies["manymetrics-session"]


def is_signed_in(app, token):
    client = TestClient(app, cookies={"manymetrics-session": token})
    return client.get("/classifiers").url.path == "/classifiers"


def test_a_key_opens_the_list_of_classifiers(app, key):
    visitor = Visitor(app)
    assert visitor.get("/").url.path == "/sign-in"
    assert visitor.sign_in(key).url.path == "/classifiers"
    assert "There is no classifier yet." in words(visitor.last)
    assert visitor.get("/").url.path == "/classifiers"


@pytest.mark.parametrize("wrong", ["", f"mm_{'0' * 16}_{'0' * 64}", "<script>"])
def test_a_wrong_key_opens_nothing_and_is_not_repeated(app, key, wrong):
    visitor = Visitor(app)
    response = visitor.sign_in(wrong)
    assert response.status_code == 401
    assert "This key is not valid." in words(response)
    assert "mm_0" not in response.text
    assert visitor.get("/classifiers").url.path == "/sign-in"


@pytest.mark.parametrize(
    ("headers", "is_secure"),
    [
        ({"Host": "127.0.0.1:8000"}, False),
        ({"Host": "[::1]:8000"}, False),
        ({"Host": "127.0.0.1:8000", "X-Forwarded-Proto": "https"}, True),
        ({"Host": "manymetrics.example.org"}, True),
        ({"Host": "127.0.0.1.example.org"}, True),
    ],
)
def test_cookies_are_for_https_only_except_for_plain_http_on_the_same_machine(settings, key, headers, is_secure):
    app = create_app(Settings(database=settings.database, remember_keys=0))
    client = TestClient(app, headers=headers, follow_redirects=False)
    page = client.get("/sign-in")
    name, _, value = page.headers["set-cookie"].partition(";")[0].partition("=")
    fields = {"key": key, "csrf": hidden(page.text, "csrf")}
    response = client.post("/sign-in", data=fields, headers={"Cookie": f"{name}={value}"})
    app.state.service.stop()
    assert response.status_code == 303
    cookies = [page.headers["set-cookie"], *response.headers.get_list("set-cookie")]
    assert [cookie.startswith("__Host-manymetrics-session=") for cookie in cookies] == [is_secure] * 2
    assert ["; Secure" in cookie for cookie in cookies] == [is_secure] * 2
    assert value not in cookies[1]  # whoever set the cookie before the sign-in does not know the session
    assert all("; HttpOnly" in cookie and "; SameSite=strict" in cookie for cookie in cookies)
    assert all("; Path=/" in cookie and "Domain" not in cookie for cookie in cookies)
    assert [cookie.partition("Max-Age=")[2].partition(";")[0] for cookie in cookies] == ["43200"] * 2


def test_a_session_is_stored_as_a_hash_until_its_person_signs_out(app, visitor, service):
    token = session_token(visitor)
    with service.database.read() as session:
        row = session.scalars(select(PageSession)).one()
    assert token not in (row.token_hash, row.key_id)
    visitor.get("/classifiers")
    assert visitor.post("/sign-out").url.path == "/sign-in"
    assert not is_signed_in(app, token)


def test_a_session_ends_when_it_expires_and_when_its_key_is_revoked(app, service, key):
    def expire():
        with service.database.write() as session:
            session.execute(update(PageSession).values(expires_at=now() - timedelta(seconds=1)))

    for end in (expire, lambda: service.tenants.revoke(key.split("_")[1])):
        visitor = Visitor(app)
        visitor.sign_in(key)
        assert visitor.get("/classifiers").url.path == "/classifiers"
        end()
        assert visitor.get("/classifiers").url.path == "/sign-in"


def test_a_key_has_a_bounded_number_of_sessions(service, caller):
    tokens = [service.tenants.open_session(caller) for _ in range(MAX_SESSIONS + 3)]
    with service.database.read() as session:
        assert len(session.scalars(select(PageSession)).all()) == MAX_SESSIONS
    assert service.tenants.find_session(tokens[-1]).tenant == caller.tenant


def test_signing_in_again_replaces_the_session(app, visitor, key):
    first = session_token(visitor)
    visitor.sign_in(key)
    assert session_token(visitor) != first
    assert not is_signed_in(app, first)


def test_a_form_of_another_site_or_without_the_token_of_its_session_is_refused(app, visitor, key):
    other = Visitor(app)
    other.sign_in(key)
    foreign = hidden(other.get("/classifiers/new").text, "csrf")
    for token in (None, "", "0" * 64, foreign):
        response = visitor.post("/classifiers", carry=False, csrf=token, name="home", pasted=LAMPS_AND_MUSIC)
        assert response.status_code == 403
        assert "The form was not sent from this page" in words(response)
    fields = {"csrf": hidden(visitor.get("/classifiers/new").text, "csrf"), "name": "home", "pasted": LAMPS_AND_MUSIC}
    response = visitor.client.post("/classifiers", data=fields, headers={"Sec-Fetch-Site": "cross-site"})
    assert response.status_code == 403
    assert "There is no classifier yet." in words(visitor.get("/classifiers"))


def test_the_form_for_signing_in_has_a_token_too(app, key):
    client = TestClient(app)
    assert client.post("/sign-in", data={"key": key}).status_code == 400  # without the cookie of the form
    client.get("/sign-in")
    assert client.post("/sign-in", data={"key": key, "csrf": "0" * 64}).status_code == 403


def test_pages_require_the_scopes_of_the_key(app, service):
    statuses = {}
    for scope in ("read", "write", "operate"):
        visitor = Visitor(app)
        assert visitor.sign_in(make_key(service, scopes=(scope,))).url.path == "/classifiers"
        statuses[scope] = [visitor.get(f"/{page}").status_code for page in ("classifiers", "classifiers/new")]
    assert statuses == {"read": [200, 403], "write": [403, 200], "operate": [403, 403]}
