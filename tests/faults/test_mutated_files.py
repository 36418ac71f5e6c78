"""Files that another program wrote, with valid checksums: a clear refusal, or answers that are finite.

Models, classifiers, runs, recipes, and banks of each format; with MANYMETRICS_DAMAGED, so many damaged files.
"""

import hashlib
import json
import os
import resource
import shutil
import signal
import sys
import traceback
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import damage
import numpy as np
import pytest
from operations import Learn
from safetensors.numpy import save

import manymetrics as mm
from manymetrics.encode.vectors import from_words
from manymetrics.errors import ModelError
from manymetrics.measure.heads import Head
from manymetrics.model import MetricModel, load_classifier, load_model, load_origin
from manymetrics.specialize import LabelHead, Metric
from manymetrics.store import runs
from manymetrics.store.files import DIGEST, with_checksum
from planted_bank import planted_bank

COUNT = int(os.environ.get("MANYMETRICS_DAMAGED", "400"))
MEMORY, SECONDS = 2 * 2**30, 30  # that one file may take
NEW = ["lamp on", "any music", "", "é \x00 😀"]
LABELS = ("lamp", "meeting", "music")
RASA = """nlu:
- intent: lamp
  examples: |
    - turn on the [lamp](thing)
    - lamp on please
- intent: music
  examples: |
    - put on [music]{"entity": "thing"}
    - play that song
"""


@dataclass(frozen=True)
class Target:
    """A kind of file: which files it may be, its share of a thousand, how it is damaged, and what reads it."""

    pattern: str
    share: int
    way: object  # (bytes, generator) -> bytes
    use: object  # folder -> None
    write: object = Path.write_bytes


def write_with_checksum(path, payload):
    """Change a file and the checksum of its folder with it, as another program would."""
    path.write_bytes(payload)
    checksums = path.with_name("checksums.json")
    content = json.loads(checksums.read_text())
    content["files"][path.name] = hashlib.sha256(payload).hexdigest()
    checksums.write_text(json.dumps(content))


def write_job(path, payload):
    path.write_bytes(with_checksum(payload, path.name))


def job(raw, rng):
    """The result of a job without its checksum, damaged."""
    payload = raw[DIGEST:]
    return damage.either(damage.json_of if payload[:1] == b"{" else damage.packed)(payload, rng)


def require_finite(classifier):
    with np.errstate(all="ignore"):
        assert np.isfinite(classifier.predict_proba(NEW)).all(), "an answer is not finite"
        assert np.isfinite(classifier.scope_proba(NEW)).all(), "a scope is not finite"
        assert np.isfinite(classifier.explain("lamp").probability), "an explanation is not finite"
    assert len(classifier.predict(NEW)) == len(NEW)


def use_origin(folder):
    for place in ("model", "run/learned"):
        origin = load_origin(folder / place)
        assert len(list(origin.clusters)) <= len(origin.clusters.names)
        assert origin.recipe.as_toml()
        assert np.isfinite(origin.similarity.low_rank).all()
        assert np.isfinite([origin.similarity.sparsity, origin.similarity.steps, origin.similarity.gap]).all()


def use_bank(folder, ending):
    bank = mm.load_tasks(folder / "banks" / ending)
    assert all(len(task.train) for task in bank)
    mm.import_tasks(next((folder / "banks" / ending).glob("odd*")))


