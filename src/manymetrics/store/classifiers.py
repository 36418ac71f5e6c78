"""An adapted classifier, and the folder it is saved in: some kilobytes, to be used beside its model.

    folder/classifier.json     format, the model's fingerprint, settings, and the examples: texts and labels as they are
    folder/checksums.json      SHA-256 of the file above

The examples are all a classifier is: loading fits them again, which takes milliseconds and gives the same bits.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from manymetrics.errors import InputError, ModelError
from manymetrics.store.files import write_folder

FORMAT = 1
ABOUT, CHECKSUMS = "classifier.json", "checksums.json"
PARTS = ("model", "settings", "examples", "counter_examples")
PLAIN = (str, bool, int, float, type(None))


def write_classifier(path: Path, about: dict[str, Any]) -> None:
    """Write the folder, which appears whole or not at all."""
    for name, value in about["settings"].items():
        if not isinstance(value, PLAIN):
            raise InputError(
                f"The setting {name}={value!r} cannot be saved. Set it to a string, a number, True, False or None."
            )
    payload = json.dumps({"format": FORMAT, **about}, indent=1).encode()
    sums = {ABOUT: hashlib.sha256(payload).hexdigest()}
    write_folder(path, {ABOUT: payload, CHECKSUMS: json.dumps(sums, indent=1).encode()})


def read_classifier(path: Path) -> dict[str, Any]:
    """What was written, checked before anything is made of it."""
    if not (path / ABOUT).is_file() or not (path / CHECKSUMS).is_file():
        raise ModelError(f"{path} is not a saved classifier: it lacks {ABOUT} or {CHECKSUMS}. Give a folder of `save`.")
    payload = (path / ABOUT).read_bytes()
    try:
        whole = json.loads((path / CHECKSUMS).read_text(encoding="utf-8"))[ABOUT] == hashlib.sha256(payload).hexdigest()
        about = json.loads(payload) if whole else {}
        version, parts = int(about["format"]), {name: about[name] for name in PARTS}
    except (ValueError, KeyError, TypeError) as problem:
        raise ModelError(f"{path} is damaged. Copy the classifier again from where it was saved.") from problem
    if version > FORMAT:
        raise ModelError(
            f"{path} has format {version}, and this version of manymetrics reads up to {FORMAT}. "
            "Upgrade manymetrics to load it."
        )
    return parts
