"""A learned model, and the folder it is saved in.

    model/config.json              format, versions, recipe, rules, clusters, what each metric is
    model/metrics.safetensors      filters, heads, temperatures' encoders
    model/measured.safetensors     S, X and E, the clusters, and the centres of the tasks' texts
    model/vectors.safetensors      the word vectors, so that a model needs nothing but itself
    model/tokenizer.json
    model/README.md                a model card
    model/checksums.json           SHA-256 of every file above

A finished run keeps the first and the third of these, with their checksums, in `learned/`. Nothing in a folder is
executed on loading, no class or module is looked up by a name from a file, and the network is not used.
"""

import hashlib
import json
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from manymetrics.encode.centres import centre
from manymetrics.encode.encoders import (
    ConvolutionEncoder,
    LexicalEncoder,
    MeanEncoder,
    encoder_tensors,
    open_encoder,
    open_mean_encoder,
)
from manymetrics.encode.phrases import PhraseEncoder
from manymetrics.encode.vectors import TABLE_FILE, TOKENIZER_FILE, WordVectors
from manymetrics.errors import DataError, ManyMetricsError, ModelError, NotEnoughExamples
from manymetrics.measure.heads import Head
from manymetrics.recipe import Recipe
from manymetrics.specialize.metric import FROZEN, LEXICAL, LINEAR, TUNED, Metric, SharedLabelMetric, SimilarityMetric
from manymetrics.store.card import model_card
from manymetrics.store.classifiers import read_classifier, write_classifier
from manymetrics.store.files import require_place, write_folder
from manymetrics.store.learned import Learned, learned_from
from manymetrics.values import Clusters, Floats, Similarity, TransferMatrix
from manymetrics.weigh.calibration import Calibration
from manymetrics.weigh.classifier import FewShotClassifier
from manymetrics.weigh.rules import Rules
from manymetrics.weigh.scope import Scope
from manymetrics.weigh.trust import Trust

FORMAT = 3
LIBRARY = "manymetrics"
CONFIG, METRICS, MEASURED, CARD, CHECKSUMS = (
    "config.json",
    "metrics.safetensors",
    "measured.safetensors",
    "README.md",
    "checksums.json",
)
PHRASE_RARITY = "phrases/rarity"
FILES = (CONFIG, METRICS, MEASURED, TABLE_FILE, TOKENIZER_FILE, CARD)
ABOUT = (CONFIG, MEASURED)  # what a report needs
LARGEST = 4 * 2**30  # bytes of one file
_BROKEN = (KeyError, ValueError, TypeError, IndexError, AttributeError, SafetensorError, ManyMetricsError)


@dataclass(frozen=True, eq=False)
class MetricModel:
    """The meta-model: several metrics, the rules by which a new task mixes them, and how they came about."""

    vectors: WordVectors
    metrics: tuple[Metric, ...]
    rules: Rules
    clusters: Clusters
    transfer: TransferMatrix
    similarity: Similarity
    recipe: Recipe
    held_out: tuple[str, ...] = ()  # tasks kept from the metrics' training, on which the rules were chosen
    bank: str = ""  # the fingerprint of the tasks it was learned from
    centres: Floats | None = None  # (tasks, dimensions) float32: where each task's texts lie; old models lack it
    trust: Trust = field(default_factory=Trust)

    def adapt(self, texts: Iterable[str], labels: Iterable[Any], **options: Any) -> FewShotClassifier:
        """A classifier for a new task from a few examples of it."""
        return FewShotClassifier(self, **options).fit(texts, labels)

    def save(self, path: str | Path) -> None:
        """Write the model to a folder, which appears whole or not at all."""
        files = {**self.vectors.as_files(), **_about_files(self), METRICS: _metric_file(self)}
        files[CARD] = model_card(self.recipe, self.clusters, self.rules, bank=self.bank).encode()
        write_folder(Path(path), _with_checksums(files))

    def nearest_tasks(self, texts: Iterable[str], count: int = 5) -> list[tuple[str, float]]:
        """The tasks of the bank whose texts lie nearest to these, with the cosine between the two centres."""
        if self.centres is None:
            raise ModelError(
                "This model does not know where its tasks' texts lie. Learn it again to ask for the nearest."
            )
        tokens = self.vectors.read(texts)
        if not len(tokens):
            raise NotEnoughExamples("Found no texts to be near to. Give at least one.")
        cosines = self.centres @ centre(tokens, self.vectors.table)  # (tasks,)
        nearest = np.argsort(-cosines, kind="stable")[:count]
        return [(self.clusters.names[place], float(cosines[place])) for place in nearest]

    @cached_property
    def fingerprint(self) -> str:
        """The hash of all that its answers depend on; the same before saving and after loading."""
        digest = hashlib.sha256(json.dumps(_what_answers(self), sort_keys=True).encode())
        for name, payload in sorted({**self.vectors.as_files(), METRICS: _metric_file(self)}.items()):
            digest.update(name.encode() + payload)
        return digest.hexdigest()

    def save_classifier(self, path: str | Path, about: dict[str, Any]) -> None:
        """Write a classifier's examples and settings to a folder of their own, with the fingerprint of this model."""
        write_classifier(Path(path), {"model": self.fingerprint, **about})

    @staticmethod
    def require_place(path: str | Path) -> None:
        """Refuse a place that `save` would refuse, before an hour of learning rather than after it."""
        require_place(Path(path), (*FILES, CHECKSUMS))

    def __deepcopy__(self, memo: dict[int, Any]) -> "MetricModel":
        """Itself: nothing in it changes, so copies of a classifier can share it."""
        return self


