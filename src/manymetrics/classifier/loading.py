"""A predictor <-> the file of a model's folder that adapting and answering need; a classifier <-> its own folder.

    model/predictor.safetensors         metrics, encoders, scope, calibration, assignment to clusters
    classifier/classifier.safetensors   the fingerprint of the model, settings, and the examples: texts and labels

Encoders are stored once each, as their states; metrics refer to them by number. Reading makes the encoders again and
runs none of them. A known encoder may be stored by its name and fingerprint; it is fetched where it is not on the
machine. A classifier is some kilobytes, to be used with its model: loading fits the examples again, which takes
milliseconds and gives the same bits. The encoder of gradient steps on the examples is saved as low-rank factors.
"""

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from manymetrics.classifier.classifier import OwnSteps
from manymetrics.classifier.predictor import Predictor
from manymetrics.encode.encoder import Encoder, open_encoders, pack_encoders
from manymetrics.encode.sources.encoders import get_encoder, list_encoders, load_encoder
from manymetrics.errors import DataError, EnvironmentProblem, InputError, ManyMetricsError, ModelError
from manymetrics.store import Kind, packed, read_folder, write_folder

MODEL = Kind("model", 11, "Learn the model again, or load it with the version that saved it.")
PREDICTOR = "predictor.safetensors"
CLASSIFIER = Kind("classifier", 6, "Adapt the model to the examples again.")
EXAMPLES = "classifier.safetensors"
Label = str | bool | int | float
Setting = str | bool | int | float | None


class StoredEncoder(TypedDict):
    """An encoder without its tensors; `parts` are the numbers of encoders before it."""

    kind: str
    settings: dict[str, Any]
    parts: dict[str, int]


@dataclass(frozen=True, eq=False)
class StoredEncoders:
    """The encoders of a predictor; the names of their tensors begin with their numbers."""

    encoders: tuple[StoredEncoder, ...]
    tensors: Mapping[str, np.ndarray]


def dump_predictor(predictor: Predictor, by_name: Collection[str] = ()) -> bytes:
    """The content of the file; an encoder or metric that could not be made again is refused.

    Known encoders whose names are in `by_name` are stored without their weights.
    """
    parts = (predictor, *predictor.by_labels)
    used = [metric.encoder for part in parts for metric in part.metrics]
    used += [part.letters for part in parts if part.letters is not None]
    tensors, encoders, numbers = pack_encoders(used, by_name)
    content = {"predictor": predictor, "encoders": encoders, "tensors": tensors}
    return packed.dump(content, {Encoder: numbers.__getitem__})


def parse_predictor(payload: bytes) -> Predictor:
    """The predictor that `dump_predictor` wrote."""
    tree = packed.read(payload)
    stored = packed.convert(tree, StoredEncoders)
    encoders = open_encoders(stored.tensors, stored.encoders, _fetch_and_load)

    def decode(expected: Any, item: Any) -> Any:
        if not isinstance(item, int) or not 0 <= item < len(encoders):
            raise DataError(f"there is no encoder {item!r}")
        return encoders[item]

    return packed.convert(tree["predictor"], Predictor, decode)


def _fetch_and_load(name: str) -> Encoder:
    """A known encoder, fetched where it is not on this machine; any other name is refused."""
    if name not in list_encoders():
        raise DataError(f"the encoder {name!r} is not one of {', '.join(list_encoders())}")
    get_encoder(name)
    return load_encoder(name)


def load_predictor(folder: Path) -> Predictor:
    """What answers, from the folder of a saved model."""
    payload = read_folder(folder, [PREDICTOR], MODEL)[PREDICTOR]
    with raise_model_error(folder):
        return parse_predictor(payload)


@contextlib.contextmanager
def raise_model_error(folder: Path, again: str = "Save the model again.") -> Iterator[None]:
    """Report any error while the content of a folder is read as one sentence about the folder."""
    try:
        yield
    except (MemoryError, EnvironmentProblem):
        raise
    except Exception as problem:
        raise ModelError(f"{folder} is inconsistent: {summarize_error(problem)}. {again}") from problem


def summarize_error(problem: BaseException) -> str:
    """An error as half a sentence."""
    return str(problem).rstrip(".") if isinstance(problem, ManyMetricsError) else f"{type(problem).__name__} {problem}"


@dataclass(frozen=True)
class SavedClassifier:
    """All it takes to fit a classifier again."""

    model: str  # fingerprint
    settings: Mapping[str, Setting]
    examples: tuple[tuple[str, Label], ...]
    counter_examples: tuple[str, ...]
    descriptions: tuple[tuple[Label, str], ...]
    class_prior: tuple[tuple[Label, float], ...] | None
    own_steps: OwnSteps | None = None


def write_classifier(path: Path, saved: SavedClassifier) -> None:
    """Write the folder in one step."""
    for name, value in saved.settings.items():
        if not isinstance(value, Setting):
            raise InputError(
                f"The setting {name}={value!r} cannot be saved. Set it to a string, a number, True, False or None."
            )
    write_folder(path, {EXAMPLES: packed.dump(saved)}, CLASSIFIER)


def read_classifier(path: Path) -> SavedClassifier:
    """The content of the folder, with its types checked."""
    payload = read_folder(path, [EXAMPLES], CLASSIFIER)[EXAMPLES]
    try:
        return packed.parse(payload, SavedClassifier)
    except DataError as problem:
        raise ModelError(
            f"{path} is damaged: {problem}. Copy the classifier again from where it was saved."
        ) from problem
