import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from manymetrics.encode.phrases import PhraseEncoder
from manymetrics.errors import EnvironmentProblem, InputError, ModelError
from manymetrics.measure.heads import Head
from manymetrics.specialize.metric import SharedLabelMetric
from manymetrics.store import load_model
from manymetrics.weigh import Rules

FILES = (
    "config.json",
    "metrics.safetensors",
    "measured.safetensors",
    "vectors.safetensors",
    "tokenizer.json",
    "README.md",
    "checksums.json",
)
NEW = ["lamp on", "any music", "a meeting", "", "é \x00 😀"]


@pytest.fixture
def saved(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def rewrite(folder, name, payload):
    """Change a file and its checksum with it, as another program would."""
    (folder / name).write_bytes(payload)
    sums = json.loads((folder / "checksums.json").read_text())
    sums[name] = hashlib.sha256(payload).hexdigest()
    (folder / "checksums.json").write_text(json.dumps(sums))


def rewrite_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text()) | changes
    rewrite(folder, "config.json", json.dumps(config).encode())


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "options", [{}, {"shared_labels": ("lamp", "meeting", "music")}, {"threshold": 0.2, "seed": 3}]
)
@pytest.mark.parametrize("mix", ["default", "paper"])
def test_a_model_comes_back_with_the_same_answers_to_the_bit(make_model, shots, tmp_path, options, mix):
    model = make_model(**options)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    before, after = (one.adapt(shots.texts, shots.labels, mix=mix, adaptive=False) for one in (model, again))
    assert (after.predict_proba(NEW) == before.predict_proba(NEW)).all()
    assert after.weights_ == before.weights_
    again.save(tmp_path / "again")
    assert content(tmp_path / "again") == content(tmp_path / "model")


def with_phrases(model, shots, *, rows=None):
    """The model with two linear metrics over the phrases of the shots, whose heads have so many rows."""
    rng, labels = np.random.default_rng(0), ("lamp", "meeting", "music")
    encoder = PhraseEncoder.from_bank(model.vectors.read(shots.texts * 3))
    prior = np.full(3, 1 / 3, dtype=np.float32)
    linear = [
        SharedLabelMetric(
            name, "linear", encoder,
            Head(rng.standard_normal((rows or encoder.width, 3)).astype(np.float32), np.zeros(3, np.float32)),
            labels, prior, tasks,
        )
        for name, tasks in (("phrases-0", ("a", "b")), ("phrases", ("a", "b", "c")))
    ]  # fmt: skip
    rules = Rules({**model.rules.shares, "linear": 0.5}, model.rules.strength, model.rules.threshold)
    return replace(model, metrics=(*model.metrics, *linear), rules=rules)


def test_linear_metrics_come_back_and_share_their_phrases(model, shots, tmp_path):
    whole = with_phrases(model, shots)
    whole.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    before, after = (one.adapt(shots.texts, shots.labels, adaptive=False) for one in (whole, again))
    assert (after.predict_proba(NEW) == before.predict_proba(NEW)).all()
    assert after.weights_["phrases"] > 0
    assert again.metrics[-1].encoder is again.metrics[-2].encoder


def test_a_head_that_does_not_fit_the_phrases_is_refused(model, shots, tmp_path):
    with_phrases(model, shots, rows=5).save(tmp_path / "model")
    with pytest.raises(ModelError, match=r"does not hold together: the head of phrases-0 does not fit the phrases"):
        load_model(tmp_path / "model")


def test_everything_about_a_model_comes_back(model, saved):
    again = load_model(saved)
    assert (again.rules, again.recipe, again.held_out, again.bank) == (model.rules, model.recipe, ("b",), "f00d")
    assert [(m.name, m.kind, m.tasks) for m in again.metrics] == [(m.name, m.kind, m.tasks) for m in model.metrics]
    assert list(again.clusters) == list(model.clusters)
    np.testing.assert_array_equal(again.transfer.scores, model.transfer.scores)
    np.testing.assert_array_equal(again.similarity.low_rank, model.similarity.low_rank)
    assert (again.similarity.steps, again.similarity.gap) == (7, 1e-7)
    assert again.vectors.fingerprint == model.vectors.fingerprint


SHARES = st.dictionaries(st.sampled_from(["learned", "linear"]), st.floats(0.1, 0.9))


@example(rules=Rules(), labels=["\ud800", "x"], seed=0)
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rules=st.builds(
        Rules,
        SHARES,
        st.floats(0.1, 50),
        st.sampled_from([-np.inf, 0.0, 0.4]),
    ),
    labels=st.lists(st.text(st.characters(exclude_categories=[]), max_size=6), min_size=2, max_size=4, unique=True),
    seed=st.integers(0, 99),
)
def test_any_model_comes_back(make_model, tmp_path, rules, labels, seed):
    labels = sorted(labels)
    model = replace(make_model(shared_labels=labels, lexical_buckets=64, seed=seed), rules=rules)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.rules == rules
    assert again.metrics[1].labels == tuple(labels)
    for left, right in zip(model.metrics, again.metrics, strict=True):
        tokens, numbers = model.vectors.read(["lamp", "music"]), np.array([0, 1])
        chances = [one.learn(tokens, numbers, ("x", "y")).chances(tokens) for one in (left, right)]
        assert (chances[0] == chances[1]).all()


def test_a_model_without_learned_metrics_to_its_name_comes_back(model, tmp_path):
    bare = replace(model, metrics=model.metrics[2:])
    bare.save(tmp_path / "model")
    assert len(load_model(tmp_path / "model").metrics) == 2


