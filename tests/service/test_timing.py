"""The time of an answer does not tell what another tenant sent: every text is encoded for each tenant that sends it."""

from contextlib import contextmanager

import pytest

pytest.importorskip("onnx")
pytest.importorskip("tokenizers")
from tests.service.conftest import caller_of, create, on_sqlite

from manymetrics import MetricModel, Predictor, SentenceEncoder
from manymetrics.service.runtime.scheduler import WorkItem
from manymetrics.specialize import Metric
from tiny_sentence import write_folder

PRIVATE = "refund my parcel please"
pytestmark = on_sqlite


@pytest.fixture(scope="module")
def model_folder(make_model, tmp_path_factory):
    """A model whose one encoder is a sentence encoder."""
    folder, made = tmp_path_factory.mktemp("sentence"), make_model()
    encoder = SentenceEncoder.from_folder(write_folder(folder / "encoder", pooling="mean"))
    metric = Metric("sentence", "frozen", encoder, "prototypical", 9.0)
    MetricModel(Predictor((metric,)), made.origin).save(folder / "model")
    return folder / "model"


@pytest.fixture
def encoded(monkeypatch):
    """The texts that were encoded within a block."""
    run, texts = SentenceEncoder._run, []
    monkeypatch.setattr(SentenceEncoder, "_run", lambda self, asked: texts.extend(asked) or run(self, asked))

    @contextmanager
    def watch():
        texts.clear()
        yield texts

    return watch


def ask(client, one, what, body):
    assert client.post(f"/v1/classifiers/{one}/{what}", json=body).status_code == 200


QUESTIONS = {
    "predictions": {"texts": [PRIVATE]},
    "explanations": {"text": PRIVATE},
    "suggestions": {"texts": [PRIVATE]},
    "evaluation": {"test": [{"text": PRIVATE, "label": "lamp"}]},
}


@pytest.mark.parametrize("what", QUESTIONS)
def test_a_text_that_another_tenant_stored_and_asked_about_is_encoded_again(client, make_client, encoded, what):
    other = make_client("other")
    own = create(other)["id"]
    first = create(client, {"text": PRIVATE, "label": "music"})["id"]
    for question, body in QUESTIONS.items():
        ask(client, first, question, body)
    with encoded() as texts:
        ask(other, own, what, QUESTIONS[what])
    assert texts.count(PRIVATE) == 1


def test_examples_are_encoded_once_for_each_tenant_that_stores_them(client, make_client, encoded):
    for tenant in (client, make_client("other")):
        one = create(tenant)["id"]
        with encoded() as texts:
            ask(tenant, one, "examples", {"add": [{"text": PRIVATE, "label": "music"}]})
        assert texts == [PRIVATE]


def test_equal_texts_of_two_tenants_that_wait_together_are_encoded_for_each(service, make_client, encoded):
    items = []
    for name in ("acme", "other"):
        own = create(make_client(name))["id"]
        caller = caller_of(service, name)
        items.append(WorkItem(service.answering.question(caller, own, [PRIVATE]), 1))
    with encoded() as texts:
        service.answering.answer_together(items)
    assert texts == [PRIVATE, PRIVATE]
