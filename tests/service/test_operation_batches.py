"""Questions that wait together are answered together, each with what it would have got alone."""

import pytest

from manymetrics.service.problems import NotFound
from manymetrics.service.queue import Piece
from manymetrics.service.values import Labelled

TEXTS = ["lamp on now", "jazz again", "the lamp please", "another song", "on"]


@pytest.fixture
def caller(service):
    return service.tenants.authenticate(service.tenants.create_key(service.tenants.create("acme").id))


@pytest.fixture
def make(service, caller):
    def make(*labels):
        examples = [Labelled(f"{text} {label}", label) for label in labels for text in ("turn on the", "play some")]
        return service.classifiers.create(caller, name="home", examples=examples).id

    return make


def test_questions_to_one_classifier_are_one_call_and_each_gets_its_own_answers(service, caller, make, monkeypatch):
    one, other = make("lamp", "music"), make("jazz", "lamp", "song")
    asked = [(one, TEXTS[:2]), (other, TEXTS), (one, TEXTS[2:]), (other, TEXTS[:1])]
    alone = [service.answering.predict(caller, where, texts) for where, texts in asked]
    pieces = [Piece(caller.tenant, service.answering.question(caller, where, texts), 1) for where, texts in asked]
    calls = []
    fitted = service.classifiers.fitted
    monkeypatch.setattr(service.classifiers, "fitted", lambda version: calls.append(version) or fitted(version))
    service.answering.answer_together(pieces)
    found = [piece.result.result() for piece in pieces]
    assert [[one.label for one in answer.items] for answer in found] == [
        [one.label for one in it.items] for it in alone
    ]
    assert [one.probability for answer in found for one in answer.items] == pytest.approx(
        [one.probability for answer in alone for one in answer.items]
    )
    assert len(calls) == 2


def test_a_question_to_a_classifier_that_was_deleted_meanwhile_fails_alone(service, caller, make):
    one, other = make("lamp", "music"), make("lamp", "music")
    pieces = [Piece(caller.tenant, service.answering.question(caller, where, TEXTS), 1) for where in (one, other, one)]
    service.classifiers.delete(caller, other)
    service.cache.__init__(classifiers=10, examples=1000)
    service.answering.answer_together(pieces)
    assert len(pieces[0].result.result().items) == len(pieces[2].result.result().items) == len(TEXTS)
    with pytest.raises(NotFound):
        pieces[1].result.result()
