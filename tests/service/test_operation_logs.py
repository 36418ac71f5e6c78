"""The log is lines of JSON, and no text, label, name or key of a client is in it."""

import io
import json
import logging

import pytest

from manymetrics.service.runtime.monitoring import write_logs

CANARY = "canary-7f3a"  # in whatever a client sends


@pytest.fixture
def log():
    """What is logged meanwhile; the loggers are put back afterwards."""
    root = logging.getLogger()
    kept = root.handlers[:], root.level
    stream = io.StringIO()
    write_logs(stream, level=logging.DEBUG)
    yield stream
    root.handlers[:], root.level = kept


def lines(log):
    return [json.loads(line) for line in log.getvalue().splitlines()]


def test_a_request_is_one_line_that_says_who_what_and_how_long(client, log):
    client.get("/v1/classifiers")
    (line,) = [line for line in lines(log) if line.get("route") == "/v1/classifiers"]
    assert (line["method"], line["status"], line["level"], line["event"]) == ("GET", 200, "info", "request")
    assert line["tenant"].startswith("ten_")
    assert line["ms"] > 0


def test_no_text_label_name_or_key_of_a_client_is_logged(app, client, service, log, monkeypatch):
    example = [{"text": f"{CANARY} lamp", "label": f"{CANARY} one"}, {"text": "jazz", "label": f"{CANARY} two"}]
    made = client.post("/v1/classifiers", json={"name": CANARY, "examples": example})
    path = f"/v1/classifiers/{made.json()['id']}"
    client.post(f"{path}/predictions", json={"texts": [CANARY]})
    client.post(f"{path}/predictions", json={"texts": [CANARY], CANARY: CANARY})
    client.post(f"{path}/predictions", content=CANARY)
    client.get(f"/v1/classifiers/{CANARY}?cursor={CANARY}", headers={"Authorization": f"Bearer {CANARY}"})
    client.request(CANARY.upper(), f"/{CANARY}")

    def fail(*_, **__):
        raise RuntimeError(f"what failed is {CANARY}")

    monkeypatch.setattr(service.classifiers, "get", fail)
    assert client.get(path).status_code == 500
    secrets = [CANARY, client.headers["Authorization"].rpartition("_")[2]]
    assert len(lines(log)) > 6
    (failure,) = (line for line in lines(log) if line["level"] == "error")  # the kind and the place of what failed
    assert "RuntimeError" in failure["event"]
    assert "test_operation_logs.py" in failure["event"]
    assert [secret for secret in secrets if secret.casefold() in log.getvalue().casefold()] == []


def test_messages_of_other_libraries_are_left_out(log):
    logging.getLogger("sqlalchemy.pool").error("the parameters are %s", CANARY)
    try:
        raise ValueError(CANARY)
    except ValueError:
        logging.getLogger("asyncio").exception("a task failed with %s", CANARY)
    first, second = lines(log)
    assert "event" not in first
    assert (second["problem"], second["at"][0].split(":")[0]) == ("ValueError", "test_operation_logs.py")
    assert CANARY not in log.getvalue()


def test_a_line_break_cannot_forge_a_line(log):
    logging.getLogger("manymetrics.service").warning("one\n{}")
    assert len(log.getvalue().splitlines()) == 1
