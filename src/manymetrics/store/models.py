"""A learned model, and the folder it is saved in.

    model/config.json              format, versions, recipe, rules, clusters, what each metric is
    model/metrics.safetensors      filters, heads, temperatures' encoders
    model/measured.safetensors     S, X and E, for reports and for the curious
    model/vectors.safetensors      the word vectors, so that a model needs nothing but itself
    model/tokenizer.json
    model/README.md                a model card
    model/checksums.json           SHA-256 of every file above

Nothing in it is executed on loading, no class or module is looked up by a name from a file, and the network is not
used.
"""

import hashlib
import json
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from manymetrics.encode.encoders import ConvolutionEncoder, LexicalEncoder, MeanEncoder, encoder_tensors, open_encoder
from manymetrics.encode.vectors import TABLE_FILE, TOKENIZER_FILE, WordVectors
from manymetrics.errors import DataError, ManyMetricsError, ModelError
from manymetrics.measure.heads import Head
from manymetrics.recipe import Recipe
from manymetrics.specialize.metric import FROZEN, LEXICAL, Metric, SharedLabelMetric, SimilarityMetric
from manymetrics.store.card import model_card
from manymetrics.store.classifiers import read_classifier, write_classifier
from manymetrics.store.files import require_place, write_folder
from manymetrics.values import Clusters, Floats, Similarity, TransferMatrix
from manymetrics.weigh.calibration import Calibration
from manymetrics.weigh.classifier import FewShotClassifier
from manymetrics.weigh.rules import Rules
from manymetrics.weigh.scope import Scope
from manymetrics.weigh.trust import Trust

FORMAT = 1
LIBRARY = "manymetrics"
CONFIG, METRICS, MEASURED, CARD, CHECKSUMS = (
    "config.json",
    "metrics.safetensors",
    "measured.safetensors",
    "README.md",
    "checksums.json",
)
FILES = (CONFIG, METRICS, MEASURED, TABLE_FILE, TOKENIZER_FILE, CARD)
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
    trust: Trust = field(default_factory=Trust)

    def adapt(self, texts: Iterable[str], labels: Iterable[Any], **options: Any) -> FewShotClassifier:
        """A classifier for a new task from a few examples of it."""
        return FewShotClassifier(self, **options).fit(texts, labels)

    def save(self, path: str | Path) -> None:
        """Write the model to a folder, which appears whole or not at all."""
        files = {**self.vectors.as_files(), **_metric_files(self)}
        files[CONFIG] = json.dumps(_config(self), indent=1, allow_nan=False).encode()
        files[CARD] = model_card(self.recipe, self.clusters, self.rules, bank=self.bank).encode()
        sums = {name: hashlib.sha256(payload).hexdigest() for name, payload in sorted(files.items())}
        files[CHECKSUMS] = json.dumps(sums, indent=1).encode()
        write_folder(Path(path), files)

    @cached_property
    def fingerprint(self) -> str:
        """The hash of all that its answers depend on; the same before saving and after loading."""
        digest = hashlib.sha256(json.dumps(_what_answers(self), sort_keys=True).encode())
        for name, payload in sorted({**self.vectors.as_files(), METRICS: _metric_files(self)[METRICS]}.items()):
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
    files = _read_files(folder)
    try:
        config = json.loads(files[CONFIG])
        library, version = str(config["library"]), int(config["format"])
    except _BROKEN as problem:
        raise ModelError(f"{folder} does not hold together: {problem!r}. Save the model again.") from problem
    _check_origin(folder, library=library, version=version)
    try:
        return _assemble(config, files)
    except _BROKEN as problem:
        raise ModelError(f"{folder} does not hold together: {problem}. Save the model again.") from problem


def _check_origin(folder: Path, *, library: str, version: int) -> None:
    if library != LIBRARY:
        raise ModelError(f"{folder} holds a model of {library!r}, not of manymetrics. Give another folder.")
    if version > FORMAT:
        raise ModelError(
            f"{folder} has format {version}, and this version of manymetrics reads up to {FORMAT}. "
            "Upgrade manymetrics to load it."
        )


