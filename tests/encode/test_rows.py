"""The bank's texts -> rows of a sentence encoder: made once, kept in the run, and found wherever the texts go."""

import pickle

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
from manymetrics.encode import SentenceEncoder
from manymetrics.encode.rows import remember_rows
from manymetrics.engine import Engine
from manymetrics.errors import UnitsFailed
from manymetrics.store import Run
from manymetrics.values import Material, Texts
from tiny_sentence import vocabulary_of, write_folder


@pytest.fixture(scope="module")
def encoder(tiny_bank, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows") / "tiny"
    return SentenceEncoder.from_folder(write_folder(folder, pooling="mean", vocabulary=vocabulary_of(tiny_bank)))


@pytest.fixture
def material(make_bank, encoder):
    """A bank of its own for each test, since texts remember."""
    return Material(make_bank().without_tests(), {encoder.fingerprint: encoder})


@pytest.fixture
def runs(monkeypatch):
    """The texts that the graph was run on in this process, whatever was asked before."""
    texts = []
    row = SentenceEncoder._row
    monkeypatch.setattr(SentenceEncoder, "_row", lambda self, text: texts.append(text) or row(self, text))
    return texts


def remembered(material, encoder, work):
    """The rows of every text of a bank, in order."""
    remember_rows(material, encoder, work)
    return [
        encoder.encode(texts)
        for task in material.bank
        for texts in (task.train.texts, task.valid.texts, task.label_names)
    ]


def at_once(material):
    return lambda stage, do, units: {unit.name: do(unit, material) for unit in units}


def test_every_text_and_label_name_has_the_row_it_would_have_alone(material, encoder):
    found = remembered(material, encoder, at_once(material))
    expected = [
        np.concatenate([encoder.encode(Texts([text])) for text in texts])
        for task in material.bank
        for texts in (task.train.texts, task.valid.texts, task.label_names)
    ]
    assert all((one == other).all() for one, other in zip(found, expected, strict=True))
    assert found[0].dtype == np.float32
    assert found[2].shape == (3, encoder.width)


def test_what_is_remembered_is_not_computed_again_wherever_the_texts_go(material, encoder, runs):
    remember_rows(material, encoder, at_once(material))
    runs.clear()
    task = material.bank.tasks[0]
    whole = encoder.encode(task.train.texts)
    assert (encoder.encode(task.train.take([2, 0]).texts) == whole[[2, 0]]).all()
    joined = Texts.join([task.train.texts, task.label_names])
    assert len(encoder.encode(joined)) == len(task.train) + 3
    sent = pickle.loads(pickle.dumps(material))  # noqa: S301 - our own, as a worker gets it
    assert (encoder.encode(sent.bank.tasks[0].train.texts) == whole).all()
    assert runs == []


def test_rows_that_a_run_holds_are_not_computed_again(make_bank, encoder, runs, tmp_path):
    bits = []
    for _ in range(2):
        runs.clear()
        material = Material(make_bank().without_tests(), {encoder.fingerprint: encoder})
        with Run.open(tmp_path / "run", "") as run, Engine(material, run=run) as work:
            bits.append([rows.tobytes() for rows in remembered(material, encoder, work)])
    assert bits[0] == bits[1]
    assert runs == []


def test_a_task_that_changed_is_the_only_one_that_is_encoded_again(make_bank, encoder, runs, tmp_path):
    first, second = make_bank(), make_bank(size=7)
    mixed = type(first)((second.tasks[0], *first.tasks[1:]))
    for bank in (first, mixed):
        runs.clear()
        material = Material(bank.without_tests(), {encoder.fingerprint: encoder})
        with Run.open(tmp_path / "run", "") as run, Engine(material, run=run) as work:
            remember_rows(material, encoder, work)
    task = mixed.tasks[0]
    assert set(runs) == {*task.train.texts, *task.valid.texts, *task.label_names}


def test_the_bits_are_the_same_with_one_worker_and_with_two(make_bank, encoder):
    bits = []
    for workers in (1, 2):
        material = Material(make_bank().without_tests(), {encoder.fingerprint: encoder})
        with Engine(material, workers=workers) as work:
            bits.append([rows.tobytes() for rows in remembered(material, encoder, work)])
    assert bits[0] == bits[1]


def test_a_task_that_cannot_be_encoded_is_named(material, encoder):
    def lossy(stage, do, units):
        return {unit.name: do(unit, material) for unit in units[1:]}

    lost = material.bank.names[0]
    with pytest.raises(UnitsFailed, match=rf"The texts of '{lost}' could not be encoded\. Leave the task out"):
        remember_rows(material, encoder, lossy)
