"""TaskBank -> one classifier for each task: the source of every representation that will be compared.

Paper: section 3.1, first step of Algorithm 2. The word vectors stay fixed, so an encoder can be carried to a task with
other words. Training stops early on the task's valid examples; a task without any gives up a fifth of its train ones.
"""

from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
from safetensors.numpy import load, save

from manymetrics.encode.convolution import ConvolutionEncoder
from manymetrics.encode.settings import Convolution, Training
from manymetrics.encode.vectors import WordVectors, random_vectors
from manymetrics.measure.heads import Head
from manymetrics.values import LabelledTexts, Material, Task, Texts, Unit, Work

STAGE = "measure-models"


@dataclass(frozen=True, eq=False)
class TaskModel:
    """*M_i*: the classifier trained on task i, an encoder and a head."""

    name: str
    labels: tuple[str, ...]
    encoder: ConvolutionEncoder
    head: Head


def train_task_models(material: Material, work: Work, *, words: WordVectors, convolution: Convolution,
                      training: Training, seed: int) -> dict[str, bytes]:  # fmt: skip
    """Train a classifier on every task by itself; each is kept as bytes until `open_task_model`."""
    knobs = {"seed": seed, "words": words.fingerprint}
    knobs |= {"convolution": asdict(convolution), "training": asdict(training)}
    units = [Unit(task.name, {**knobs, "task": task.fingerprint}) for task in material.bank]
    return work(STAGE, train_task_model, units)


def train_task_model(unit: Unit, material: Material) -> bytes:
    """Train the classifier of one task."""
    from manymetrics.encode.fitting import fit_classifier

    task, rng = material.bank[unit.name], unit.rng(unit.spec["seed"])
    train, held_out = training_parts(task, rng)
    fitted = fit_classifier(
        material.encoders[unit.spec["words"]],
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

    two = LabelledTexts(Texts(["a", "b"]), np.arange(2))
    training, rng = Training(steps=1), np.random.default_rng(0)
    fit_classifier(random_vectors(rows=4, dimensions=2), [two], [two], classes=2, convolution=Convolution(width=1),
                   training=training, rng=rng)  # fmt: skip


def open_task_model(task: Task, words: WordVectors, payload: bytes) -> TaskModel:
    """A trained classifier, ready for use."""
    tensors = load(payload)
    encoder = ConvolutionEncoder(words, tensors["filters"], tensors["bias"])
    return TaskModel(task.name, task.labels, encoder, Head(tensors["head"], tensors["offset"]))


def training_parts(task: Task, rng: np.random.Generator) -> tuple[LabelledTexts, LabelledTexts]:
    """What to train on and what to stop on."""
    if len(task.valid):
        return task.labelled_train, task.labelled_valid
    return hold_out_texts(task.labelled_train, 0.2, rng)


def hold_out_texts(
    examples: LabelledTexts, share: float, rng: np.random.Generator
) -> tuple[LabelledTexts, LabelledTexts]:
    """Hold out a share of the examples of every label; a label always keeps one that is not held out."""
    held: list[int] = []
    for label in np.unique(examples.labels):
        rows = rng.permutation(np.flatnonzero(examples.labels == label))
        held += rows[: min(round(share * len(rows)), len(rows) - 1)].tolist()
    kept = np.setdiff1d(np.arange(len(examples)), held)
    return examples.take(kept), examples.take(np.sort(np.array(held, dtype=np.int64)))