def test_saving_twice_writes_the_same_bytes(model, tmp_path):
    for name in ("one", "two"):
        model.save(tmp_path / name)
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_the_card_says_what_the_model_is(saved):
    card = (saved / "README.md").read_text()
    assert "2 metrics learned from 3 tasks" in card
    assert "| 0 | 2 | a, b |" in card


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", [0.0, 0.5, 0.999])
def test_a_flipped_bit_is_noticed(saved, name, place):
    raw = bytearray((saved / name).read_bytes())
    raw[int(place * len(raw))] ^= 4
    (saved / name).write_bytes(raw)
    with pytest.raises(ModelError, match=r"is damaged.*Copy the model again from where it was saved|is missing or not"):
        load_model(saved)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_file_cut_short_is_noticed(saved, name, share):
    raw = (saved / name).read_bytes()
    (saved / name).write_bytes(raw[: int(share * len(raw))])
    with pytest.raises(ModelError, match=f"{name} is damaged"):
        load_model(saved)


@pytest.mark.parametrize("name", FILES[:-1])
def test_a_missing_file_is_named(saved, name):
    (saved / name).unlink()
    with pytest.raises(ModelError, match=rf"{name} is missing.*Copy the model again"):
        load_model(saved)


def test_a_folder_that_is_no_model_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"There is no model folder .*nowhere\. Give the folder that `learn --out`"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(ModelError, match=r"is not a model: it has no checksums\.json"):
        load_model(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="There is no model folder"):
        load_model(tmp_path / "file")


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"config.json": 1}'])
def test_checksums_that_are_none_are_refused(saved, text):
    (saved / "checksums.json").write_text(text)
    with pytest.raises(ModelError, match=r"checksums\.json is damaged"):
        load_model(saved)


def test_a_newer_format_is_refused_with_both_numbers(saved):
    rewrite_config(saved, format=7)
    with pytest.raises(ModelError, match=r"has format 7, and this version of manymetrics reads up to 3\. Upgrade"):
        load_model(saved)


def test_an_older_format_is_refused_rather_than_misread(saved):
    rewrite_config(saved, format=2)
    with pytest.raises(ModelError, match=r"has format 2, .* reads format 3\. Learn the model again, or load it with"):
        load_model(saved)


def test_a_model_of_another_library_is_refused(saved):
    rewrite_config(saved, library="othermetrics")
    with pytest.raises(ModelError, match="holds a model of 'othermetrics', not of manymetrics"):
        load_model(saved)


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("config.json", b"not json"),
        ("config.json", b"[]"),
        ("config.json", b'{"library": "manymetrics"}'),
        ("config.json", b'{"library": "manymetrics", "format": "one"}'),
        ("config.json", b'{"library": "manymetrics", "format": 3}'),
        ("metrics.safetensors", b"not tensors"),
        ("metrics.safetensors", b""),
        ("measured.safetensors", b"\xff" * 9),
        ("vectors.safetensors", b"{}"),
        ("tokenizer.json", b"[]"),
        ("tokenizer.json", b'{"name": "x", "kind": "magic", "vocabulary": {}, "merges": [], "rows": 3}'),
    ],
)
def test_a_model_somebody_put_together_wrongly_is_refused(saved, name, payload):
    rewrite(saved, name, payload)
    with pytest.raises(ModelError, match=r"does not hold together.*Save the model again|holds a model of None"):
        load_model(saved)


def test_files_of_two_models_do_not_hold_together(saved, make_model, tmp_path):
    other = make_model(shared_labels=("x", "y"))
    other.save(tmp_path / "other")
    rewrite(saved, "metrics.safetensors", (tmp_path / "other" / "metrics.safetensors").read_bytes())
    rewrite(saved, "config.json", (tmp_path / "other" / "config.json").read_bytes())
    load_model(saved)
    rewrite_config(saved, names=["a", "b"])
    with pytest.raises(ModelError, match="does not hold together"):
        load_model(saved)


def test_weights_that_are_not_finite_are_refused(model, tmp_path):
    broken = replace(model.metrics[0], encoder=replace(model.metrics[0].encoder, bias=np.full(12, np.nan, "f4")))
    replace(model, metrics=(broken, *model.metrics[1:])).save(tmp_path / "model")
    with pytest.raises(ModelError, match="cluster-0/bias holds values that are not finite"):
        load_model(tmp_path / "model")


def test_a_foreign_folder_is_not_saved_over(model, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"is there already and is not a model\. Give a new folder"):
        model.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_foreign_folder_with_checksums_of_its_own_is_not_saved_over(model, tmp_path):
    (tmp_path / "checksums.json").write_text("{}")
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="is not a model"):
        model.save(tmp_path)
    assert (tmp_path / "thesis.txt").is_file()


def test_an_older_model_is_replaced(model, make_model, tmp_path):
    make_model(seed=9).save(tmp_path / "model")
    model.save(tmp_path / "model")
    model.save(tmp_path / "fresh")
    assert content(tmp_path / "model") == content(tmp_path / "fresh")


def test_a_full_disk_leaves_the_older_model(saved, make_model, monkeypatch):
    before = content(saved)

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(EnvironmentProblem, match="No space left on device"):
        make_model(seed=9).save(saved)
    assert content(saved) == before
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


def test_a_model_can_be_moved(saved, model, shots):
    moved = saved.parent / "elsewhere"
    shutil.move(saved, moved)
    before, after = (one.adapt(shots.texts, shots.labels).predict_proba(NEW) for one in (model, load_model(moved)))
    assert (before == after).all()


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