class Files:
    """A model with every kind of encoder and metric, a classifier, a run, a recipe and banks, and what uses them."""

    def __init__(self, folder, model, shots):
        words = model.metrics[2].encoder
        known = from_words("known", ["lamp", "music", "meeting"], np.eye(3, dtype="f4"))
        shared = LabelHead(Head(np.ones((3, 3), "f4"), np.zeros(3, "f4")), LABELS, np.full(3, 1 / 3, "f4"))
        more = (
            Metric("known", "frozen", known, "matching", 9.0),
            Metric("tuned", "tuned", words, "prototypical", 9.0, ("a", "b", "c")),
            Metric("other-labels", "linear", known, tasks=("a", "b", "c"), shared=shared),
        )
        self.model = MetricModel(replace(model.predictor, metrics=(*model.metrics, *more)), model.origin)
        self.folder, self.shots = folder / "files", shots
        self.model.save(self.folder / "model")
        adapted = self.model.adapt(shots.texts[3:9], shots.labels[3:9], ["go away"], reject=0.1, rejected="none")
        adapted.save(self.folder / "classifier")
        self.learn = Learn(folder)
        (self.folder / "recipe.toml").write_text(self.learn.recipe.as_toml(explained=True), encoding="utf-8")
        self.use_run(self.folder)
        self.write_banks()

    def write_banks(self):
        """A bank in each format, with a sound task beside the one that is damaged."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        pairs = list(zip(self.shots.texts, self.shots.labels, strict=True))
        rows = [{"text": text, "label": label} for text, label in pairs]
        contents = {
            "tsv": "".join(f"{text}\t{label}\n" for text, label in pairs),
            "csv": "text,label\n" + "".join(f'"{text}",{label}\n' for text, label in pairs),
            "jsonl": "".join(json.dumps(row) + "\n" for row in rows),
            "yml": RASA,
            "json": json.dumps(
                {"assets": {"utterances": [{"text": t, "intent": i, "dataset": "Train"} for t, i in pairs]}}
            ),
            "parquet": "",
        }
        for ending, content in contents.items():
            mm.write_bank(planted_bank(1), self.folder / "banks" / ending)
            name = f"odd.{ending}" if ending in ("yml", "json") else f"odd.train.{ending}"
            (self.folder / "banks" / ending / name).write_text(content, encoding="utf-8")
        pq.write_table(pa.Table.from_pylist(rows), self.folder / "banks" / "parquet" / "odd.train.parquet")

    def use_model(self, folder):
        require_finite(load_model(folder / "model").adapt(self.shots.texts, self.shots.labels))

    def use_classifier(self, folder):
        require_finite(load_classifier(folder / "classifier", self.model))

    def use_run(self, folder):
        model = mm.learn_metrics(self.learn.bank, self.learn.recipe, run=folder / "run")
        require_finite(model.adapt(self.shots.texts, self.shots.labels))

    def targets(self):
        packed, text = damage.either(damage.packed), damage.either(damage.text_of)
        formats = {"tsv": text, "csv": text, "yml": text, "json": damage.either(damage.json_of),
                   "jsonl": damage.either(damage.json_lines), "parquet": damage.some_bytes}  # fmt: skip
        return [
            Target("model/predictor.safetensors", 250, packed, self.use_model, write_with_checksum),
            Target("model/origin.safetensors", 150, packed, use_origin, write_with_checksum),
            Target("classifier/classifier.safetensors", 125, packed, self.use_classifier, write_with_checksum),
            Target("run/jobs/*/*/*", 110, job, self.use_run, write_job),
            Target("run/*.json", 40, damage.either(damage.json_of), self.use_run),
            Target("run/learned/origin.safetensors", 30, packed, use_origin, write_with_checksum),
            Target("recipe.toml", 50, damage.either(damage.toml), lambda f: mm.Recipe.load(f / "recipe.toml")),
            Target("banks/tsv/manifest.json", 35, damage.either(damage.json_of), lambda f: use_bank(f, "tsv")),
            *(Target(f"banks/{ending}/odd*", 30, way, lambda f, ending=ending: use_bank(f, ending))
              for ending, way in formats.items()),
        ]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory, make_model, shots):
    for needed in ("onnx", "pyarrow", "yaml"):
        pytest.importorskip(needed)
    with warnings.catch_warnings(action="ignore"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "SECOND_TRY", 0.0)
        yield Files(tmp_path_factory.mktemp("mutated"), make_model(shared_labels=LABELS, letter_buckets=64), shots)


@pytest.fixture
def copy(files, tmp_path):
    return shutil.copytree(files.folder, tmp_path / "files")


@pytest.fixture
def limited():
    """A process that may take two gigabytes more, and that a file cannot occupy for long."""

    def late(*_):
        raise TimeoutError(f"it took longer than {SECONDS} s")

    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGALRM, late)
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    signal.signal(signal.SIGALRM, handler)


def outcome_of(use, folder):
    """Whether what a folder holds is refused or used; or what is wrong."""
    signal.alarm(SECONDS)
    try:
        use(folder)
    except mm.ManyMetricsError:
        return "refused"
    except Exception as problem:
        last = traceback.extract_tb(problem.__traceback__)[-1]
        return f"{type(problem).__name__}: {str(problem)[:120]!r} ({Path(last.filename).name}:{last.lineno})"
    finally:
        signal.alarm(0)
    return "used"


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of the process")
@pytest.mark.usefixtures("limited")
def test_damaged_files_of_every_kind_are_refused_or_give_finite_answers(files, copy):
    found = defaultdict(Counter)
    for target in files.targets():
        top = target.pattern.partition("/")[0]
        paths = [path for path in sorted(files.folder.glob(target.pattern)) if path.is_file()]
        for number in range(max(1, round(COUNT * target.share / 1000))):
            rng = np.random.default_rng([number, *target.pattern.encode()])
            path = damage.one_of(paths, rng)
            raw = target.way(path.read_bytes(), rng)
            target.write(copy / path.relative_to(files.folder), raw)
            found[target.pattern][outcome_of(target.use, copy)] += 1
            shutil.rmtree(copy / top) if "/" in target.pattern else None
            shutil.copytree(files.folder / top, copy / top) if "/" in target.pattern else None
    total = sum(found.values(), Counter())
    assert set(total) == {"refused", "used"}, found
    assert total["refused"] > COUNT / 3
    assert total["used"] > COUNT / 5
    for pattern in ("model/predictor.safetensors", "model/origin.safetensors", "classifier/classifier.safetensors"):
        assert found[pattern]["refused"] > sum(found[pattern].values()) / 3, "most of it matters"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize(("name", "share"), [("predictor", 1 / 2), ("origin", 0)])
def test_a_model_is_refused_or_gives_finite_answers_whatever_its_arrays_hold(files, copy, name, share):
    path, use = copy / "model" / f"{name}.safetensors", files.use_model if name == "predictor" else use_origin
    header, arrays = damage.split(path.read_bytes())
    found = Counter()
    for array, tensor in arrays.items():
        others = {key: value for key, value in arrays.items() if key != array}
        write_with_checksum(path, save(others, header["__metadata__"]))
        assert outcome_of(use, copy) == "refused", "an array is missing"
        for odd in damage.odd_tensors(tensor):
            write_with_checksum(path, save({**others, array: np.ascontiguousarray(odd)}, header["__metadata__"]))
            found[outcome_of(use, copy)] += 1
    assert set(found) <= {"refused", "used"}
    assert found["refused"] > share * sum(found.values())


def test_files_of_another_format_are_refused(files, copy):
    odd = (b"", b"{}", b"\xff" * 9, damage.DEEP.encode(), b"\x00" * 100, save({}), save({}, {"value": damage.DEEP}),
           save({}, {"value": "null"}))  # fmt: skip
    for name, use in (("origin", use_origin), ("predictor", files.use_model)):
        for payload in odd:
            write_with_checksum(copy / "model" / f"{name}.safetensors", payload)
            with pytest.raises(ModelError, match=r"is inconsistent: .*Save the model again"):
                use(copy)


@pytest.mark.parametrize(
    "path",
    [("metrics", 0, "temperature"), ("scope", "coefficients", 0), ("scope", "coefficients", 6),
     ("calibration", "intercept"), ("calibration", "own"), ("calibration", "max_classes")],
)  # fmt: skip
def test_numbers_out_of_range_are_refused(files, copy, path):
    file = copy / "model" / "predictor.safetensors"
    header, arrays = damage.split(file.read_bytes())
    for odd in ("NaN", "1e308", "-1e308", "Infinity"):
        text = damage.changed(header["__metadata__"]["value"], ("predictor", *path), odd).decode()
        write_with_checksum(file, save(arrays, {"value": text}))
        with pytest.raises(ModelError, match="is inconsistent"):
            load_model(copy / "model")


def test_a_job_that_has_a_valid_checksum_but_holds_numbers_that_nothing_bears_is_done_again(files, copy):
    jobs = sorted((copy / "run" / "jobs" / "specialize").glob("*/*"))
    transfers = sorted((copy / "run" / "jobs" / "measure-transfer").glob("*/*"))
    before = {path: path.read_bytes() for path in (*jobs, *transfers)}
    for path in jobs:
        header, arrays = damage.split(before[path][DIGEST:])
        odd = {name: np.full_like(tensor, np.nan) for name, tensor in arrays.items()}
        write_job(path, save(odd, metadata=header["__metadata__"]))
    for path in transfers:
        write_job(path, b"[" * 100_000)
    files.use_run(copy)
    assert {path: path.read_bytes() for path in before} == before


def test_a_job_that_has_a_valid_checksum_but_something_else_is_said_in_a_sentence(files, copy):
    path = sorted((copy / "run" / "jobs" / "specialize").glob("*/*"))[0]
    write_job(path, save({"other": np.zeros(3, "f4")}))
    with pytest.raises(ModelError, match=r"The results stored in .* cannot be used: .*Give another folder"):
        files.use_run(copy)
