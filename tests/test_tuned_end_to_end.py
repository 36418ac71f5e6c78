"""The recipe `tuned`, from a bank to answers, on a BERT of a few bytes: an encoder for each cluster."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing trains")

import manymetrics as mm
from command_line import write_shots
from python_process import run_python
from tiny_sentence import vocabulary_of, write_bert_folder

TEXTS = ["the crimson here", "some emerald", "azure so very", "a robin there"]


@pytest.fixture(scope="module")
def bank(make_bank):
    return make_bank(4, size=12).without_tests()


@pytest.fixture(scope="module")
def recipe(bank, tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder") / "tiny"
    write_bert_folder(folder, vocabulary=vocabulary_of(bank))
    return mm.Recipe.tuned(encoder=str(folder), projection_steps=50, own_steps=20, p1=0.1, p2=0.1, clusters=2, shots=2)


@pytest.fixture(scope="module")
def model(bank, recipe):
    return mm.learn_metrics(bank, recipe)


def test_clusters_have_encoders_that_share_one_base_and_a_share_of_the_weight(model, bank):
    tuned = [metric for metric in model.metrics if metric.cluster is not None]
    assert tuned, "no cluster has an encoder"
    for metric in tuned:
        assert metric.encoder.base is not None
        assert metric.encoder.base.fingerprint == model.predictor.base.fingerprint
        assert metric.share < 1
    task = bank["colour-0"]
    weights = model.adapt(task.train.texts, task.train.labels, adaptive=False).weights_
    assert weights["projection"] > 0


def test_workers_and_a_resumed_run_give_the_same_bits(model, bank, recipe, tmp_path):
    together = mm.learn_metrics(bank, recipe, workers=2, run=tmp_path / "run")
    assert together.fingerprint == model.fingerprint
    assert mm.learn_metrics(bank, recipe, run=tmp_path / "run").fingerprint == model.fingerprint


def test_a_saved_model_answers_without_torch(model, bank, tmp_path):
    model.save(tmp_path / "model")
    task = bank["colour-0"]
    expected = model.adapt(task.train.texts, task.train.labels).predict_proba(TEXTS)
    write_shots(tmp_path / "shots.tsv", task.train)
    code = f"""
import manymetrics as mm
import numpy as np
shots = mm.read_examples("shots.tsv")
np.save("answers.npy", mm.load_model("model").adapt(shots.texts, shots.labels).predict_proba({TEXTS!r}))
"""
    run_python(code, torch=False, cwd=tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "answers.npy"), expected)
