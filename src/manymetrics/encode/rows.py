"""The bank's texts -> rows of a slow encoder, one task at a time, kept in the run and remembered beside the texts.

A stage of its own: it takes most of the time of a learning with a sentence encoder, is shared by every later one, and
goes on where it was stopped.
"""

import numpy as np
from safetensors.numpy import load, save

from manymetrics.encode.encoder import Encoder
from manymetrics.encode.sentence import SentenceRows
from manymetrics.errors import UnitsFailed
from manymetrics.values import Material, Task, Texts, Unit, Work

STAGE = "encode"


def remember_rows(material: Material, encoder: Encoder, work: Work) -> None:
    """Encode the train and valid texts of every task, and the names of its labels."""
    units = [Unit(task.name, {"encoder": encoder.fingerprint, "task": task.fingerprint}) for task in material.bank]
    payloads = work(STAGE, encode_task, units)
    for task in material.bank:
        if task.name not in payloads:
            raise UnitsFailed(f"The texts of {task.name!r} could not be encoded. Leave the task out of the bank.")
        tensors = load(payloads[task.name])
        for part, texts in _parts(task).items():
            texts.put(("rows", encoder.fingerprint), SentenceRows(tensors[part].astype(np.float32)))


def encode_task(unit: Unit, material: Material) -> bytes:
    """The rows of one task."""
    encoder = material.encoders[unit.spec["encoder"]]
    parts = _parts(material.bank[unit.name])
    return save({part: encoder.encode(texts).astype(np.float16) for part, texts in parts.items()})


def _parts(task: Task) -> dict[str, Texts]:
    return {"train": task.train.texts, "valid": task.valid.texts, "names": task.label_names}
