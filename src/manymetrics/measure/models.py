"""TaskBank -> one classifier for each task: the source of every representation that will be compared.

Paper: section 3.1, first step of Algorithm 2. The word vectors stay fixed, so an encoder can be carried to a task with
other words. Training stops early on the task's valid examples; a task without any gives up a fifth of its train ones.
"""

from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
from safetensors.numpy import load, save

from manymetrics.encode.encoders import ConvolutionEncoder
from manymetrics.encode.reading import Labelled, ReadBank, ReadTask, part
from manymetrics.encode.settings import Convolution, Training
from manymetrics.encode.tokens import Tokens
from manymetrics.measure.heads import Head
from manymetrics.values import Floats, Unit, Work

STAGE = "measure-models"
VERSION = 2


@dataclass(frozen=True, eq=False)
class TaskModel:
    """*M_i*: the classifier trained on task i, an encoder and a head."""

    name: str
    labels: tuple[str, ...]
    encoder: ConvolutionEncoder
    head: Head


def train_task_models(
    bank: ReadBank, work: Work, *, convolution: Convolution, training: Training, seed: int
) -> dict[str, bytes]:
    """Train a classifier on every task by itself; each is kept as bytes until `open_task_model`."""
    knobs = {"version": VERSION, "seed": seed, "vectors": bank.vectors.fingerprint}
    knobs |= {"convolution": asdict(convolution), "training": asdict(training)}
    units = [Unit(task.name, {**knobs, "task": task.fingerprint}) for task in bank]
    return work(STAGE, train_task_model, units)


def train_task_model(unit: Unit, bank: ReadBank) -> bytes:
    """Train the classifier of one task."""
    from manymetrics.encode.fitting import fit_classifier

    task, rng = bank[unit.name], unit.rng(unit.spec["seed"])
    train, held_out = training_parts(task, rng)
    fitted = fit_classifier(
        bank.vectors.table,
        [train],
        [held_out],
        classes=len(task.labels),
        convolution=Convolution(**unit.spec["convolution"]),
        training=Training(**unit.spec["training"]),
        rng=rng,
    )
    encoder = fitted.encoder
    return save({"filters": encoder.filters, "bias": encoder.bias, "head": fitted.weights, "offset": fitted.offset})


@cache
def get_ready_to_train() -> None:
    """Load, in this process, what a training needs beside its task; the first training would do it otherwise."""
    from manymetrics.encode.fitting import fit_classifier

    two = Labelled(Tokens(("", ""), np.array([0, 1], dtype=np.int32), np.arange(3)), np.arange(2))
    training, rng = Training(steps=1), np.random.default_rng(0)
    fit_classifier(np.eye(2, dtype=np.float32), [two], [two], classes=2, convolution=Convolution(width=1),
                   training=training, rng=rng)  # fmt: skip


def open_task_model(name: str, labels: tuple[str, ...], table: Floats, payload: bytes) -> TaskModel:
    """A trained classifier, ready for use."""
    tensors = load(payload)
    encoder = ConvolutionEncoder(table, tensors["filters"], tensors["bias"])
    return TaskModel(name, labels, encoder, Head(tensors["head"], tensors["offset"]))


def training_parts(task: ReadTask, rng: np.random.Generator) -> tuple[Labelled, Labelled]:
    """What to train on and what to stop on."""
    if len(task.valid):
        return task.train, task.valid
    return part(task.train, 0.2, rng)