def load_model(path: str | Path) -> MetricModel:
    """Read a saved model; refuses one that is damaged, foreign, or from a newer version."""
    folder = Path(path)
    files = _read_files(folder, FILES)
    config = _read_config(folder, files)
    try:
        return _assemble(config, files)
    except _BROKEN as problem:
        raise ModelError(f"{folder} does not hold together: {problem}. Save the model again.") from problem


def save_learned(model: MetricModel, path: str | Path) -> None:
    """Write what a report needs of a model to a folder, which appears whole or not at all."""
    write_folder(Path(path), _with_checksums(_about_files(model)))


def load_learned(path: str | Path) -> Learned:
    """Read what `save_learned` wrote, or the same of a model folder; refuses what `load_model` refuses."""
    folder = Path(path)
    files = _read_files(folder, ABOUT)
    config = _read_config(folder, files)
    try:
        return learned_from(config, load(files[MEASURED]))
    except _BROKEN as problem:
        raise ModelError(f"{folder} does not hold together: {problem}. Save the model again.") from problem


def _read_config(folder: Path, files: dict[str, bytes]) -> dict[str, Any]:
    try:
        config = json.loads(files[CONFIG])
        library, form = str(config["library"]), int(config["format"])
    except _BROKEN as problem:
        raise ModelError(f"{folder} does not hold together: {problem!r}. Save the model again.") from problem
    _check_origin(folder, library=library, form=form)
    return dict(config)


def _check_origin(folder: Path, *, library: str, form: int) -> None:
    if library != LIBRARY:
        raise ModelError(f"{folder} holds a model of {library!r}, not of manymetrics. Give another folder.")
    if form > FORMAT:
        raise ModelError(
            f"{folder} has format {form}, and this version of manymetrics reads up to {FORMAT}. "
            "Upgrade manymetrics to load it."
        )
    if form < FORMAT:
        raise ModelError(
            f"{folder} has format {form}, whose rules of the mix this version of manymetrics would misread: it reads "
            f"format {FORMAT}. Learn the model again, or load it with the version that saved it."
        )


def _read_files(folder: Path, names: Iterable[str]) -> dict[str, bytes]:
    """These files of a model, each checked against its checksum before anything is made of it."""
    if not folder.is_dir():
        raise ModelError(f"There is no model folder {folder}. Give the folder that `learn --out` or `save` wrote.")
    if not (folder / CHECKSUMS).is_file():
        raise ModelError(f"{folder} is not a model: it has no {CHECKSUMS}. Give a folder that `learn --out` wrote.")
    try:
        sums = json.loads((folder / CHECKSUMS).read_text(encoding="utf-8"))
        wanted = {name: str(sums[name]) for name in names}
    except (ValueError, KeyError, TypeError) as problem:
        raise ModelError(f"{folder / CHECKSUMS} is damaged. Copy the model again from where it was saved.") from problem
    files = {}
    for name, digest in wanted.items():
        path = folder / name
        if not path.is_file() or path.stat().st_size > LARGEST:
            raise ModelError(
                f"{path} is missing or not a file of a model. Copy the model again from where it was saved."
            )
        files[name] = path.read_bytes()
        if hashlib.sha256(files[name]).hexdigest() != digest:
            raise ModelError(
                f"{path} is damaged: its content does not match its checksum. "
                "Copy the model again from where it was saved."
            )
    return files


def _with_checksums(files: dict[str, bytes]) -> dict[str, bytes]:
    sums = {name: hashlib.sha256(payload).hexdigest() for name, payload in sorted(files.items())}
    return {**files, CHECKSUMS: json.dumps(sums, indent=1).encode()}


def _metric_file(model: MetricModel) -> bytes:
    tensors: dict[str, Floats] = {}
    for metric in model.metrics:
        encoder = metric.encoder
        if isinstance(encoder, ConvolutionEncoder | MeanEncoder):
            own = encoder_tensors(encoder, model.vectors.table)
            tensors |= {f"{metric.name}/{name}": tensor for name, tensor in own.items()}
        if isinstance(encoder, LexicalEncoder):
            tensors[f"{metric.name}/rarity"] = encoder.rarity
        if isinstance(encoder, PhraseEncoder):
            tensors[PHRASE_RARITY] = encoder.rarity  # the linear metrics share one
        if isinstance(metric, SharedLabelMetric):
            own = {"head": metric.head.weights, "offset": metric.head.offset, "prior": metric.prior}
            tensors |= {f"{metric.name}/{name}": tensor for name, tensor in own.items()}
    return save(tensors)


