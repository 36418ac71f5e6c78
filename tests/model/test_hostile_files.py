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
def saved(rich, tmp_path):
    rich.save(tmp_path / "model")
    return tmp_path / "model"


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


def use(folder, shots):
    """Load a model and call every method; whether it could be used."""
    try:
        model = load_model(folder)
        model.fingerprint  # noqa: B018 - it must have one
        classifier = model.adapt(shots.texts, shots.labels)
    except (ModelError, InputError):
        return False
    with np.errstate(all="ignore"):
        assert np.isfinite(classifier.predict_proba(NEW)).all()
        assert np.isfinite(classifier.scope_proba(NEW)).all()
        assert np.isfinite(classifier.explain("lamp").probability)
    return True


def paths(node, at=()):
    """The paths of the values of a JSON document."""
    yield at
    for key, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from paths(child, (*at, key))


def mutate(about, rng):
    """One value of a document replaced by something else, or removed."""
    about = json.loads(json.dumps(about))
    known = [path for path in paths(about) if path]
    *path, last = known[rng.integers(len(known))]
    node = about
    for step in path:
        node = node[step]
    if rng.random() < 0.15:
        del node[last]
        return json.dumps(about)
    odd = str(rng.choice(HOSTILE))
    node[last] = "ODD VALUE"
    return json.dumps(about).replace('"ODD VALUE"', odd)


def mutations(folder, name):
    rng, (text, tensors) = np.random.default_rng(0), split((folder / name).read_bytes())
    for _ in range(MUTATIONS):
        rewrite(folder, name, save(tensors, {"value": mutate(json.loads(text), rng)}))
        yield


# --- JSON


def test_a_predictor_is_refused_or_gives_finite_answers_whatever_its_json_holds(saved, shots):
    assert use(saved, shots)
    used = [use(saved, shots) for _ in mutations(saved, "predictor.safetensors")]
    assert sum(used) < MUTATIONS / 2  # most of it matters


def test_an_origin_is_refused_or_complete_whatever_its_json_holds(saved):
    refused = 0
    for _ in mutations(saved, "origin.safetensors"):
        try:
            origin = load_origin(saved)
        except ModelError:
            refused += 1
            continue
        assert len(origin.clusters.names) == 3
        assert np.isfinite([origin.similarity.sparsity, origin.similarity.steps, origin.similarity.gap]).all()
    assert refused > MUTATIONS / 2


def test_a_classifier_is_refused_or_gives_finite_answers_whatever_its_json_holds(rich, shots, tmp_path):
    first = rich.adapt(shots.texts[3:9], shots.labels[3:9], reject=0.1, rejected="none")
    first.save(tmp_path / "clf")
    refused = 0
    for _ in mutations(tmp_path / "clf", "classifier.safetensors"):
        try:
            classifier = load_classifier(tmp_path / "clf", rich)
        except ModelError:
            refused += 1
            continue
        assert np.isfinite(classifier.predict_proba(NEW)).all()
        assert len(classifier.predict(NEW)) == 4
    assert refused > MUTATIONS / 3


@pytest.mark.parametrize("name", ["predictor.safetensors", "origin.safetensors"])
def test_files_of_another_format_are_refused(saved, name):
    for payload in (b"", b"{}", b"\xff" * 9, DEEP.encode(), b"\x00" * 100, save({}), save({}, {"value": DEEP}),
                    save({}, {"value": "null"})):  # fmt: skip
        rewrite(saved, name, payload)
        with pytest.raises(ModelError, match=r"is inconsistent: .*Save the model again"):
            load_model(saved).origin.clusters  # noqa: B018 - whether it can be read at all


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
def test_numbers_out_of_range_are_refused(saved, path):
    text, tensors = split((saved / "predictor.safetensors").read_bytes())
    for odd in ("NaN", "1e308", "-1e308", "Infinity"):
        tree = json.loads(text)
        *parents, last = path
        node = tree["predictor"]
        for step in parents:
            node = node[step]
        node[last] = "ODD VALUE"
        changed = json.dumps(tree).replace('"ODD VALUE"', odd)
        rewrite(saved, "predictor.safetensors", save(tensors, {"value": changed}))
        with pytest.raises(ModelError, match="is inconsistent"):
            load_model(saved)


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
            changed = others if odd is None else {**others, array: np.ascontiguousarray(odd)}
            rewrite(folder, name, save(changed, {"value": text}))
            yield odd


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_arrays_of_a_predictor_are_refused_or_give_finite_answers(saved, shots):
    used = [(odd is None, use(saved, shots)) for odd in damaged_arrays(saved, "predictor.safetensors")]
    assert (True, True) not in used  # an array is missing
    assert sum(was_used for _, was_used in used) < len(used) / 2


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_arrays_of_an_origin_are_refused_or_complete(saved):
    for odd in damaged_arrays(saved, "origin.safetensors"):
        try:
            origin = load_origin(saved)
        except ModelError:
            continue
        assert odd is not None
        assert origin.clusters.labels.max() < 3
        assert origin.transfer.scores.shape == (3, 3)
        assert np.isfinite(origin.similarity.low_rank).all()
