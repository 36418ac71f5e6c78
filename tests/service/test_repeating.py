"""Requests with an idempotency key are done once, pages follow one another, and changes do not overwrite others."""

import pytest
from tests.service.conftest import EXAMPLES, in_threads

from manymetrics.service.domain import classifiers
from manymetrics.service.domain.errors import RequestError
from manymetrics.service.domain.schemas import Labelled

BODY = {"name": "home", "examples": EXAMPLES}


def test_a_repeated_request_is_done_once_and_another_under_its_key_is_a_conflict(client):
    first = client.post("/v1/classifiers", json=BODY, headers={"Idempotency-Key": "one"})
    again = client.post("/v1/classifiers", json=BODY, headers={"Idempotency-Key": "one"})
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert "Idempotent-Replay" not in first.headers
    assert again.headers["Idempotent-Replay"] == "true"
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
    answers = set()

    def send(_):
        response = client.post("/v1/classifiers", json=BODY, headers={"Idempotency-Key": "one"})
        answers.add((response.status_code, response.text))

    assert in_threads(send, range(8)) == []
    assert [status for status, _ in answers] == [201]
    assert len(client.get("/v1/classifiers").json()["items"]) == 1


def test_changes_that_come_at_once_are_all_stored(service, caller, classifier):
    def add(number):
        service.classifiers.change_examples(caller, classifier, add=[Labelled(f"lamp number {number}", "lamp")])

    assert in_threads(add, range(4)) == []
    found = service.classifiers.get(caller, classifier)
    assert (found.version, found.examples) == (5, len(EXAMPLES) + 4)


@pytest.mark.parametrize("change", [{"reject": 0.3}, {"name": "house"}, {"shared": True}])
def test_a_change_meant_for_another_version_name_or_sharing_is_refused(client, classifier, change):
    path = f"/v1/classifiers/{classifier}"
    named = {"If-Match": client.get(path).headers["ETag"]}
    assert client.patch(path, json=change, headers=named).is_success
    assert client.get(path).headers["ETag"] != named["If-Match"]
    more = {"add": [{"text": "my meeting", "label": "meeting"}]}
    late = [
        client.patch(path, json={"shared": True}, headers=named),
        client.patch(path, json={"reject": 0.4}, headers=named),
        client.post(f"{path}/examples", json=more, headers=named),
        client.post(f"{path}/rollback", json={"version": 1}, headers=named),
    ]
    assert [one.status_code for one in late] == [412] * 4
    assert change.items() <= client.get(path).json().items()


def test_opting_out_while_a_change_for_the_state_before_is_fitted_is_not_undone(
    service, caller, classifier, monkeypatch
):
    service.classifiers.update(caller, classifier, values={"shared": True})
    tag = service.classifiers.get(caller, classifier).tag
    fit = classifiers.fit

    def opt_out_meanwhile(*given, **options):
        service.classifiers.update(caller, classifier, values={"shared": False})
        return fit(*given, **options)

    monkeypatch.setattr(classifiers, "fit", opt_out_meanwhile)
    with pytest.raises(RequestError, match="has changed since it was read"):
        service.classifiers.update(caller, classifier, values={"shared": True, "reject": 0.5}, if_tag=tag)
    assert not service.classifiers.get(caller, classifier).shared


@pytest.mark.parametrize("limit", [1, 4, 7])
def test_pages_of_any_size_hold_every_item_once(client, classifier, limit):
    path, page = f"/v1/classifiers/{classifier}/examples?limit={limit}", {"next": "a_0"}
    seen = []
    while page["next"]:
        page = client.get(f"{path}&cursor={page['next']}").json()
        seen += [one["text"] for one in page["items"]]
    assert seen == [one["text"] for one in EXAMPLES]
    assert client.get(f"{path}&cursor=!!").status_code == 422