def _about_files(model: MetricModel) -> dict[str, bytes]:
    measured = {
        "transfer": model.transfer.scores,
        "low_rank": model.similarity.low_rank,
        "errors": model.similarity.errors,
        "clusters": model.clusters.labels,
        **({} if model.centres is None else {"centres": model.centres}),
    }
    config = json.dumps(_config(model), indent=1, allow_nan=False).encode()
    return {CONFIG: config, MEASURED: save({k: np.ascontiguousarray(v) for k, v in measured.items()})}


def load_classifier(path: str | Path, model: MetricModel) -> FewShotClassifier:
    """Read a saved classifier, to be used with the model it was adapted from and with no other."""
    about = read_classifier(Path(path))
    if about["model"] != model.fingerprint:
        raise ModelError(
            f"{path} was adapted from another model (fingerprint {about['model'][:12]}, this one has "
            f"{model.fingerprint[:12]}). Load it with its own, or adapt this model to the examples again."
        )
    texts, labels = [text for text, _ in about["examples"]], [label for _, label in about["examples"]]
    return FewShotClassifier(model, **about["settings"]).fit(texts, labels, about["counter_examples"])


def _what_answers(model: MetricModel) -> dict[str, Any]:
    return {
        "rules": {**asdict(model.rules), "threshold": repr(model.rules.threshold)},  # which may be infinite
        "trust": asdict(model.trust),
        "metrics": [_describe(metric) for metric in model.metrics],
    }


def _config(model: MetricModel) -> dict[str, Any]:
    return {
        "library": LIBRARY,
        "format": FORMAT,
        "recipe": model.recipe.as_dict(),
        **_what_answers(model),
        "bank": model.bank,
        "names": model.clusters.names,
        "held_out": model.held_out,
        "score": model.transfer.score,
        "similarity": {
            "sparsity": model.similarity.sparsity,
            "steps": model.similarity.steps,
            "gap": model.similarity.gap,
        },
        "manymetrics": version("manymetrics"),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _describe(metric: Metric) -> dict[str, Any]:
    about: dict[str, Any] = {"name": metric.name, "kind": metric.kind, "tasks": metric.tasks}
    if isinstance(metric, SharedLabelMetric):
        return {**about, "labels": metric.labels}
    if isinstance(metric, SimilarityMetric):
        return {**about, "rule": metric.rule, "temperature": metric.temperature}
    raise ModelError(f"A metric of type {type(metric).__name__} cannot be saved. Save models made by learn_metrics.")


def _assemble(config: dict[str, Any], files: dict[str, bytes]) -> MetricModel:
    vectors = WordVectors.from_files(files)
    tensors, measured = load(files[METRICS]), load(files[MEASURED])
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise DataError(f"the tensor {name} holds values that are not finite")
    phrases = PhraseEncoder(tensors[PHRASE_RARITY]) if PHRASE_RARITY in tensors else None
    learned = learned_from(config, measured)
    if learned.centres is not None and learned.centres.shape[1] != vectors.table.shape[1]:
        raise DataError("the centres of the tasks are not of the word vectors' dimensions")
    return MetricModel(
        vectors,
        tuple(_open(about, tensors, vectors.table, phrases) for about in config["metrics"]),
        learned.rules,
        learned.clusters,
        learned.transfer,
        learned.similarity,
        learned.recipe,
        learned.held_out,
        learned.bank,
        learned.centres,
        Trust(Scope(**config["trust"]["scope"]), Calibration(**config["trust"]["calibration"])),
    )


def _open(about: dict[str, Any], tensors: dict[str, Any], table: Floats, phrases: PhraseEncoder | None) -> Metric:
    name, kind, tasks = about["name"], about["kind"], tuple(about["tasks"])
    if kind == LEXICAL:
        lexical = LexicalEncoder(tensors[f"{name}/rarity"])
        return SimilarityMetric(name, kind, lexical, about["rule"], about["temperature"], tasks)
    own = {key.rpartition("/")[2]: tensor for key, tensor in tensors.items() if key.rpartition("/")[0] == name}
    if kind in (FROZEN, TUNED):
        mean = open_mean_encoder(own, table)
        return SimilarityMetric(name, kind, mean, about["rule"], about["temperature"], tasks)
    encoder = phrases if kind == LINEAR and phrases is not None else open_encoder(own, table)
    if "labels" in about:
        head, labels = Head(own["head"], own["offset"]), tuple(about["labels"])
        if isinstance(encoder, PhraseEncoder) and len(head.weights) != encoder.width:
            raise DataError(f"the head of {name} does not fit the phrases that are known")
        return SharedLabelMetric(name, kind, encoder, head, labels, own["prior"], tasks)
    return SimilarityMetric(name, kind, encoder, about["rule"], about["temperature"], tasks)
