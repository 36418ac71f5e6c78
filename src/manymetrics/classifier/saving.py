"""An adapted classifier, and the folder it is saved in: some kilobytes, to be used beside its model.

    folder/classifier.json     the model's fingerprint, settings, and the examples: texts and labels as they are
    folder/checksums.json      whose folder it is, and the SHA-256 of the file above

The examples are all a classifier is: loading fits them again, which takes milliseconds and gives the same bits.
"""

import json
from pathlib import Path
from typing import Any

from manymetrics.errors import DataError, InputError, ModelError
from manymetrics.store import Kind, read_folder, write_folder
from manymetrics.store.json_values import text_of, texts_of

CLASSIFIER = Kind("classifier", 4, "Adapt the model to the examples again.")
ABOUT = "classifier.json"
PLAIN = (str, bool, int, float, type(None))


def write_classifier(path: Path, about: dict[str, Any]) -> None:
    """Write the folder, which appears whole or not at all."""
    for name, value in about["settings"].items():
        if not isinstance(value, PLAIN):
            raise InputError(
                f"The setting {name}={value!r} cannot be saved. Set it to a string, a number, True, False or None."
            )
    write_folder(path, {ABOUT: json.dumps(about, indent=1).encode()}, CLASSIFIER)


def read_classifier(path: Path) -> dict[str, Any]:
    """What was written, checked before anything is made of it."""
    payload = read_folder(path, [ABOUT], CLASSIFIER)[ABOUT]
    try:
        about = json.loads(payload)
        settings = {str(name): value for name, value in about["settings"].items()}
        examples = [(text, label) for text, label in about["examples"]]
        counters = list(texts_of(about, "counter_examples"))
        descriptions = dict(about["descriptions"])
        prior = None if about["class_prior"] is None else {label: float(share) for label, share in about["class_prior"]}
        if not all(isinstance(value, PLAIN) for value in settings.values()) or not isinstance(about["examples"], list):
            raise DataError("settings or examples are not what was expected")
        return {"model": text_of(about, "model"), "settings": {**settings, "class_prior": prior}, "examples": examples,
                "counter_examples": counters, "descriptions": descriptions}  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise ModelError(f"{path} is damaged. Copy the classifier again from where it was saved.") from problem
