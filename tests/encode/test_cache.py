"""The embeddings of a bank's texts: each distinct text is encoded once, stored in the run, and read from a table."""

import pickle

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
import manymetrics as mm
from manymetrics.encode import SentenceEncoder, random_vectors
from manymetrics.encode.sentence import encode_bank
from manymetrics.engine import Engine
from manymetrics.store import Run
from manymetrics.values import SharedData, TaskBank
from planted_numbers import at_once
from tiny_sentence import vocabulary_of, write_folder


@pytest.fixture(scope="module")
def folder(tiny_bank, tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("cache") / "tiny", pooling="mean", vocabulary=vocabulary_of(tiny_bank))


@pytest.fixture
def encoder(folder):
    """An encoder of its own for each test, since it caches."""
    return SentenceEncoder.from_folder(folder)


@pytest.fixture
def shared_data(tiny_bank, encoder):
    return share(tiny_bank, encoder)


@pytest.fixture
def tokenized(monkeypatch):
    """The texts that are tokenized in this process."""
    texts, tokenize = [], SentenceEncoder.tokenize
    monkeypatch.setattr(SentenceEncoder, "tokenize", lambda self, some: texts.extend(some) or tokenize(self, some))
    return texts


def share(bank, encoder):
    return SharedData(bank.without_tests(), encoder)


def texts_of(bank):
    parts = ((*task.train.texts, *task.valid.texts, *task.label_names) for task in bank)
    return list(dict.fromkeys(text for part in parts for text in part))


def test_every_distinct_text_has_the_embedding_it_would_have_alone(shared_data, encoder, tokenized):
    encoded = encode_bank(shared_data, at_once(shared_data))
    texts = texts_of(shared_data.bank)
    assert sorted(tokenized) == sorted(texts) == sorted(set(texts))
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    tokenized.clear()
    assert encoded.base.encode(texts).dtype == np.float32
    assert (encoded.base.encode(texts) == alone).all()
    assert (encoded.base.encode(texts[::-1] * 2) == np.concatenate([alone[::-1]] * 2)).all()
    assert tokenized == []


def test_a_text_that_is_not_in_the_table_is_encoded_beside_those_that_are(shared_data, encoder):
    known, texts = texts_of(shared_data.bank)[:2], ["robin so", "", "the salmon"]
    mixed = [known[0], texts[0], known[1], *texts[1:]]
    assert (encode_bank(shared_data, at_once(shared_data)).base.encode(mixed) == encoder.encode(mixed)).all()


def test_the_table_is_no_part_of_what_an_encoder_is_and_travels_to_other_processes(shared_data, encoder, tokenized):
    base = encode_bank(shared_data, at_once(shared_data)).base
    assert base.fingerprint == encoder.fingerprint
    assert base.state().tensors.keys() == encoder.state().tensors.keys()
    texts = texts_of(shared_data.bank)
    tokenized.clear()
    buffers = []
    sent = pickle.dumps(base, 5, buffer_callback=buffers.append)
    assert base.table.embeddings.nbytes in [buffer.raw().nbytes for buffer in buffers]
    assert (pickle.loads(sent, buffers=buffers).encode(texts) == base.encode(texts)).all()  # noqa: S301 - our own
    assert tokenized == []
    base.clear_table()
    assert (base.encode(texts[:1]) == encoder.encode(texts[:1])).all()
    assert texts[0] not in str(base.table.__dict__)


def test_a_task_that_changed_is_the_only_one_that_is_encoded_again(make_bank, encoder, folder, tokenized, tmp_path):
    first, second = make_bank(), make_bank(size=7)
    mixed = TaskBank((*first.tasks[:-1], second.tasks[-1]))
    for bank, fresh in ((first, encoder), (mixed, SentenceEncoder.from_folder(folder))):
        tokenized.clear()
        shared_data = share(bank, fresh)
        with Run.open(tmp_path / "run", "") as run, Engine(shared_data, run=run) as run_jobs:
            encode_bank(shared_data, run_jobs)
    assert set(tokenized) == set(texts_of(mixed)) - set(texts_of(mixed.tasks[:-1]))


def test_a_task_that_cannot_be_encoded_is_left_out(shared_data):
    def lossy(stage, do, jobs):
        return {job.name: do(job, shared_data) for job in jobs[1:]}

    assert encode_bank(shared_data, lossy).bank.names == shared_data.bank.names[1:]


def test_word_vectors_need_no_table(tiny_bank):
    shared_data = share(tiny_bank, random_vectors(rows=64, dimensions=4))
    assert encode_bank(shared_data, None) is shared_data


def test_learning_and_predicting_tokenize_a_text_once(tiny_bank, encoder, folder, tokenized):
    settings = {"projection_steps": 5, "own_steps": 2, "clusters": 2, "shots": 2, "held_out": 0.4}
    model = mm.learn_metrics(tiny_bank, mm.Recipe(encoder=str(folder), **settings))
    bank = texts_of(tiny_bank.without_tests())
    assert {text: tokenized.count(text) for text in bank if tokenized.count(text) != 1} == {}
    classifier = model.adapt(["lamp on", "some music"], ["light", "sound"])
    for owner in (None, "somebody"):
        tokenized.clear()
        with mm.encode.text_cache_of(owner):
            classifier.predict(["a text that is new", "another"])
        assert tokenized == ["a text that is new", "another"]
