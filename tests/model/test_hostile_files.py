"""Files that somebody put together, with seals that fit: a clear refusal, or answers that are finite."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load, save

from manymetrics.encode import PhraseEncoder, TunedWords
from manymetrics.encode.vectors import from_words
from manymetrics.errors import InputError, ModelError
from manymetrics.measure.heads import Head
from manymetrics.model import Centres, MetricModel, load_classifier, load_model, load_origin
from manymetrics.specialize import SharedLabelMetric, SimilarityMetric

MUTATIONS = 150
NEW = ["lamp on", "any music", "", "é \x00 😀"]
LABELS = ("lamp", "meeting", "music")
DEEP = "[" * 100_000 + "]" * 100_000
NUMBERS = ["-1", "0", "1", "3", "2.5", "-1e308", "1e308", "1e400", "NaN", "-Infinity", "1" + "0" * 25, "1" + "0" * 400]
OTHERS = ["null", "true", "[]", "{}", '""', '"x"', '"1"', "[[]]", "[null]", '["x", "x"]', '{"x": {"x": []}}', DEEP]
HOSTILE = [*NUMBERS, *OTHERS]


@pytest.fixture(scope="module")
def rich(make_model):
    """A model with every kind of encoder and metric, and centres."""
    model = make_model(shared_labels=LABELS)
    words = model.metrics[2].encoder
    known = from_words("known", ["lamp", "music", "meeting"], np.eye(3, dtype="f4"))
    tuned = TunedWords(words, np.array([1, 5], "i4"), np.ones((2, 16), "f2"))
    phrases = PhraseEncoder(words, np.arange(64, dtype="f4"))
    head = Head(np.ones((phrases.width, 3), "f4"), np.zeros(3, "f4"))
    more = (
        SimilarityMetric("known", "frozen", known, "matching", 9.0),
        SimilarityMetric("tuned", "tuned", tuned, "prototypical", 9.0, ("a", "b", "c")),
        SharedLabelMetric("phrases", "linear", phrases, head, LABELS, np.full(3, 1 / 3, "f4"), ("a", "b", "c")),
    )
    centres = Centres("known", np.eye(3, dtype="f4"))
    return MetricModel(replace(model.serving, metrics=(*model.metrics, *more)), replace(model.origin, centres=centres))


@pytest.fixture
def saved(rich, tmp_path):
    rich.save(tmp_path / "model")
    return tmp_path / "model"


def rewrite(folder, name, payload):
    """Change a file and its checksum with it, as another program would."""
    (folder / name).write_bytes(payload)
    seal = json.loads((folder / "checksums.json").read_text())
    seal["files"][name] = hashlib.sha256(payload).hexdigest()
    (folder / "checksums.json").write_text(json.dumps(seal))


def use(folder, shots):
    """Load a model and ask it everything; whether it could be loaded."""
    try:
        model = load_model(folder)
        model.fingerprint  # noqa: B018 - it must have one
    except ModelError:
        return False
    try:
        classifier = model.adapt(shots.texts, shots.labels)
    except InputError:  # such as: no metric is left that learned nothing from labels
        return True
    with np.errstate(all="ignore"):
        assert np.isfinite(classifier.predict_proba(NEW)).all()
        assert np.isfinite(classifier.scope_proba(NEW)).all()
        assert np.isfinite(classifier.explain("lamp").probability)
    return True


def places(node, at=()):
    """Where the values of a JSON document are."""
    yield at
    for key, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from places(child, (*at, key))


def mutate(about, rng):
    """One value of a document replaced by something else, or taken away."""
    about = json.loads(json.dumps(about))
    every = [place for place in places(about) if place]
    *path, last = every[rng.integers(len(every))]
    node = about
    for step in path:
        node = node[step]
    if rng.random() < 0.15:
        del node[last]
        return json.dumps(about)
    odd = str(rng.choice(HOSTILE))
    node[last] = "THE ODD ONE"
    return json.dumps(about).replace('"THE ODD ONE"', odd)


def mutations(folder, name):
    rng, about = np.random.default_rng(0), json.loads((folder / name).read_text())
    for _ in range(MUTATIONS):
        rewrite(folder, name, mutate(about, rng).encode())
        yield


# --- JSON


def test_what_serves_is_refused_or_gives_finite_answers_whatever_its_json_holds(saved, shots):
    assert use(saved, shots)
    loaded = [use(saved, shots) for _ in mutations(saved, "serving.json")]
    assert len(loaded) == MUTATIONS
    assert sum(loaded) < MUTATIONS / 2  # most of it matters


def test_an_origin_is_refused_or_whole_whatever_its_json_holds(saved, rich):
    refused = 0
    for _ in mutations(saved, "origin.json"):
        try:
            origin = load_origin(saved)
        except ModelError:
            refused += 1
            continue
        assert len(origin.clusters.names) == 3
        assert np.isfinite([origin.similarity.sparsity, origin.similarity.steps, origin.similarity.gap]).all()
        try:
            found = MetricModel(rich.serving, origin).nearest_tasks(["lamp"], 1)
        except ModelError:
            continue
        assert np.isfinite(found[0][1])
    assert refused > MUTATIONS / 2


def test_a_classifier_is_refused_or_gives_finite_answers_whatever_its_json_holds(rich, shots, tmp_path):
    first = rich.adapt(shots.texts[3:9], shots.labels[3:9], reject=0.1, rejected="none")
    first.save(tmp_path / "clf")
    refused = 0
    for _ in mutations(tmp_path / "clf", "classifier.json"):
        try:
            classifier = load_classifier(tmp_path / "clf", rich)
        except ModelError:
            refused += 1
            continue
        assert np.isfinite(classifier.predict_proba(NEW)).all()
        assert len(classifier.predict(NEW)) == 4
    assert refused > MUTATIONS / 3


def test_files_that_are_something_else_altogether_are_refused(saved, shots):
    for name in ("serving.json", "serving.safetensors", "origin.json", "origin.safetensors"):
        raw = (saved / name).read_bytes()
        for payload in (b"", b"not it", b"[]", b"{}", b"null", b"\xff" * 9, DEEP.encode(), b"\x00" * 100):
            rewrite(saved, name, payload)
            with pytest.raises(ModelError, match=r"does not hold together: .*Save the model again"):
                load_model(saved).origin.clusters  # noqa: B018 - whether it can be read at all
        rewrite(saved, name, raw)
    assert use(saved, shots)


# --- numbers out of range


def test_numbers_out_of_range_are_refused(saved):
    about = json.loads((saved / "serving.json").read_text())
    for path in (
        ("metrics", 0, "temperature"),
        ("settings", "prior_shots"),
        ("settings", "likelihood_temperature"),
        ("settings", "shares", "learned"),
        ("settings", "threshold"),
        ("trust", "scope", "offset"),
        ("trust", "scope", "length"),
        ("trust", "scope", "weights", "letters", 0),
        ("trust", "calibration", "offset"),
        ("trust", "calibration", "leave_one_out"),
    ):
        for odd in ("NaN", "1e308", "-1e308", "Infinity"):
            changed = json.loads(json.dumps(about))
            node = changed
            for step in path[:-1]:
                node = node[step]
            if path[-1] == "threshold" and odd == "Infinity":
                continue  # which means: always fall back
            node[path[-1]] = odd if path[-1] == "threshold" else "THE ODD ONE"
            rewrite(saved, "serving.json", json.dumps(changed).replace('"THE ODD ONE"', odd).encode())
            with pytest.raises(ModelError, match="does not hold together"):
                load_model(saved)


# --- tensors


def odd_tensors(tensor):
    """The same tensor in wrong shapes and types, and with values that no calculation bears."""
    yield tensor.reshape(-1)[:-1]
    yield tensor[None]
    yield tensor.reshape(-1)
    yield tensor[:0]
    yield np.moveaxis(tensor, -1, 0)
    yield np.zeros(tensor.shape, np.int8)
    yield tensor.astype(np.float64)
    for value in (np.nan, np.inf, -1.0, 1e9, 1e38, 1e300, 2**62):
        for kind in ("f2", "f4", "f8", "i8", "u8"):
            with np.errstate(all="ignore"):
                odd = np.full(tensor.shape, value).astype(kind)
            yield odd


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_tensors_that_are_not_what_they_should_be_are_refused_or_give_finite_answers(saved, shots):
    tensors = load((saved / "serving.safetensors").read_bytes())
    refused = tried = 0
    for name, tensor in tensors.items():
        for odd in odd_tensors(tensor):
            rewrite(saved, "serving.safetensors", save({**tensors, name: np.ascontiguousarray(odd)}))
            refused += not use(saved, shots)
            tried += 1
        rewrite(saved, "serving.safetensors", save({key: one for key, one in tensors.items() if key != name}))
        assert not use(saved, shots), name
    assert refused > tried / 2


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_matrices_that_are_not_what_they_should_be_are_refused_or_whole(saved):
    matrices = load((saved / "origin.safetensors").read_bytes())
    for name, matrix in matrices.items():
        for odd in odd_tensors(matrix):
            rewrite(saved, "origin.safetensors", save({**matrices, name: np.ascontiguousarray(odd)}))
            try:
                origin = load_origin(saved)
            except ModelError:
                continue
            assert origin.clusters.labels.max() < 3
            assert origin.transfer.scores.shape == (3, 3)
            assert np.isfinite(origin.similarity.low_rank).all()
            assert np.isfinite(origin.centres.rows).all()
        rewrite(saved, "origin.safetensors", save({key: one for key, one in matrices.items() if key != name}))
        with pytest.raises(ModelError, match="does not hold together"):
            load_origin(saved)
