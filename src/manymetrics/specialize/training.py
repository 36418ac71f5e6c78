"""Clusters -> metrics: one encoder for each cluster of tasks.

Paper: section 3.2.1. Names here and there:
    a metric's encoder     f_k
    tasks of a cluster     C_k

Three objectives. *matching* and *prototypical* train on episodes drawn from the cluster's tasks, whatever their labels;
*shared-label* trains one classifier and needs all tasks of the cluster to have the same labels (`auto` takes it where
all tasks of the bank do, else prototypical). Some tasks of a cluster can be held out: training then stops on those,
which says more about new tasks than held-out texts of old ones; without any, it stops on the tasks' own valid examples.
"""

import json
from collections.abc import Collection
from dataclasses import asdict
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from manymetrics.encode.encoders import encoder_tensors, open_encoder
from manymetrics.encode.reading import Labelled, ReadBank, ReadTask, part
from manymetrics.encode.settings import MATCHING, PROTOTYPICAL, Convolution, Training
from manymetrics.errors import NotEnoughExamples, RecipeError
from manymetrics.measure.heads import Head
from manymetrics.specialize.metric import (
    LEARNED,
    SHARED_LABEL,
    Metric,
    SharedLabelMetric,
    SimilarityMetric,
    cluster_metric,
)
from manymetrics.values import Clusters, Floats, Unit, Work

STAGE = "specialize"
VERSION = 4
AUTO = "auto"
OBJECTIVES = (AUTO, MATCHING, PROTOTYPICAL, SHARED_LABEL)
TRIAL_TEXTS = 200  # of a held-out task, that a metric is scored on


def train_metrics(bank: ReadBank, clusters: Clusters, work: Work, *, objective: str, convolution: Convolution,
                  training: Training, classifier: tuple[Convolution, Training] | None = None,
                  held_out: Collection[str] = (), seed: int = 0) -> list[Metric]:  # fmt: skip
    """Train one metric on each cluster; a cluster whose training failed has none.

    `classifier` holds the sizes for the shared-label objective, where they are others than those of episodes.
    """
    objective = choose_objective(bank, objective)
    if objective == SHARED_LABEL and classifier is not None:
        convolution, training = classifier
    knobs = {"version": VERSION, "seed": seed, "objective": objective, "vectors": bank.vectors.fingerprint}
    knobs |= {"convolution": asdict(convolution), "training": asdict(training)}
    units = []
    for number, group in enumerate(clusters):
        tasks = {name: bank[name].fingerprint for name in sorted(group) if name not in held_out}
        stop_on = {name: bank[name].fingerprint for name in sorted(group) if name in held_out}
        units.append(Unit(cluster_metric(number), {**knobs, "tasks": tasks, "held_out": stop_on}))
    payloads = work(STAGE, train_metric, units)
    return [
        open_metric(unit.name, tuple(unit.spec["tasks"]), bank.vectors.table, payloads[unit.name])
        for unit in units
        if unit.name in payloads
    ]


def choose_objective(bank: ReadBank, objective: str) -> str:
    """Which of the objectives to train, and whether it can be."""
    if objective not in OBJECTIVES:
        raise RecipeError(f"There is no objective {objective!r}. Choose one of {', '.join(OBJECTIVES)}.")
    shared = len({task.labels for task in bank}) == 1
    if objective == AUTO:
        return SHARED_LABEL if shared else PROTOTYPICAL
    if objective == SHARED_LABEL and not shared:
        raise RecipeError(
            "The objective 'shared-label' needs tasks that all have the same labels, and these do not. "
            "Choose 'prototypical' or 'matching'."
        )
    return objective


def train_metric(unit: Unit, bank: ReadBank) -> bytes:
    """Train the metric of one cluster."""
    tasks = [bank[name] for name in unit.spec["tasks"]]
    held_out = [bank[name] for name in unit.spec["held_out"]]
    convolution, training = Convolution(**unit.spec["convolution"]), Training(**unit.spec["training"])
    rng = unit.rng(unit.spec["seed"])
    if unit.spec["objective"] == SHARED_LABEL:
        return _train_classifier(tasks, held_out, bank.vectors.table, convolution, training, rng=rng)
    kind = unit.spec["objective"]
    return _train_episodes(tasks, held_out, bank.vectors.table, convolution, training, kind=kind, rng=rng)


