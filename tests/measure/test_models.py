import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.encode import Convolution, Training, random_vectors
from manymetrics.measure import open_task_model, train_task_models
from manymetrics.measure.models import get_ready_to_train, hold_out_texts, training_parts
from manymetrics.values import LabelledTexts, Material, Texts

SMALL = Convolution(window=3, width=8, dropout=0.2)
SHORT = Training(steps=60, check_every=20, learning_rate=0.02, batch=16)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.floats(0, 1), st.integers(0, 99))
def test_held_out_examples_leave_every_label_one_that_is_kept(labels, share, seed):
    examples = LabelledTexts(Texts(map(str, range(len(labels)))), np.array(labels))
    kept, held = hold_out_texts(examples, share, np.random.default_rng(seed))
    assert sorted([*kept.texts, *held.texts]) == sorted(examples.texts)
    assert set(kept.labels.tolist()) == set(labels)
    for text, label in zip(held.texts, held.labels, strict=True):
        assert labels[int(text)] == label


def test_a_share_is_held_out_of_every_label():
    examples = LabelledTexts(Texts(map(str, range(30))), np.repeat([0, 1], [10, 20]))
    _, held = hold_out_texts(examples, 0.2, np.random.default_rng(0))
    assert np.bincount(held.labels).tolist() == [2, 4]


def test_training_stops_on_valid_examples_or_on_a_fifth_of_train(tiny_bank, make_bank):
    train, held = training_parts(tiny_bank.tasks[0], np.random.default_rng(0))
    assert (len(train), len(held)) == (18, 9)
    train, held = training_parts(make_bank(valid=False).tasks[0], np.random.default_rng(0))
    assert np.bincount(held.labels).tolist() == [1, 1, 1]
    assert len(train) == 15


def material_of(bank, words):
    return Material(bank, {words.fingerprint: words})


def train_at_once(bank, words):
    material = material_of(bank, words)

    def work(stage, do, units):
        return {unit.name: do(unit, material) for unit in units}

    return train_task_models(material, work, words=words, convolution=SMALL, training=SHORT, seed=3)


def test_a_task_model_learned_its_task_and_only_depends_on_its_unit(tiny_bank, vectors):
    pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    payload = train_at_once(tiny_bank, vectors)["colour-1"]
    assert payload == train_at_once(tiny_bank.only(["colour-1"]), vectors)["colour-1"]
    task = tiny_bank["colour-1"]
    model = open_task_model(task, vectors, payload)
    assert (model.name, model.labels) == (task.name, task.labels)
    answers = model.head.probabilities(model.encoder.encode(task.train.texts)).argmax(axis=1)
    assert np.mean(answers == task.labelled_train.labels) > 0.9


def test_units_of_other_seeds_knobs_and_words_differ(tiny_bank, vectors):
    specs = []

    def work(stage, do, units):
        assert [unit.name for unit in units] == list(tiny_bank.names)
        specs.append(json.dumps(units[0].spec, sort_keys=True))
        return {}

    for words, seed, convolution, training in (
        (vectors, 0, SMALL, SHORT),
        (vectors, 1, SMALL, SHORT),
        (vectors, 0, Convolution(), SHORT),
        (vectors, 0, SMALL, Training()),
        (random_vectors(rows=16, dimensions=4), 0, SMALL, SHORT),
    ):
        sizes = {"convolution": convolution, "training": training, "seed": seed}
        train_task_models(material_of(tiny_bank, words), work, words=words, **sizes)
    assert len(set(specs)) == 5


def test_what_a_training_needs_is_loaded_beforehand():
    torch = pytest.importorskip("torch", reason="torch is not installed: nothing trains")
    before = torch.get_num_threads()
    get_ready_to_train()
    assert torch.get_num_threads() == before
