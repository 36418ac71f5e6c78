"""Bodies that are too large, malformed or hostile: refused with a sentence, and nothing of them comes back."""

import json
from dataclasses import replace

import pytest
from starlette.testclient import TestClient
from tests.service.conftest import EXAMPLES

from manymetrics.service.api import create_app

CANARY = "canary4711"


@pytest.fixture
def database_url(tmp_path):
    return f"sqlite:///{tmp_path}/service.db"  # what is read before the database is the same on both


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
        (b'{"name": "a", "reject": NaN}', 400),
        (b'{"name": "a", "reject": Infinity}', 400),
        (b'{"name": "a", "reject": ' + b"9" * 5000 + b"}", 400),
        (b"[" * 100_000, 400),
        (b'{"a":' * 50 + b"1" + b"}" * 50, 400),
        (b"[]", 422),
        (b'"text"', 422),
        (b"null", 422),
        (written(name="\ud800").encode(), 422),
        (written(name=CANARY + "\ud800").encode(), 422),
        (written(name="").encode(), 422),
        (written(name=" ").encode(), 422),
        (written(name="x" * 300).encode(), 422),
        (written(reject=2).encode(), 422),
        (written(reject="0.5").encode(), 422),
        (written(**{CANARY: 1}).encode(), 422),
        (written(examples=[]).encode(), 422),
        (written(examples=EXAMPLES[:3]).encode(), 422),
        (written(examples=[*EXAMPLES, {"text": "", "label": "lamp"}]).encode(), 422),
        (written(examples=[*EXAMPLES, {"text": "  \t", "label": "lamp"}]).encode(), 422),
        (written(examples=[*EXAMPLES, {"text": "a\0b", "label": "lamp"}]).encode(), 422),
        (written(examples=[*EXAMPLES, {"text": "a", "label": "b\0"}]).encode(), 422),
        (written(examples=[*EXAMPLES, {"text": CANARY * 2000, "label": "lamp"}]).encode(), 422),
        (written(examples=[*EXAMPLES, {"text": "a", "label": CANARY * 100}]).encode(), 422),
        (written(examples=[*EXAMPLES, {"text": "a", "label": 7}]).encode(), 422),
        (written(examples=[*EXAMPLES, CANARY]).encode(), 422),
    ],
)
def test_a_body_that_cannot_be_used_is_refused_and_not_repeated(client, body, status):
    found = send(client, body)
    assert found.status_code == status
    assert found.headers["content-type"] == "application/problem+json"
    told = found.json()
    assert told["status"] == status
    assert set(told) <= {"type", "title", "status", "detail", "errors"}
    assert CANARY not in found.text
    assert "Traceback" not in found.text


def test_bodies_are_bounded_whether_their_length_is_told_or_not(settings):
    app = create_app(replace(settings, most_body_bytes=1000))
    service = app.state.service
    key = service.tenants.create_key(service.tenants.create("acme").id)
    client = TestClient(app, headers={"Authorization": f"Bearer {key}"})
    large = written(name="x" * 2000).encode()
    assert send(client, large).status_code == 413
    assert send(client, iter([large[:600], large[600:]])).status_code == 413
    assert send(client, written().encode()).status_code == 201
    service.stop()


def test_a_body_that_is_no_json_or_is_compressed_is_refused(client):
    assert client.post("/v1/classifiers", content=written(), headers={"Content-Type": "text/plain"}).status_code == 415
    assert client.post("/v1/classifiers", data={"name": "a"}).status_code == 415
    assert send(client, b"\x1f\x8b", **{"Content-Encoding": "gzip"}).status_code == 415


def test_a_request_has_a_bounded_number_of_texts_and_a_classifier_of_examples(settings):
    app = create_app(replace(settings, most_texts=3, most_examples=7))
    service = app.state.service
    key = service.tenants.create_key(service.tenants.create("acme").id)
    client = TestClient(app, headers={"Authorization": f"Bearer {key}"})
    one = send(client, written().encode()).json()["id"]
    assert client.post(f"/v1/classifiers/{one}/predictions", json={"texts": ["a"] * 3}).status_code == 200
    refused = client.post(f"/v1/classifiers/{one}/predictions", json={"texts": ["a"] * 4})
    assert (refused.status_code, refused.json()["detail"]) == (422, "A request has at most 3 texts. Send several.")
    more = [{"text": f"lamp {number}", "label": "lamp"} for number in range(2)]
    refused = client.post(f"/v1/classifiers/{one}/examples", json={"add": more})
    assert (refused.status_code, refused.json()["detail"]) == (422, "A classifier has at most 7 examples. Give fewer.")
    service.stop()


def test_texts_of_any_script_come_back_as_they_were(client):
    texts = [
        "ação 日本語 العربية",
        "👩‍👩‍👧 e\u0301",
        "<script>alert(1)</script>",
        "' OR 1=1; --",
        "\u202eabc",
        "a\nb\tc",
    ]
    examples = [{"text": text, "label": f"l{place % 2}"} for place, text in enumerate(texts)]
    made = send(client, json.dumps({"name": texts[0], "examples": examples})).json()
    assert made["name"] == texts[0]
    found = client.get(f"/v1/classifiers/{made['id']}/examples").json()["items"]
    assert [one["text"] for one in found] == texts


def test_a_log_line_has_no_text_and_no_key(client, caplog, service):
    caplog.set_level("INFO", logger="manymetrics.service")
    send(client, written(name=CANARY).encode())
    (told,) = [record.about for record in caplog.records if record.name.endswith("requests")]
    assert (told["status"], told["route"]) == (201, "/v1/classifiers")
    assert told["tenant"] == service.tenants.find("acme").id
    every = str([vars(record) for record in caplog.records])
    assert CANARY not in every
    assert client.headers["Authorization"].split("_")[-1] not in every