def _train_classifier(tasks: list[ReadTask], held_out: list[ReadTask], table: Floats, convolution: Convolution,
                      training: Training, *, rng: np.random.Generator) -> bytes:  # fmt: skip
    from manymetrics.encode.fitting import fit_classifier

    learn_from, stop_on = [task.train for task in tasks], [task.valid for task in tasks]
    if held_out:
        learn_from += stop_on
        stop_on = [task.valid if len(task.valid) else task.train for task in held_out]
    fitted = fit_classifier(
        table,
        learn_from,
        stop_on,
        classes=len(tasks[0].labels),
        convolution=convolution,
        training=training,
        rng=rng,
    )
    tensors = encoder_tensors(fitted.encoder, table)
    tensors |= {"head": fitted.weights, "offset": fitted.offset, "prior": label_shares(tasks)}
    about = {"objective": SHARED_LABEL, "labels": tasks[0].labels, **asdict(fitted.trained)}
    return save(tensors, metadata={"about": json.dumps(about)})


def label_shares(tasks: list[ReadTask]) -> Floats:
    """How common each label is, every task counting alike: (labels,); none is taken for impossible."""
    classes = len(tasks[0].labels)
    counts = np.stack([np.bincount(task.train.labels, minlength=classes) + 1 for task in tasks])  # (tasks, labels)
    return (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0).astype(np.float32)  # type: ignore[no-any-return]


def _train_episodes(tasks: list[ReadTask], held_out: list[ReadTask], table: Floats, convolution: Convolution,
                    training: Training, *, kind: str, rng: np.random.Generator) -> bytes:  # fmt: skip
    from manymetrics.encode.fitting import fit_episodes

    train, trials = draw_material(tasks, held_out, training.shots, rng)
    fitted = fit_episodes(table, train, trials, kind=kind, convolution=convolution, training=training, rng=rng)
    return pack_metric(fitted, table, kind=kind)


def pack_metric(fitted: Any, table: Floats, *, kind: str) -> bytes:
    """A `FittedMetric` as the content of its file."""
    about = {"objective": kind, "temperature": fitted.temperature, **asdict(fitted.trained)}
    return save(encoder_tensors(fitted.encoder, table), metadata={"about": json.dumps(about)})


def draw_material(tasks: list[ReadTask], held_out: list[ReadTask], shots: int, rng: np.random.Generator
                  ) -> tuple[list[Labelled], list[tuple[Labelled, Labelled]]]:  # fmt: skip
    """The examples that episodes can be drawn from, and problems to stop on: of held-out tasks, else of the same."""
    usable = [task.train for task in tasks if _has_episodes(task)]
    if not usable:
        raise NotEnoughExamples(
            f"None of the tasks {', '.join(task.name for task in tasks)} has two labels with two train examples each, "
            "so no episode can be drawn from them. Add examples, or leave these tasks out of the bank."
        )
    trials = [_trial(task, shots, rng) for task in held_out or tasks]
    return usable, [trial for trial in trials if len(trial[1])]


def _has_episodes(task: ReadTask) -> bool:
    return int(np.sum(np.bincount(task.train.labels) >= 2)) >= 2


def _trial(task: ReadTask, shots: int, rng: np.random.Generator) -> tuple[Labelled, Labelled]:
    """A few-shot problem on a task: some train examples of each label, and texts to answer."""
    train, texts = (task.train, task.valid) if len(task.valid) else part(task.train, 0.5, rng)
    rows = [rng.permutation(np.flatnonzero(train.labels == label))[:shots] for label in np.unique(train.labels)]
    answerable = np.flatnonzero(np.isin(texts.labels, train.labels))
    return train.take(np.concatenate(rows)), texts.take(rng.permutation(answerable)[:TRIAL_TEXTS])


def read_about(payload: bytes) -> dict[str, Any]:
    """What a trained metric's file says of itself."""
    length = int.from_bytes(payload[:8], "little")
    about: dict[str, Any] = json.loads(json.loads(payload[8 : 8 + length])["__metadata__"]["about"])
    return about


def open_metric(name: str, tasks: tuple[str, ...], table: Floats, payload: bytes) -> Metric:
    """A trained metric, ready for use."""
    tensors, about = load(payload), read_about(payload)
    encoder = open_encoder(tensors, table)
    if about["objective"] == SHARED_LABEL:
        head, labels = Head(tensors["head"], tensors["offset"]), tuple(about["labels"])
        return SharedLabelMetric(name, LEARNED, encoder, head, labels, tensors["prior"], tasks)
    return SimilarityMetric(name, LEARNED, encoder, about["objective"], about["temperature"], tasks)
