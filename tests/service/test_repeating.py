"""Requests with an idempotency key are done once, pages follow one another, and changes do not overwrite others."""

import threading

import pytest
from tests.service.conftest import EXAMPLES

from manymetrics.service.values import Labelled

BODY = {"name": "home", "examples": EXAMPLES}


def test_a_repeated_request_is_done_once_and_answered_the_same(client):
    first = client.post("/v1/classifiers", json=BODY, headers={"Idempotency-Key": "one"})
    again = client.post("/v1/classifiers", json=BODY, headers={"Idempotency-Key": "one"})
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert "Idempotent-Replay" not in first.headers
    assert again.headers["Idempotent-Replay"] == "true"
    assert len(client.get("/v1/classifiers").json()["items"]) == 1


def test_a_key_that_was_used_for_something_else_is_a_conflict(client):
    client.post("/v1/classifiers", json=BODY, headers={"Idempotency-Key": "one"})
    other = client.post("/v1/classifiers", json={**BODY, "name": "other"}, headers={"Idempotency-Key": "one"})
    assert other.status_code == 409
    assert len(client.get("/v1/classifiers").json()["items"]) == 1


def test_repeated_changes_of_examples_and_roll_backs_make_one_version(client, classifier):
    added = {"add": [{"text": "move my meeting", "label": "meeting"}]}
    for path, body, version in (("examples", added, 2), ("rollback", {"version": 1}, 3)):
        for _ in range(3):
            named = {"Idempotency-Key": path}
            found = client.post(f"/v1/classifiers/{classifier}/{path}", json=body, headers=named)
            assert (found.status_code, found.json()["version"]) == (200, version)


def test_many_at_once_with_one_key_make_one_classifier(client):
    answers = []

    def send():
        found = client.post("/v1/classifiers", json=BODY, headers={"Idempotency-Key": "one"})
        answers.append((found.status_code, found.text))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(answers)) == 1
    assert answers[0][0] == 201
    assert len(client.get("/v1/classifiers").json()["items"]) == 1


def test_changes_that_come_at_once_are_all_kept(service, client, classifier):
    caller = service.tenants.authenticate(client.headers["Authorization"].removeprefix("Bearer "))
    failed = []

    def add(number):
        try:
            added = [Labelled(f"lamp number {number}", "lamp")]
            service.classifiers.change_examples(caller, classifier, add=added)
        except Exception as problem:
            failed.append(problem)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    found = service.classifiers.get(caller, classifier)
    assert (found.version, found.examples) == (5, len(EXAMPLES) + 4)


def test_a_change_meant_for_an_older_version_is_refused(client, classifier):
    tag = client.get(f"/v1/classifiers/{classifier}").headers["ETag"]
    assert client.patch(f"/v1/classifiers/{classifier}", json={"reject": 0.3}, headers={"If-Match": tag}).is_success
    late = client.patch(f"/v1/classifiers/{classifier}", json={"reject": 0.4}, headers={"If-Match": tag})
    assert late.status_code == 412
    assert client.get(f"/v1/classifiers/{classifier}").json()["reject"] == 0.3


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_pages_of_any_size_hold_every_item_once(client, classifier, limit):
    path, seen, cursor = f"/v1/classifiers/{classifier}/examples", [], None
    while True:
        page = client.get(path, params={"limit": limit} | ({"cursor": cursor} if cursor else {})).json()
        seen += [one["text"] for one in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == [one["text"] for one in EXAMPLES]


def test_a_cursor_that_is_none_is_refused(client):
    assert client.get("/v1/classifiers", params={"cursor": "!!"}).status_code == 422
