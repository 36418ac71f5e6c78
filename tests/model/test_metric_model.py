import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from manymetrics.encode import Encoder, Features, State
from manymetrics.errors import EnvironmentProblem, InputError, ModelError
from manymetrics.model import MetricModel, load_model
from manymetrics.specialize import SimilarityMetric
from manymetrics.values import Texts
from manymetrics.weigh import MixSettings

SERVED = ("serving.json", "serving.safetensors")
FILES = (*SERVED, "origin.json", "origin.safetensors", "README.md", "checksums.json")
NEW = ["lamp on", "any music", "a meeting", "", "é \x00 😀"]


@pytest.fixture
def saved(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def reseal(folder, **changes):
    """Change what the seal says, as another version would have written it."""
    path = folder / "checksums.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


# --- there and back


@pytest.mark.parametrize(
    "options", [{}, {"shared_labels": ("lamp", "meeting", "music")}, {"threshold": 0.2, "seed": 3}]
)
def test_a_model_comes_back_with_the_same_answers_to_the_bit(make_model, shots, tmp_path, options):
    model = make_model(**options)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    for mix in ("default", "paper"):
        before, after = (one.adapt(shots.texts, shots.labels, mix=mix, adaptive=False) for one in (model, again))
        assert (after.predict_proba(NEW) == before.predict_proba(NEW)).all()
        assert after.weights_ == before.weights_
    assert again.fingerprint == model.fingerprint
    again.save(tmp_path / "again")
    assert content(tmp_path / "again") == content(tmp_path / "model")
    assert set(content(tmp_path / "model")) == set(FILES)


def test_everything_about_a_model_comes_back(model, saved):
    again = load_model(saved)
    assert (again.settings, again.recipe, again.held_out) == (model.settings, model.recipe, ("b",))
    assert again.serving.trust == model.serving.trust
    told = [(one.name, one.kind, one.tasks, one.cluster, one.encoder.fingerprint) for one in model.metrics]
    assert [(one.name, one.kind, one.tasks, one.cluster, one.encoder.fingerprint) for one in again.metrics] == told
    assert list(again.clusters) == list(model.clusters)
    np.testing.assert_array_equal(again.transfer.scores, model.transfer.scores)
    np.testing.assert_array_equal(again.similarity.low_rank, model.similarity.low_rank)


SHARES = st.dictionaries(st.sampled_from(["learned", "linear"]), st.floats(0.1, 0.9))
EXPONENTS = st.dictionaries(st.sampled_from(["learned", "regression"]), st.tuples(*[st.floats(-9, 9)] * 3))


@example(chosen=MixSettings(), labels=["\ud800", "x"], seed=0)
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    chosen=st.builds(
        MixSettings,
        SHARES,
        EXPONENTS,
        EXPONENTS,
        names_count=st.booleans(),
        prior_shots=st.floats(0.1, 50),
        likelihood_temperature=st.floats(0.1, 50),
        threshold=st.sampled_from([-np.inf, 0.0, 0.4]),
    ),
    labels=st.lists(st.text(st.characters(exclude_categories=[]), max_size=6), min_size=2, max_size=4, unique=True),
    seed=st.integers(0, 99),
)
def test_any_model_comes_back(make_model, tmp_path, chosen, labels, seed):
    labels = sorted(labels)
    model = make_model(shared_labels=labels, letter_buckets=64, seed=seed)
    model = MetricModel(replace(model.serving, settings=chosen), model.origin)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.settings == chosen
    assert again.metrics[1].labels == tuple(labels)
    features, numbers = Features(Texts(["lamp", "music"])), np.array([0, 1])
    for left, right in zip(model.metrics, again.metrics, strict=True):
        found = [one.learn(features, numbers, ("x", "y")).probabilities(features) for one in (left, right)]
        assert (found[0] == found[1]).all()


def test_a_model_without_learned_metrics_comes_back(model, tmp_path):
    bare = MetricModel(replace(model.serving, metrics=model.metrics[2:]), model.origin)
    bare.save(tmp_path / "model")
    assert len(load_model(tmp_path / "model").metrics) == 2


def test_a_model_can_be_moved(saved, model, shots):
    moved = saved.parent / "elsewhere"
    shutil.move(saved, moved)
    before, after = (one.adapt(shots.texts, shots.labels).predict_proba(NEW) for one in (model, load_model(moved)))
    assert (before == after).all()


# --- serving needs nothing but what serves


def test_serving_does_not_read_where_the_model_comes_from(saved, model, shots):
    expected = model.adapt(shots.texts, shots.labels).predict_proba(NEW)
    for name in ("origin.json", "origin.safetensors", "README.md"):
        (saved / name).unlink()
    served = load_model(saved)
    assert (served.adapt(shots.texts, shots.labels).predict_proba(NEW) == expected).all()
    assert served.fingerprint == model.fingerprint
    for ask in (lambda: served.clusters, lambda: served.nearest_tasks(["lamp"]), lambda: served.save(saved)):
        with pytest.raises(ModelError, match=r"origin\.json is missing or not a file of a model"):
            ask()


