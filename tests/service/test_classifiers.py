"""What a client does with classifiers, with known answers; questions that wait together are answered together."""

import pytest
from tests.service.conftest import caller_of

from manymetrics.service.domain.errors import NotFound
from manymetrics.service.domain.schemas import Labelled
from manymetrics.service.runtime.scheduler import WorkItem

TEXTS = ["lamp on now", "jazz again", "the lamp please", "another song", "on"]


def test_rolling_back_makes_a_version_like_the_earlier_one(client, classifier):
    asked = {"texts": ["play jazz", "lamp on"]}
    before = client.post(f"/v1/classifiers/{classifier}/predictions", json=asked).json()
    client.post(f"/v1/classifiers/{classifier}/examples", json={"add": [{"text": "play jazz", "label": "lamp"}]})
    changed = client.post(f"/v1/classifiers/{classifier}/predictions", json=asked).json()
    assert changed["items"] != before["items"]
    back = client.post(f"/v1/classifiers/{classifier}/rollback", json={"version": 1})
    assert back.json()["version"] == 3
    after = client.post(f"/v1/classifiers/{classifier}/predictions", json=asked).json()
    assert after["items"] == before["items"]
    versions = client.get(f"/v1/classifiers/{classifier}/versions").json()["items"]
    assert [(one["version"], one["reason"], one["current"]) for one in versions] == [
        (1, "created", False),
        (2, "examples", False),
        (3, "rollback", True),
    ]


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
