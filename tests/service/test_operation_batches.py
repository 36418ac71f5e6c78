"""Questions that wait together are answered together, each with the predictions it would have got alone."""

import pytest

from manymetrics.service.domain.errors import NotFound
from manymetrics.service.domain.schemas import Labelled
from manymetrics.service.runtime.scheduler import WorkItem

TEXTS = ["lamp on now", "jazz again", "the lamp please", "another song", "on"]


@pytest.fixture
def make_caller(service):
    def make(name="acme"):
        return service.tenants.authenticate(service.tenants.create_key(service.tenants.create(name).id))

    return make


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


def test_questions_to_one_classifier_are_one_call_and_each_gets_its_own_answers(
    service, make_caller, make, monkeypatch
):
    caller, other_caller = make_caller("acme"), make_caller("other")
    first, second = make(caller, "lamp", "music"), make(other_caller, "jazz", "lamp", "song")
    asked = [(caller, first, TEXTS[:2]), (other_caller, second, TEXTS), (caller, first, TEXTS[2:])]
    questions = [(who.tenant, service.answering.question(who, which, texts)) for who, which, texts in asked]
    alone = [service.answers.submit(tenant, question).result() for tenant, question in questions]
    items = [WorkItem(tenant, question, 1) for tenant, question in questions]
    calls = []
    fitted = service.classifiers.fitted
    monkeypatch.setattr(service.classifiers, "fitted", lambda version: calls.append(version) or fitted(version))
    service.answering.answer_together(items)
    together = [item.result.result() for item in items]
    assert_same(together, alone)
    assert len(calls) == 2
    queued = [service.answers.submit(tenant, question) for tenant, question in questions]
    assert_same([result.result() for result in queued], alone)


def test_a_question_to_a_classifier_that_was_deleted_meanwhile_fails_alone(service, make_caller, make):
    caller = make_caller()
    first, second = make(caller, "lamp", "music"), make(caller, "lamp", "music")
    questions = [service.answering.question(caller, which, TEXTS) for which in (first, second, first)]
    items = [WorkItem(caller.tenant, question, 1) for question in questions]
    service.classifiers.delete(caller, second)
    service.cache.__init__(classifiers=10, examples=1000)
    service.answering.answer_together(items)
    assert len(items[0].result.result().items) == len(items[2].result.result().items) == len(TEXTS)
    with pytest.raises(NotFound):
        items[1].result.result()
