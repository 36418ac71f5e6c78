import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from manymetrics.encode import Encoder, State
from manymetrics.errors import InputError, ModelError
from manymetrics.model import MetricModel, check_output_folders, load_model
from manymetrics.specialize import Metric

FILES = ("predictor.safetensors", "origin.safetensors", "README.md", "checksums.json")
NEW = ["lamp on", "any music", "a meeting", "", "é \x00 😀"]


@pytest.fixture
def saved(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def reseal(folder, **changes):
    """Change the header of checksums.json, as another version would have written it."""
    path = folder / "checksums.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


# --- there and back


@pytest.mark.parametrize(
    "options",
    [{}, {"shared_labels": ("lamp", "meeting", "music")}, {"shared_labels": ("\ud800", "x")}, {"published": True}],
)
def test_a_model_comes_back_with_the_same_answers_to_the_bit(make_model, shots, tmp_path, options):
    model = make_model(**options)
    model.save(tmp_path / "saved")
    shutil.move(tmp_path / "saved", tmp_path / "model")
    again = load_model(tmp_path / "model")
    before, after = (one.adapt(shots.texts, shots.labels, adaptive=False) for one in (model, again))
    assert (after.predict_proba(NEW) == before.predict_proba(NEW)).all()
    assert after.weights_ == before.weights_
    assert [metric.labels for metric in again.metrics] == [metric.labels for metric in model.metrics]
    assert again.predictor.gradient == model.predictor.gradient
    assert again.fingerprint == model.fingerprint
    again.save(tmp_path / "again")
    assert content(tmp_path / "again") == content(tmp_path / "model")
    assert set(content(tmp_path / "model")) == set(FILES)


# --- serving needs nothing but what serves


@pytest.mark.parametrize("name", ["predictor.safetensors", "origin.safetensors"])
def test_a_flipped_bit_is_noticed(saved, name):
    raw = (saved / name).read_bytes()
    (saved / name).write_bytes(raw[:-2] + bytes([raw[-2] ^ 4]) + raw[-1:])
    with pytest.raises(ModelError, match=r"is damaged.*Copy the model again"):
        load_model(saved).origin.dump()


def test_serving_does_not_read_where_the_model_comes_from(saved, model, shots):
    expected = model.adapt(shots.texts, shots.labels).predict_proba(NEW)
    for name in ("origin.safetensors", "README.md"):
        (saved / name).unlink()
    served = load_model(saved)
    assert (served.adapt(shots.texts, shots.labels).predict_proba(NEW) == expected).all()
    assert served.fingerprint == model.fingerprint
    for ask in (lambda: served.clusters, lambda: served.save(saved)):
        with pytest.raises(ModelError, match=r"origin\.safetensors is missing or not a file of a model"):
            ask()


def test_the_origin_is_that_of_the_model_that_was_loaded_or_none(saved, make_model):
    first, second = load_model(saved), load_model(saved)
    assert second.recipe.vectors == "random"
    make_model(seed=9).save(saved)
    with pytest.raises(ModelError, match=r"holds another model by now\. Load it again"):
        _ = first.clusters
    assert list(second.clusters) == [("a", "b"), ("c",)]


# --- what cannot be loaded


def test_an_older_format_is_refused_rather_than_misread_and_not_saved_over(saved, model):
    again = r"Learn the model again, or load it with the version that saved it\."
    reseal(saved, format=10)
    with pytest.raises(ModelError, match=rf"has the format 10, and this version reads format 11\. {again}"):
        load_model(saved)
    (saved / "checksums.json").write_text(json.dumps({"config.json": "ab" * 32, "metrics.safetensors": "cd" * 32}))
    with pytest.raises(ModelError, match=rf"has the format of an older version, .* reads format 11\. {again}"):
        load_model(saved)
    before = content(saved)
    for attempt in (model.save, lambda path: check_output_folders(None, out=path)):
        with pytest.raises(InputError, match=r"is there already and is not a model\. Give a new folder"):
            attempt(saved)
    assert content(saved) == before


# --- what cannot be saved


class Unregistered(Encoder):
    """An encoder without a kind."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def encode(self, texts):
        return np.array([[len(text), 1] for text in texts], dtype=np.float32)

    def state(self):
        return State({"scale": np.array([self.scale], "f4")})

    @classmethod
    def from_state(cls, state):
        return cls()


class Forgetful(Unregistered, kind="test-forgetful"):
    """An encoder that comes back as another one, if its scale is 2."""

    @classmethod
    def from_state(cls, state):
        return cls(state.tensors["scale"][0] * (state.tensors["scale"][0] != 2.0))


class Unwritable(Unregistered, kind="test-unwritable"):
    """An encoder whose state cannot be written as JSON."""

    def state(self):
        return State({}, {"texts": {1, 2}})


def with_encoder(model, encoder):
    mine = Metric("mine", "frozen", encoder, "prototypical", 9.0)
    return MetricModel(replace(model.predictor, metrics=(*model.metrics, mine)), model.origin)


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (Unregistered(), r"An encoder of type Unregistered cannot be loaded again: .*Define it as class Unreg"),
        (Forgetful(2.0), r"would not be the same after loading: an encoder's from_state does not give back"),
        (Unwritable(), r"The model cannot be saved: TypeError .*states of its encoders must be finite arrays and JSON"),
    ],
)
def test_a_model_that_could_not_be_loaded_again_is_refused_and_nothing_is_written(model, tmp_path, encoder, message):
    with pytest.raises(ModelError, match=message):
        with_encoder(model, encoder).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_an_encoder_of_a_user_is_saved_with_its_state_and_its_class_must_be_imported(model, tmp_path, monkeypatch):
    with_encoder(model, Forgetful(3.0)).save(tmp_path / "model")
    assert load_model(tmp_path / "model").metrics[3].encoder.scale == 3.0
    monkeypatch.delitem(Encoder.kinds, "test-forgetful")
    with pytest.raises(ModelError, match=r"no encoder of the kind 'test-forgetful' here\. Import the module"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.inf, r"array tensors/\d+/bias holds values that are not finite"),
        (1e38, "not finite in the tensor 'bias' of a convolution encoder"),
    ],
)
def test_weights_that_are_not_finite_are_not_saved(make_model, tmp_path, value, message):
    model = make_model(published=True)
    first = model.metrics[0]
    encoder = replace(first.encoder, bias=np.full(12, value, "f4"))
    predictor = replace(model.predictor, metrics=(replace(first, encoder=encoder), *model.metrics[1:]))
    with pytest.raises(ModelError, match=message):
        MetricModel(predictor, model.origin).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


# --- where it is saved


def test_saving_writes_the_same_bytes_each_time_and_over_an_older_model(model, make_model, tmp_path):
    make_model(seed=9).save(tmp_path / "model")
    model.save(tmp_path / "model")
    model.save(tmp_path / "fresh")
    assert content(tmp_path / "model") == content(tmp_path / "fresh")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fresh", "model"]


# --- what loading does not do


ALONE = """
import sys

class NoTorch:
    def find_spec(self, name, *_):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, NoTorch())
reached_out = []
sys.addaudithook(lambda event, arguments: reached_out.append(event) if event.startswith("socket.") else None)
unpickled = []
def watch(event, arguments):
    if event == "pickle.find_class":
        unpickled.append(arguments)
from manymetrics import load_model
def answer():
    texts = ["lamp on", "lamp off", "play music", "music"]
    return load_model(sys.argv[1]).adapt(texts, ["lamp", "lamp", "music", "music"]).predict(["lamp", "music"])
answer()
sys.addaudithook(watch)  # once everything is imported
assert answer().tolist() == ["lamp", "music"]
assert not unpickled, unpickled
assert not reached_out, reached_out
assert "torch" not in sys.modules
print("fine")
"""


def test_loading_adapting_and_predicting_need_no_torch_open_no_socket_and_unpickle_nothing(saved):
    script = saved.parent / "alone.py"
    script.write_text(ALONE)
    done = subprocess.run(
        [sys.executable, str(script), str(saved)], capture_output=True, text=True, check=False, cwd=Path.cwd()
    )
    assert (done.returncode, done.stdout.strip()) == (0, "fine"), done.stderr
