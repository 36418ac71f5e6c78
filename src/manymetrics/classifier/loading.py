"""A classifier <-> its own folder.

    classifier/classifier.safetensors   the fingerprint of the model, settings, and the examples: texts and labels

A classifier is some kilobytes, to be used with its model: loading fits the examples again, which takes milliseconds and
gives the same bits. The encoder of gradient steps on the examples is saved as low-rank factors.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from manymetrics.classifier.classifier import OwnSteps
from manymetrics.errors import DataError, InputError, ModelError
from manymetrics.store import Kind, packed, read_folder, write_folder

CLASSIFIER = Kind("classifier", 6, "Adapt the model to the examples again.")
EXAMPLES = "classifier.safetensors"
Label = str | bool | int | float
Setting = str | bool | int | float | None


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
