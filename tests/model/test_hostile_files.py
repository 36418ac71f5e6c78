"""Files that another program wrote, with valid checksums: a clear refusal, or answers that are finite."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load, save

from manymetrics.encode.vectors import from_words
from manymetrics.errors import InputError, ModelError
from manymetrics.measure.heads import Head
from manymetrics.model import MetricModel, load_classifier, load_model, load_origin
from manymetrics.specialize import LabelHead, Metric

MUTATIONS = 150
NEW = ["lamp on", "any music", "", "é \x00 😀"]
LABELS = ("lamp", "meeting", "music")
DEEP = "[" * 100_000 + "]" * 100_000
NUMBERS = ["-1", "0", "1", "3", "2.5", "-1e308", "1e308", "1e400", "NaN", "-Infinity", "1" + "0" * 25, "1" + "0" * 400]
OTHERS = ["null", "true", "[]", "{}", '""', '"x"', '"1"', "[[]]", "[null]", '["x", "x"]', '{"x": {"x": []}}', DEEP]
HOSTILE = [*NUMBERS, *OTHERS]


@pytest.fixture(scope="module")
def rich(make_model):
    """A model with every kind of encoder and metric."""
    model = make_model(shared_labels=LABELS)
    words = model.metrics[2].encoder
    known = from_words("known", ["lamp", "music", "meeting"], np.eye(3, dtype="f4"))
    head = Head(np.ones((3, 3), "f4"), np.zeros(3, "f4"))
    shared = LabelHead(head, LABELS, np.full(3, 1 / 3, "f4"))
    more = (
        Metric("known", "frozen", known, "matching", 9.0),
        Metric("tuned", "tuned", words, "prototypical", 9.0, ("a", "b", "c")),
        Metric("other-labels", "linear", known, tasks=("a", "b", "c"), shared=shared),
    )
    return MetricModel(replace(model.predictor, metrics=(*model.metrics, *more)), model.origin)


@pytest.fixture
def folders(rich, shots, tmp_path):
    """The folders of a model and of a classifier, and for each file a function that uses it."""
    rich.save(tmp_path / "model")
    rich.adapt(shots.texts[3:9], shots.labels[3:9], reject=0.1, rejected="none").save(tmp_path / "classifier")
    return {
        "predictor": (tmp_path / "model", lambda: use_model(tmp_path / "model", shots)),
        "origin": (tmp_path / "model", lambda: use_origin(tmp_path / "model")),
        "classifier": (tmp_path / "classifier", lambda: use_classifier(tmp_path / "classifier", rich)),
    }


def use_model(folder, shots):
    model = load_model(folder)
    model.fingerprint  # noqa: B018 - it must have one
    classifier = model.adapt(shots.texts, shots.labels)
    assert np.isfinite(classifier.predict_proba(NEW)).all()
    assert np.isfinite(classifier.scope_proba(NEW)).all()
    assert np.isfinite(classifier.explain("lamp").probability)


def use_origin(folder):
    origin = load_origin(folder)
    assert len(origin.clusters.names) == 3
    assert origin.clusters.labels.max() < 3
    assert origin.transfer.scores.shape == (3, 3)
    assert np.isfinite(origin.similarity.low_rank).all()
    assert np.isfinite([origin.similarity.sparsity, origin.similarity.steps, origin.similarity.gap]).all()


def use_classifier(folder, model):
    classifier = load_classifier(folder, model)
    assert np.isfinite(classifier.predict_proba(NEW)).all()
    assert len(classifier.predict(NEW)) == 4


def is_refused(use):
    try:
        with np.errstate(all="ignore"):
            use()
    except (ModelError, InputError):
        return True
    return False


def rewrite(folder, name, payload):
    """Change a file and its checksum with it, as another program would."""
    (folder / name).write_bytes(payload)
    checksums = json.loads((folder / "checksums.json").read_text())
    checksums["files"][name] = hashlib.sha256(payload).hexdigest()
    (folder / "checksums.json").write_text(json.dumps(checksums))


def split(payload):
    """The JSON text and the arrays of a packed file."""
    header = json.loads(payload[8 : 8 + int.from_bytes(payload[:8], "little")])
    return header["__metadata__"]["value"], load(payload)


def paths(node, at=()):
    """The paths of the values of a JSON document."""
    yield at
    for key, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from paths(child, (*at, key))


def changed(about, path, odd):
    """A document with the JSON `odd` at a path; without that value if it is None."""
    tree = node = json.loads(json.dumps(about))
    *parents, last = path
    for step in parents:
        node = node[step]
    if odd is None:
        del node[last]
    else:
        node[last] = "ODD VALUE"
    return json.dumps(tree).replace('"ODD VALUE"', odd or "")


def mutate(about, rng):
    """One value of a document replaced by something else, or removed."""
    known = [path for path in paths(about) if path]
    path = known[rng.integers(len(known))]
    return changed(about, path, None if rng.random() < 0.15 else str(rng.choice(HOSTILE)))


def mutations(folder, name):
    rng, (text, tensors) = np.random.default_rng(0), split((folder / name).read_bytes())
    for _ in range(MUTATIONS):
        rewrite(folder, name, save(tensors, {"value": mutate(json.loads(text), rng)}))
        yield


# --- JSON


@pytest.mark.parametrize(("name", "share"), [("predictor", 1 / 2), ("origin", 1 / 2), ("classifier", 1 / 3)])
def test_a_file_is_refused_or_gives_finite_answers_whatever_its_json_holds(folders, name, share):
    folder, use = folders[name]
    assert not is_refused(use)
    refused = [is_refused(use) for _ in mutations(folder, f"{name}.safetensors")]
    assert sum(refused) > MUTATIONS * share, "most of it matters"


@pytest.mark.parametrize("name", ["predictor", "origin"])
def test_files_of_another_format_are_refused(folders, name):
    folder, use = folders[name]
    for payload in (b"", b"{}", b"\xff" * 9, DEEP.encode(), b"\x00" * 100, save({}), save({}, {"value": DEEP}),
                    save({}, {"value": "null"})):  # fmt: skip
        rewrite(folder, f"{name}.safetensors", payload)
        with pytest.raises(ModelError, match=r"is inconsistent: .*Save the model again"):
            use()


@pytest.mark.parametrize(
    "path",
    [
        ("metrics", 0, "temperature"),
        ("scope", "coefficients", 0),
        ("scope", "coefficients", 6),
        ("calibration", "intercept"),
        ("calibration", "own"),
        ("calibration", "max_classes"),
    ],
)
def test_numbers_out_of_range_are_refused(folders, path):
    saved, use = folders["predictor"]
    text, tensors = split((saved / "predictor.safetensors").read_bytes())
    for odd in ("NaN", "1e308", "-1e308", "Infinity"):
        document = changed(json.loads(text), ("predictor", *path), odd)
        rewrite(saved, "predictor.safetensors", save(tensors, {"value": document}))
        with pytest.raises(ModelError, match="is inconsistent"):
            use()


# --- arrays


def odd_tensors(tensor):
    """The same tensor in wrong shapes and types, and with values that no calculation can use."""
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


def damaged_arrays(folder, name):
    """The file of a folder with each of its arrays replaced by odd ones in turn, and removed last (None)."""
    text, tensors = split((folder / name).read_bytes())
    for array, tensor in tensors.items():
        for odd in (*odd_tensors(tensor), None):
            others = {key: value for key, value in tensors.items() if key != array}
            replaced = {} if odd is None else {array: np.ascontiguousarray(odd)}
            rewrite(folder, name, save({**others, **replaced}, {"value": text}))
            yield odd


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "share"), [("predictor", 1 / 2), ("origin", 0)])
def test_a_file_is_refused_or_gives_finite_answers_whatever_its_arrays_hold(folders, name, share):
    folder, use = folders[name]
    refused = [(odd is None, is_refused(use)) for odd in damaged_arrays(folder, f"{name}.safetensors")]
    assert (True, False) not in refused, "an array is missing"
    assert sum(was_refused for _, was_refused in refused) > len(refused) * share
