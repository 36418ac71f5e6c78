"""The client against a service that listens on a port, and against servers that fail."""

import http.client
import json
from unittest.mock import Mock

import pytest
from tests.service.conftest import make_key
from tests.service.server import listening

import manymetrics as mm

TEXTS = ["turn on the lamp", "lamp on please", "play some jazz", "put on music"]
LABELS = ["lamp", "lamp", "music", "music"]


@pytest.fixture
def remote(app, service):
    with listening(app) as url, mm.Client(url, make_key(service)) as client:
        yield client


def test_the_verbs_are_those_of_the_library(remote, model):
    ours = model.adapt(TEXTS, LABELS, ["asdf qwer"])
    theirs = remote.adapt(TEXTS, LABELS, ["asdf qwer"], name="home")
    asked = ["play jazz", "the lamp"]
    assert theirs.classes_ == list(ours.classes_)
    assert theirs.predict(asked) == list(ours.predict(asked)) == ["music", "lamp"]
    for found, own in zip(theirs.predict_proba(asked), ours.predict_proba(asked), strict=True):
        assert found == pytest.approx(list(own), abs=1e-6)
    answers = theirs.answer(asked, nearest=1)
    assert answers[0]["nearest"][0]["text"] == "play some jazz"
    scopes = [answer["scope"] for answer in answers]
    assert scopes == pytest.approx(list(ours.scope_proba(asked)), abs=1e-6)
    assert theirs.explain("play jazz")["label"] == ours.explain("play jazz").label
    theirs.add_examples(["move my meeting"], ["meeting"])
    ours.add_examples(["move my meeting"], ["meeting"])
    assert theirs.predict(["my meeting"]) == list(ours.predict(["my meeting"])) == ["meeting"]
    theirs.remove_examples(["move my meeting"])
    assert (theirs.classes_, theirs.about["version"]) == (["lamp", "music"], 3)
    assert theirs.roll_back(2).classes_ == ["lamp", "meeting", "music"]
    assert [one["version"] for one in theirs.versions()] == [1, 2, 3, 4]
    assert theirs.set_params(name="other", reject=0.2).about["reject"] == 0.2
    assert theirs.doctor()["estimate"]["tried"] == ours.doctor().tried
    assert theirs.score(["play music"], ["music"]) == 1.0
    assert [one["text"] for one in theirs.suggest(["a tune", "lamp"], 1)] == [
        ours.suggest(["a tune", "lamp"], 1)[0].text
    ]
    assert [one["id"] for one in remote.classifiers()] == [theirs.id]
    assert remote.classifier(theirs.id).about == theirs.about
    theirs.delete()
    with pytest.raises(mm.ServiceError, match="There is no such classifier") as refused:
        theirs.refresh()
    assert refused.value.status == 404


def test_more_texts_than_one_request_holds_are_sent_in_several(remote):
    classifier = remote.adapt(TEXTS, LABELS)
    assert classifier.predict(["lamp", "jazz"] * 400) == ["lamp", "music"] * 400


def test_what_cannot_be_used_is_said_before_anything_is_sent():
    client = mm.Client("http://127.0.0.1:9", "key")
    with pytest.raises(mm.DataError, match="Found 1 texts and 2 labels"):
        client.adapt(["a"], ["b", "c"])
    with pytest.raises(mm.DataError, match="Found one text where a list"):
        client.adapt("a", ["b"])
    with pytest.raises(mm.InputError, match="The URL of the service is not valid"):
        mm.Client("ftp://host", "key")
    with pytest.raises(mm.InputError, match="characters that are not part of any key"):
        mm.Client("http://host", "key\nHost: other")


@pytest.fixture
def connection(monkeypatch):
    """A connection whose responses are those of a list."""
    connection = Mock()
    monkeypatch.setattr(http.client, "HTTPConnection", lambda *_, **__: connection)
    return connection


def response(status, retry_after=""):
    answer = {"detail": "Not now."} if status >= 300 else {"id": "cls_1", "version": 1, "labels": []}
    return Mock(status=status, read=lambda: json.dumps(answer), getheader=lambda *_: retry_after)


def adapt(waits, **options):
    return mm.Client("http://127.0.0.1", "key", wait=waits.append, **options).adapt(["a", "b"], ["x", "y"])


def test_a_request_that_fails_on_the_way_is_sent_again_under_one_idempotency_key(connection):
    waits, lost = [], http.client.RemoteDisconnected()
    connection.getresponse.side_effect = [response(503), lost, response(429, "7"), response(201)]
    assert adapt(waits).id == "cls_1"
    keys = [call.args[3]["Idempotency-Key"] for call in connection.request.call_args_list]
    assert (len(keys), len(set(keys))) == (4, 1)
    assert 7 <= waits[2] <= 7.2  # as Retry-After asks


def test_it_gives_up_after_the_retries_or_a_refusal_that_time_does_not_mend_and_says_why(connection):
    connection.getresponse.side_effect = [response(503)] * 3
    with pytest.raises(mm.ServiceError, match=r"Not now\."):
        adapt([], retries=2)
    connection.getresponse.side_effect = [http.client.RemoteDisconnected()] * 3
    with pytest.raises(mm.EnvironmentProblem, match="cannot be reached"):
        adapt([], retries=2)
    connection.getresponse.side_effect = [response(422)]
    with pytest.raises(mm.ServiceError, match=r"Not now\."):
        adapt([])
