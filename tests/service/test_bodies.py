"""Bodies that are too large, malformed or hostile: refused with a sentence, and nothing of them comes back."""

import asyncio
import json
import threading

import pytest
from starlette.testclient import TestClient
from tests.service.conftest import EXAMPLES, client_of, on_sqlite

from manymetrics.service.http.auth import StrictRequest, read_json

CANARY = "canary4711"
pytestmark = on_sqlite  # what is read before the database is the same on both


def send(client, body, **headers):
    return client.post("/v1/classifiers", content=body, headers={"Content-Type": "application/json", **headers})


def written(**fields):
    return json.dumps({"name": "home", "examples": EXAMPLES, **fields})


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b'{"name": "a", "name": "b"}', 400),
        (b'{"name": "a", "reject": NaN}', 422),
        (b'{"name": "a", "reject": ' + b"9" * 5000 + b"}", 400),
        (b"[" * 100_000, 400),
        (b'{"a":' * 50 + b"1" + b"}" * 50, 422),
        (b"[" + b"{}," * 200_000 + b"1]", 400),
        (b'"' + b'\\"' * 100_000, 400),
        (written(**{f"field {number}": 1 for number in range(200)}).encode(), 400),
        (b"null", 422),
        (written(name=CANARY + "\ud800").encode(), 422),
        (written(name=" ").encode(), 422),
        (written(name="x" * 300).encode(), 422),
        (written(reject="0.5").encode(), 422),
        (written(**{CANARY: 1}).encode(), 422),
        (written(examples=EXAMPLES[:3]).encode(), 422),
        (written(examples=[*EXAMPLES, {"text": "  \t", "label": "lamp"}]).encode(), 422),
        (written(examples=[*EXAMPLES, {"text": "a\0b", "label": "lamp"}]).encode(), 422),
        (written(examples=[*EXAMPLES, {"text": "a", "label": "b\0"}]).encode(), 422),
        (written(examples=[*EXAMPLES, {"text": CANARY * 2000, "label": "lamp"}]).encode(), 422),
        (written(examples=[*EXAMPLES, {"text": "a", "label": CANARY * 100}]).encode(), 422),
        (written(examples=[*EXAMPLES, CANARY]).encode(), 422),
    ],
)
def test_a_body_that_cannot_be_used_is_refused_and_not_repeated(client, body, status):
    response = send(client, body)
    assert response.status_code == response.json()["status"] == status
    assert response.headers["content-type"] == "application/problem+json"
    assert set(response.json()) <= {"type", "title", "status", "detail", "errors"}
    assert CANARY not in response.text
    assert "Traceback" not in response.text


def test_bodies_are_bounded_with_and_without_a_content_length(make_app):
    client = client_of(make_app(most_body_bytes=1000))
    large = written(name="x" * 2000).encode()
    assert send(client, large).status_code == 413
    assert send(client, iter([large[:600], large[600:]])).status_code == 413
    assert send(client, written().encode()).status_code == 201


async def status_of(app, method, path, receive, key=None):
    """The status of the response to a request whose body is received by a function."""
    headers, sent = {"host": "testserver", "content-type": "application/json"}, []
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b""}
    scope |= {"scheme": "http", "server": ("testserver", 80), "root_path": ""}
    scope["headers"] = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"]


@pytest.mark.parametrize("key", [None, "mm_x", f"mm_{'0' * 16}_{'0' * 64}"])
def test_no_byte_of_a_body_is_received_before_the_key_is_known(app, key):
    received = []

    async def receive():
        received.append(True)
        return {"type": "http.request", "body": b"[", "more_body": True}

    one = "/v1/classifiers/cls_0a"
    routes = [("POST", f"{one}/{what}") for what in ("examples", "predictions", "explanations", "rollback")]
    for method, path in [("POST", "/v1/classifiers"), ("PATCH", one), *routes]:
        assert asyncio.run(status_of(app, method, path, receive, key)) == 401
    assert received == []


@pytest.mark.parametrize(("size", "status", "in_worker"), [(2**17, 422, True), (20, 201, False)])
def test_a_large_body_is_parsed_in_a_worker_thread(client, monkeypatch, size, status, in_worker):
    parsing, receiving = [], []

    def read(body):
        parsing.append(threading.current_thread())
        return read_json(body)

    async def body(self, body=StrictRequest.body):
        receiving.append(threading.current_thread())
        return await body(self)

    monkeypatch.setattr("manymetrics.service.http.auth.read_json", read)
    monkeypatch.setattr(StrictRequest, "body", body)
    assert send(client, written(name="x" * size).encode()).status_code == status
    assert (parsing[0] is not receiving[0]) == in_worker


def test_the_form_to_sign_in_is_bounded_as_nobody_has_a_key_yet(app):
    client = TestClient(app)
    assert client.post("/sign-in", data={"key": "x" * 2**15}).status_code == 413
    form, chunks = {"Content-Type": "application/x-www-form-urlencoded"}, iter([b"key=", b"x" * 2**15])
    assert client.post("/sign-in", content=chunks, headers=form).status_code == 413
    assert client.post("/sign-in", data={"key": "x" * 100}).status_code == 400


def test_a_body_that_is_no_json_or_is_compressed_is_refused(client):
    assert client.post("/v1/classifiers", content=written(), headers={"Content-Type": "text/plain"}).status_code == 415
    assert client.post("/v1/classifiers", data={"name": "a"}).status_code == 415
    assert send(client, b"\x1f\x8b", **{"Content-Encoding": "gzip"}).status_code == 415


def test_a_request_has_a_bounded_number_of_texts_and_a_classifier_of_examples(make_app):
    client = client_of(make_app(most_texts=3, most_examples=7))
    path = f"/v1/classifiers/{send(client, written().encode()).json()['id']}"
    assert client.post(f"{path}/predictions", json={"texts": ["a"] * 3}).status_code == 200
    refused = client.post(f"{path}/predictions", json={"texts": ["a"] * 4})
    assert (refused.status_code, refused.json()["detail"]) == (422, "A request has at most 3 texts. Send several.")
    more = [{"text": f"lamp {number}", "label": "lamp"} for number in range(2)]
    refused = client.post(f"{path}/examples", json={"add": more})
    assert (refused.status_code, refused.json()["detail"]) == (422, "A classifier has at most 7 examples. Give fewer.")


def test_texts_of_any_script_come_back_as_they_were(client):
    texts = ["ação 日本語 العربية", "👩‍👩‍👧 e\u0301", "' OR 1=1; --", "\u202eabc", "a\nb\tc"]
    examples = [{"text": text, "label": f"l{number % 2}"} for number, text in enumerate(texts)]
    classifier = send(client, json.dumps({"name": texts[0], "examples": examples})).json()
    assert classifier["name"] == texts[0]
    items = client.get(f"/v1/classifiers/{classifier['id']}/examples").json()["items"]
    assert [item["text"] for item in items] == texts
