"""A bank tunes its encoder: rounds and copies, what is held out, and whether it pays."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing trains")
from safetensors.numpy import load, save

import manymetrics as mm
from manymetrics.errors import InputError, RecipeError
from manymetrics.specialize import tuning
from manymetrics.values import Material
from tiny_sentence import bert_encoder, vocabulary_of, write_folder


@pytest.fixture(scope="module")
def bank(make_bank):
    return make_bank(4, size=12).without_tests()


@pytest.fixture(scope="module")
def encoder(bank):
    return bert_encoder(vocabulary_of(bank), pooling="mean")


def tune(bank, encoder, *, held_out=(), workers=1, run=None, steps=6):
    material = Material(bank, {encoder.fingerprint: encoder})
    with mm.Engine(material, workers=workers, run=run) as work:
        return tuning.tune_encoder(material, work, base=encoder, steps=steps, held_out=held_out, seed=0)


def test_the_weights_of_copies_are_averaged():
    one, other = ({"a": np.array([value, 1.0], np.float32)} for value in (1.0, 3.0))
    assert tuning.average([save(one), save(other)])["a"].tolist() == [2.0, 1.0]


def test_the_bits_do_not_depend_on_workers_and_a_run_goes_on(bank, encoder, tmp_path):
    first = tune(bank, encoder)
    assert first.fingerprint != encoder.fingerprint
    with mm.Run.open(tmp_path / "run", "tuning") as run:
        assert tune(bank, encoder, workers=2, run=run).fingerprint == first.fingerprint
    kept = list((tmp_path / "run" / "units" / tuning.STAGE).rglob("*"))
    assert len([path for path in kept if path.is_file()]) >= tuning.COPIES * tuning.ROUNDS


def test_held_out_tasks_train_nothing_and_decide_whether_it_pays(bank, encoder, monkeypatch):
    seen = []
    do = tuning.tune_copy
    monkeypatch.setattr(
        tuning, "tune_copy", lambda unit, material: seen.append(set(unit.spec["tasks"])) or do(unit, material)
    )
    held_out = (bank.names[0], bank.names[3])
    likely = {"tiny-bert": -1.0, "tiny-bert-tuned": -0.5}
    monkeypatch.setattr(tuning, "mean_likelihood", lambda material, one, held_out, seed: likely[one.name])
    assert tune(bank, encoder, held_out=held_out).name == "tiny-bert-tuned"
    assert all(tasks == set(bank.names) - set(held_out) for tasks in seen)
    likely["tiny-bert-tuned"] = -2.0
    assert tune(bank, encoder, held_out=held_out) is encoder


def test_a_model_is_learned_over_the_tuned_encoder_and_serves_from_its_folder(bank, encoder, tmp_path, monkeypatch):
    monkeypatch.setattr("manymetrics.start.load_encoder", lambda name: encoder)
    monkeypatch.setattr(tuning, "mean_likelihood", lambda material, one, held_out, seed: float("tuned" in one.name))
    recipe = mm.Recipe(tuning_steps=6, projection_steps=50, own_steps=20, own_rate=1e-2, shots=2, clusters=2)
    model = mm.learn_metrics(bank, recipe)
    assert "Tuned on the tasks of the bank" in next(one.encoder for one in model.metrics if one.name == "sentence").card
    model.save(tmp_path / "model")
    task = bank.tasks[0]
    told = [
        one.adapt(task.train.texts, task.train.labels).predict_proba(task.valid.texts)
        for one in (model, mm.load_model(tmp_path / "model"))
    ]
    assert (told[0] == told[1]).all()


def test_leaving_sources_out_refuses_to_tune(bank):
    with pytest.raises(RecipeError, match="Each source held out would take a tuning of its own"):
        mm.evaluate_leave_one_out(bank, mm.Recipe.tuned())


def test_copies_keep_only_what_moved(bank, encoder):
    kept = []
    material = Material(bank, {encoder.fingerprint: encoder})
    with mm.Engine(material) as engine:

        def work(stage, do, units):
            found = engine(stage, do, units)
            kept.extend(found.values())
            return found

        tuning.tune_encoder(material, work, base=encoder, steps=3, held_out=(), seed=0)
    assert len(kept) == tuning.COPIES * tuning.ROUNDS
    assert all(name.startswith("encoder.layer.") for name in load(kept[0]))


def test_what_cannot_be_tuned_is_refused_before_anything_is_trained(bank, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed: no graph can be made")
    other = mm.SentenceEncoder.from_folder(write_folder(tmp_path / "tiny"))
    with pytest.raises(InputError, match="is not that of a BERT whose weights have names, so it cannot be tuned"):
        tune(bank, other)
    with pytest.raises(RecipeError, match="Word vectors are not tuned so: set tuning_steps to 0"):
        mm.Recipe.fast(tuning_steps=5)
