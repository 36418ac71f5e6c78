"""What a client does with classifiers: versions, questions that wait together, repeated requests, changes at once.

Requests with an idempotency key are done once, pages follow one another, and changes do not overwrite others.
"""

import pytest
from tests.service.conftest import EXAMPLES, HOME, caller_of, in_threads

from manymetrics.service.domain import classifiers
from manymetrics.service.domain.errors import NotFound, RequestError
from manymetrics.service.domain.schemas import Labelled
from manymetrics.service.runtime.scheduler import WorkItem

TEXTS = ["lamp on now", "jazz again", "the lamp please", "another song", "on"]


def test_rolling_back_makes_a_version_like_the_earlier_one(client, classifier):
    path = f"/v1/classifiers/{classifier}"

    def predicted():
        return client.post(f"{path}/predictions", json={"texts": ["play jazz", "lamp on"]}).json()["items"]

    before = predicted()
    client.post(f"{path}/examples", json={"add": [{"text": "play jazz", "label": "lamp"}]})
    assert predicted() != before
    assert client.post(f"{path}/rollback", json={"version": 1}).json()["version"] == 3
    assert predicted() == before
    expected = [(1, "created", False), (2, "examples", False), (3, "rollback", True)]
    versions = client.get(f"{path}/versions").json()["items"]
    assert [(one["version"], one["reason"], one["current"]) for one in versions] == expected


@pytest.fixture
def make(service):
    def make(caller, *labels):
        examples = [Labelled(f"{text} {label}", label) for label in labels for text in ("turn on the", "play some")]
        return service.classifiers.create(caller, name="home", examples=examples).id

    return make


def assert_same(answers, expected):
    first, second = ([item for predictions in given for item in predictions.items] for given in (answers, expected))
    assert [item.label for item in first] == [item.label for item in second]
    assert [item.probability for item in first] == pytest.approx([item.probability for item in second], abs=1e-6)


def test_questions_to_one_classifier_are_one_call_and_each_gets_its_own_answers(service, make, monkeypatch):
    caller, other_caller = caller_of(service), caller_of(service, "other")
    first, second = make(caller, "lamp", "music"), make(other_caller, "jazz", "lamp", "song")
    asked = [(caller, first, TEXTS[:2]), (other_caller, second, TEXTS), (caller, first, TEXTS[2:])]
    questions = [(who.tenant, service.answering.question(who, which, texts)) for who, which, texts in asked]
    alone = [service.answers.submit(tenant, question).result() for tenant, question in questions]
    items = [WorkItem(question, 1) for _, question in questions]
    calls = []
    fitted, get = service.classifiers.fitted, service.classifiers.fitted.get
    monkeypatch.setattr(fitted, "get", lambda version: calls.append(version) or get(version))
    service.answering.answer_together(items)
    together = [item.result.result() for item in items]
    assert_same(together, alone)
    assert len(calls) == 2
    queued = [service.answers.submit(tenant, question) for tenant, question in questions]
    assert_same([result.result() for result in queued], alone)


def test_a_question_to_a_classifier_that_was_deleted_meanwhile_fails_alone(service, caller, make):
    first, second = make(caller, "lamp", "music"), make(caller, "lamp", "music")
    questions = [service.answering.question(caller, which, TEXTS) for which in (first, second, first)]
    items = [WorkItem(question, 1) for question in questions]
    service.classifiers.delete(caller, second)
    service.classifiers.fitted.__init__(service.database, service.models, service.settings)
    service.answering.answer_together(items)
    assert len(items[0].result.result().items) == len(items[2].result.result().items) == len(TEXTS)
    with pytest.raises(NotFound):
        items[1].result.result()


def test_a_repeated_request_is_done_once_and_another_under_its_key_is_a_conflict(client):
    first = client.post("/v1/classifiers", json=HOME, headers={"Idempotency-Key": "one"})
    again = client.post("/v1/classifiers", json=HOME, headers={"Idempotency-Key": "one"})
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert "Idempotent-Replay" not in first.headers
    assert again.headers["Idempotent-Replay"] == "true"
    other = client.post("/v1/classifiers", json={**HOME, "name": "other"}, headers={"Idempotency-Key": "one"})
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
        response = client.post("/v1/classifiers", json=HOME, headers={"Idempotency-Key": "one"})
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


def test_opting_out_while_a_change_is_fitted_is_not_undone(service, caller, classifier, monkeypatch):
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