def test_the_origin_is_that_of_the_model_that_was_loaded_or_none(saved, make_model):
    first, second = load_model(saved), load_model(saved)
    assert second.recipe.width == 12
    make_model(seed=9).save(saved)
    with pytest.raises(ModelError, match=r"holds another model by now\. Load it again"):
        _ = first.clusters
    assert list(second.clusters) == [("a", "b"), ("c",)]


# --- what cannot be loaded


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_or_a_missing_file_is_noticed(saved, name):
    raw = (saved / name).read_bytes()

    def look():
        load_model(saved).origin.clusters  # noqa: B018 - whether it can be read at all

    if name == "README.md":  # for people; nothing is made of it
        (saved / name).unlink()
        look()
        return
    for place in (0, len(raw) // 2, len(raw) - 2):
        (saved / name).write_bytes(raw[:place] + bytes([raw[place] ^ 4]) + raw[place + 1 :])
        with pytest.raises(
            ModelError, match=r"is damaged.*Copy the model again|is missing or not|older|not a model of"
        ):
            look()
    (saved / name).write_bytes(raw)
    look()
    (saved / name).unlink()
    with pytest.raises(ModelError, match=rf"{name} is missing.*Copy the model again|it has no checksums\.json"):
        look()


def test_a_folder_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "nowhere", tmp_path / "file"):
        with pytest.raises(ModelError, match=r"There is no model folder .* Give a folder that was saved as one"):
            load_model(path)
    for path in (tmp_path, Path("/")):
        with pytest.raises(ModelError, match=r"is not a saved model: it has no checksums\.json"):
            load_model(path)


def test_a_seal_that_is_none_is_refused(saved):
    for text in ("", "[]", "null", "3", "[" * 100_000, '{"library": "manymetrics", "kind": "model", "files": []}'):
        (saved / "checksums.json").write_text(text)
        with pytest.raises(ModelError, match=r"checksums\.json is damaged"):
            load_model(saved)


def test_a_newer_format_is_refused_with_both_numbers(saved):
    reseal(saved, format=9)
    with pytest.raises(ModelError, match=r"has the format 9, and this version reads format 8\. Upgrade manymetrics"):
        load_model(saved)


def test_an_older_format_is_refused_rather_than_misread_and_not_saved_over(saved, model):
    again = r"Learn the model again, or load it with the version that saved it\."
    reseal(saved, format=7)
    with pytest.raises(ModelError, match=rf"has the format 7, and this version reads format 8\. {again}"):
        load_model(saved)
    (saved / "checksums.json").write_text(json.dumps({"config.json": "ab" * 32, "metrics.safetensors": "cd" * 32}))
    with pytest.raises(ModelError, match=rf"has the format of an older version, .* reads format 8\. {again}"):
        load_model(saved)
    before = content(saved)
    with pytest.raises(InputError, match=r"is there already and is not a model\. Give a new folder"):
        model.save(saved)
    assert content(saved) == before


def test_a_model_of_another_library_is_refused(saved):
    for changes in ({"library": "othermetrics"}, {"kind": "classifier"}, {"library": ["manymetrics"]}):
        reseal(saved, **{"library": "manymetrics", "kind": "model"} | changes)
        with pytest.raises(ModelError, match="is not a model of manymetrics"):
            load_model(saved)