def _read_files(folder: Path) -> dict[str, bytes]:
    """Every file of a model, each checked against its checksum before anything is made of it."""
    if not folder.is_dir():
        raise ModelError(f"There is no model folder {folder}. Give the folder that `learn --out` or `save` wrote.")
    if not (folder / CHECKSUMS).is_file():
        raise ModelError(f"{folder} is not a model: it has no {CHECKSUMS}. Give a folder that `learn --out` wrote.")
    try:
        sums = json.loads((folder / CHECKSUMS).read_text(encoding="utf-8"))
        wanted = {name: str(sums[name]) for name in FILES}
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


def _metric_files(model: MetricModel) -> dict[str, bytes]:
    tensors: dict[str, Floats] = {}
    for metric in model.metrics:
        encoder = metric.encoder
        if isinstance(encoder, ConvolutionEncoder):
            own = encoder_tensors(encoder, model.vectors.table)
            tensors |= {f"{metric.name}/{name}": tensor for name, tensor in own.items()}
        if isinstance(encoder, LexicalEncoder):
            tensors[f"{metric.name}/rarity"] = encoder.rarity
        if isinstance(metric, SharedLabelMetric):
            tensors |= {f"{metric.name}/head": metric.head.weights, f"{metric.name}/offset": metric.head.offset}
    measured = {
        "transfer": model.transfer.scores,
        "low_rank": model.similarity.low_rank,
        "errors": model.similarity.errors,
        "clusters": model.clusters.labels,
    }
    return {METRICS: save(tensors), MEASURED: save({k: np.ascontiguousarray(v) for k, v in measured.items()})}


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
        "rules": {name: repr(value) for name, value in asdict(model.rules).items()},
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
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _describe(metric: Metric) -> dict[str, Any]:
    about: dict[str, Any] = {"name": metric.name, "kind": metric.kind, "tasks": metric.tasks}
    if isinstance(metric, SharedLabelMetric):
        return {**about, "labels": metric.labels, "temperature": metric.temperature}
    if isinstance(metric, SimilarityMetric):
        return {**about, "rule": metric.rule, "temperature": metric.temperature}
    raise ModelError(f"A metric of type {type(metric).__name__} cannot be saved. Save models made by learn_metrics.")


def _assemble(config: dict[str, Any], files: dict[str, bytes]) -> MetricModel:
    vectors = WordVectors.from_files(files)
    tensors, measured = load(files[METRICS]), load(files[MEASURED])
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise DataError(f"the tensor {name} holds values that are not finite")
    names = tuple(config["names"])
    rules = {name: float(value) for name, value in config["rules"].items()}
    return MetricModel(
        vectors,
        tuple(_open(about, tensors, vectors.table) for about in config["metrics"]),
        Rules(**rules),
        Clusters(names, measured["clusters"]),
        TransferMatrix(names, measured["transfer"], config["score"]),
        Similarity(names, measured["low_rank"], measured["errors"], **config["similarity"]),
        Recipe.from_dict(config["recipe"]),
        tuple(config["held_out"]),
        config["bank"],
        _open_trust(config.get("trust")),
    )


def _open_trust(saved: dict[str, Any] | None) -> Trust:
    """A model from before there was any has the trust of the default."""
    return Trust(Scope(**saved["scope"]), Calibration(**saved["calibration"])) if saved else Trust()


def _open(about: dict[str, Any], tensors: dict[str, Any], table: Floats) -> Metric:
    name, kind, tasks = about["name"], about["kind"], tuple(about["tasks"])
    if kind == FROZEN:
        return SimilarityMetric(name, kind, MeanEncoder(table), about["rule"], about["temperature"], tasks)
    if kind == LEXICAL:
        lexical = LexicalEncoder(tensors[f"{name}/rarity"])
        return SimilarityMetric(name, kind, lexical, about["rule"], about["temperature"], tasks)
    own = {key.rpartition("/")[2]: tensor for key, tensor in tensors.items() if key.rpartition("/")[0] == name}
    encoder = open_encoder(own, table)
    if "labels" in about:
        head = Head(tensors[f"{name}/head"], tensors[f"{name}/offset"])
        return SharedLabelMetric(name, kind, encoder, head, tuple(about["labels"]), about["temperature"], tasks)
    return SimilarityMetric(name, kind, encoder, about["rule"], about["temperature"], tasks)