def test_a_folder_that_cannot_be_read_says_why(saved, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(EnvironmentProblem, match=r"Could not read .*model: Permission denied"):
        load_model(saved)


# --- what cannot be saved


class Unregistered(Encoder):
    """An encoder without a kind."""

    def encode(self, texts):
        return np.array([[len(text), 1] for text in texts], dtype=np.float32)

    def state(self):
        return State()

    @classmethod
    def from_state(cls, state):
        return cls()


class Forgetful(Unregistered, kind="test-forgetful"):
    """An encoder that comes back as another one."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def state(self):
        return State({"scale": np.array([self.scale], "f4")})

    @classmethod
    def from_state(cls, state):
        return cls(state.tensors["scale"][0] * (state.tensors["scale"][0] != 2.0))


class Lost(Unregistered, kind="test-lost"):
    """An encoder that comes back as something else altogether."""

    @classmethod
    def from_state(cls, state):
        return "rows"


class Unwritable(Unregistered, kind="test-unwritable"):
    """An encoder whose state cannot be written as JSON."""

    def state(self):
        return State({}, {"texts": {1, 2}})


class Unfinished(Unregistered, kind="test-unfinished"):
    """An encoder that cannot be made again yet."""

    @classmethod
    def from_state(cls, state):
        raise NotImplementedError("later")


def with_encoder(model, encoder):
    mine = SimilarityMetric("mine", "frozen", encoder, "prototypical", 9.0)
    return MetricModel(replace(model.serving, metrics=(*model.metrics, mine)), model.origin)


def test_a_model_that_could_not_be_loaded_again_is_refused_and_nothing_is_written(model, tmp_path):
    for encoder, message in (
        (
            Unregistered(),
            r"An encoder of type Unregistered cannot be loaded again: .*Define it as class Unregistered\(",
        ),
        (Forgetful(2.0), r"would not be the same after loading: an encoder's from_state does not give back"),
        (Lost(), r"does not hold together: from_state of a test-lost encoder gave a value of type str"),
        (Unwritable(), r"The model cannot be saved: TypeError .*states must be arrays and what JSON can hold"),
        (Unfinished(), r"does not hold together: NotImplementedError later"),
    ):
        with pytest.raises(ModelError, match=message):
            with_encoder(model, encoder).save(tmp_path / "model")
        assert list(tmp_path.iterdir()) == []
    with_encoder(model, Forgetful(3.0)).save(tmp_path / "model")
    assert load_model(tmp_path / "model").metrics[4].encoder.scale == 3.0


def test_weights_that_are_not_finite_are_not_saved(model, tmp_path):
    first = model.metrics[0]
    for value in (np.nan, np.inf, 1e38):
        encoder = replace(first.encoder, bias=np.full(12, value, "f4"))
        serving = replace(model.serving, metrics=(replace(first, encoder=encoder), *model.metrics[1:]))
        with pytest.raises(
            ModelError, match="the tensor 'bias' of a convolution encoder holds values that are not fin"
        ):
            MetricModel(serving, model.origin).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_model_of_an_encoder_nobody_knows_says_what_to_import(model, tmp_path, monkeypatch):
    with_encoder(model, Forgetful(3.0)).save(tmp_path / "model")
    monkeypatch.delitem(Encoder.kinds, "test-forgetful")
    with pytest.raises(ModelError, match=r"no encoder of the kind 'test-forgetful' here\. Import the module"):
        load_model(tmp_path / "model")


# --- where it is saved


def test_saving_writes_the_same_bytes_each_time_and_over_an_older_model(model, make_model, tmp_path):
    make_model(seed=9).save(tmp_path / "model")
    model.save(tmp_path / "model")
    model.save(tmp_path / "fresh")
    assert content(tmp_path / "model") == content(tmp_path / "fresh")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fresh", "model"]


def test_a_foreign_folder_is_not_saved_over(model, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    for seal in (None, "{}", '{"library": "other", "files": {"thesis.txt": ""}}', '{"format": 4, "files": {}}'):
        if seal is not None:
            (tmp_path / "checksums.json").write_text(seal)
        before = content(tmp_path)
        for attempt in (model.save, model.require_place):
            with pytest.raises(InputError, match=r"is there already and is not a model\. Give a new folder"):
                attempt(tmp_path)
        assert content(tmp_path) == before


def test_a_users_file_beside_the_model_survives(saved, make_model):
    (saved / "notes.txt").write_text("do not lose")
    before = content(saved)
    with pytest.raises(InputError, match=r"holds 'notes\.txt' beside a model, which saving over it would lose"):
        make_model(seed=9).save(saved)
    assert content(saved) == before


def test_a_full_disk_leaves_the_older_model(saved, make_model, monkeypatch):
    before = content(saved)

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(EnvironmentProblem, match="No space left on device"):
        make_model(seed=9).save(saved)
    assert content(saved) == before
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


def test_a_model_that_is_loaded_while_others_are_saved_in_its_place_is_one_of_them(make_model, tmp_path):
    models = [make_model(seed=seed) for seed in range(2)]
    known = {model.fingerprint for model in models}
    models[0].save(tmp_path / "model")
    done = threading.Event()

    def save_all():
        try:
            for turn in range(50):
                models[turn % 2].save(tmp_path / "model")
        finally:
            done.set()

    writer = threading.Thread(target=save_all)
    writer.start()
    found = set()
    try:
        while not done.is_set():
            found.add(load_model(tmp_path / "model").fingerprint)
    finally:
        writer.join()
    assert found <= known
    assert load_model(tmp_path / "model").fingerprint == models[1].fingerprint


# --- what loading does not do


def test_loading_makes_no_network_call(saved, shots, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    answers = load_model(saved).adapt(shots.texts, shots.labels).predict(NEW)
    assert set(answers) <= set(shots.labels)


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
model = load_model(sys.argv[1])
classifier = model.adapt(["lamp on", "lamp off", "play music", "music"], ["lamp", "lamp", "music", "music"])
classifier.predict(["lamp"])
assert "numba" not in sys.modules  # a few texts need no compiler
classifier.predict(["lamp"] * 100_000)  # compiles the kernels, or reads them from numba's own cache
assert "numba" in sys.modules
sys.addaudithook(watch)
model = load_model(sys.argv[1])
assert not unpickled, unpickled
classifier = model.adapt(["lamp on", "lamp off", "play music", "music"], ["lamp", "lamp", "music", "music"])
assert classifier.predict(["lamp", "music"]).tolist() == ["lamp", "music"]
assert not unpickled, unpickled
assert (classifier.predict_proba(["lamp", "music"]).max(axis=1) > 0.5).all()
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
