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

from manymetrics.encode.convolution import ConvolutionEncoder
from manymetrics.encode.settings import MATCHING, PROTOTYPICAL, Convolution, Training
from manymetrics.encode.vectors import TunedWords, Words, WordVectors
from manymetrics.errors import NotEnoughExamples, RecipeError
from manymetrics.measure.heads import Head
from manymetrics.measure.models import hold_out_texts
from manymetrics.specialize.metric import LEARNED, SHARED_LABEL, Metric, SharedLabelMetric, SimilarityMetric
from manymetrics.values import Clusters, Episode, Floats, LabelledTexts, Material, Task, TaskBank, Unit, Work

STAGE = "specialize"
AUTO = "auto"
OBJECTIVES = (AUTO, MATCHING, PROTOTYPICAL, SHARED_LABEL)
HELD_OUT_QUERIES = 200  # texts of a held-out task that a metric is scored on


def train_metrics(material: Material, clusters: Clusters, work: Work, *, words: WordVectors, objective: str,
                  convolution: Convolution, training: Training, classifier: tuple[Convolution, Training] | None = None,
                  held_out: Collection[str] = (), seed: int = 0) -> list[Metric]:  # fmt: skip
    """Train one metric on each cluster; a cluster whose training failed has none.

    `classifier` holds the sizes for the shared-label objective, where they are others than those of episodes.
    """
    objective, bank = choose_objective(material.bank, objective), material.bank
    if objective == SHARED_LABEL and classifier is not None:
        convolution, training = classifier
    knobs = {"seed": seed, "objective": objective, "words": words.fingerprint}
    knobs |= {"convolution": asdict(convolution), "training": asdict(training)}
    units = []
    for number, group in enumerate(clusters):
        tasks = {name: bank[name].fingerprint for name in sorted(group) if name not in held_out}
        stop_on = {name: bank[name].fingerprint for name in sorted(group) if name in held_out}
        units.append(Unit(f"cluster-{number}", {**knobs, "tasks": tasks, "held_out": stop_on}))
    payloads = work(STAGE, train_metric, units)
    return [
        _open_metric(unit, number, words, payloads[unit.name])
        for number, unit in enumerate(units)
        if unit.name in payloads
    ]


def choose_objective(bank: TaskBank, objective: str) -> str:
    """Which of the objectives to train, and whether it can be."""
    if objective not in OBJECTIVES:
        raise RecipeError(f"There is no objective {objective!r}. Choose one of {', '.join(OBJECTIVES)}.")
    if objective == AUTO:
        return PROTOTYPICAL if bank.shared_labels is None else SHARED_LABEL
    if objective == SHARED_LABEL and bank.shared_labels is None:
        raise RecipeError(
            "The objective 'shared-label' needs tasks that all have the same labels, and these do not. "
            "Choose 'prototypical' or 'matching'."
        )
    return objective


def train_metric(unit: Unit, material: Material) -> bytes:
    """Train the metric of one cluster."""
    tasks = [material.bank[name] for name in unit.spec["tasks"]]
    held_out = [material.bank[name] for name in unit.spec["held_out"]]
    convolution, training = Convolution(**unit.spec["convolution"]), Training(**unit.spec["training"])
    words, rng = material.encoders[unit.spec["words"]], unit.rng(unit.spec["seed"])
    if unit.spec["objective"] == SHARED_LABEL:
        return _train_classifier(tasks, held_out, words, convolution, training, rng=rng)
    kind = unit.spec["objective"]
    return _train_episodes(tasks, held_out, words, convolution, training, kind=kind, rng=rng)


def _train_classifier(tasks: list[Task], held_out: list[Task], words: WordVectors, convolution: Convolution,
                      training: Training, *, rng: np.random.Generator) -> bytes:  # fmt: skip
    from manymetrics.encode.fitting import fit_classifier

    learn_from, stop_on = [task.labelled_train for task in tasks], [task.labelled_valid for task in tasks]
    if held_out:
        learn_from += stop_on
        stop_on = [task.labelled_valid if len(task.valid) else task.labelled_train for task in held_out]
    fitted = fit_classifier(
        words,
        learn_from,
        stop_on,
        classes=len(tasks[0].labels),
        convolution=convolution,
        training=training,
        rng=rng,
    )
    tensors = encoder_tensors(fitted.encoder)
    tensors |= {"head": fitted.weights, "offset": fitted.offset, "prior": label_shares(tasks)}
    about = {"objective": SHARED_LABEL, "labels": tasks[0].labels, **asdict(fitted.trained)}
    return save(tensors, metadata={"about": json.dumps(about)})


def label_shares(tasks: list[Task]) -> Floats:
    """How common each label is, every task counting alike: (labels,); none is taken for impossible."""
    classes = len(tasks[0].labels)
    counts = np.stack([np.bincount(task.labelled_train.labels, minlength=classes) + 1 for task in tasks])
    return (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0).astype(np.float32)  # type: ignore[no-any-return]


def _train_episodes(tasks: list[Task], held_out: list[Task], words: WordVectors, convolution: Convolution,
                    training: Training, *, kind: str, rng: np.random.Generator) -> bytes:  # fmt: skip
    from manymetrics.encode.fitting import fit_episodes

    train, episodes = training_episodes(tasks, held_out, training.shots, rng)
    fitted = fit_episodes(words, train, episodes, kind=kind, convolution=convolution, training=training, rng=rng)
    return pack_metric(fitted, kind=kind)


def pack_metric(fitted: Any, *, kind: str) -> bytes:
    """A metric that was fitted on episodes as the content of its file."""
    about = {"objective": kind, "temperature": fitted.temperature, **asdict(fitted.trained)}
    return save(encoder_tensors(fitted.encoder), metadata={"about": json.dumps(about)})


def training_episodes(tasks: list[Task], held_out: list[Task], shots: int, rng: np.random.Generator
                      ) -> tuple[list[LabelledTexts], list[Episode]]:  # fmt: skip
    """The examples that episodes can be drawn from, and episodes to stop on: of held-out tasks, else of the same."""
    usable = [task.labelled_train for task in tasks if _has_episodes(task)]
    if not usable:
        raise NotEnoughExamples(
            f"None of the tasks {', '.join(task.name for task in tasks)} has two labels with two train examples each, "
            "so no episode can be drawn from them. Add examples, or leave these tasks out of the bank."
        )
    episodes = [_held_out_episode(task, shots, rng) for task in held_out or tasks]
    return usable, [episode for episode in episodes if len(episode.query)]


def _has_episodes(task: Task) -> bool:
    return int(np.sum(np.bincount(task.labelled_train.labels) >= 2)) >= 2


def _held_out_episode(task: Task, shots: int, rng: np.random.Generator) -> Episode:
    """A few-shot problem on a task: some train examples of each label, and texts to answer."""
    train, texts = task.labelled_train, task.labelled_valid
    if not len(texts):
        train, texts = hold_out_texts(train, 0.5, rng)
    rows = [rng.permutation(np.flatnonzero(train.labels == label))[:shots] for label in np.unique(train.labels)]
    answerable = np.flatnonzero(np.isin(texts.labels, train.labels))
    query = texts.take(rng.permutation(answerable)[:HELD_OUT_QUERIES])
    return Episode(task.name, task.labels, train.take(np.concatenate(rows)), query)


def read_about(payload: bytes) -> dict[str, Any]:
    """What a trained metric's file says of itself."""
    length = int.from_bytes(payload[:8], "little")
    about: dict[str, Any] = json.loads(json.loads(payload[8 : 8 + length])["__metadata__"]["about"])
    return about


def encoder_tensors(encoder: ConvolutionEncoder | Words) -> dict[str, Any]:
    """All it takes to make a trained encoder again, beside the word vectors it started from."""
    words = encoder.words if isinstance(encoder, ConvolutionEncoder) else encoder
    tensors = {"filters": encoder.filters, "bias": encoder.bias} if isinstance(encoder, ConvolutionEncoder) else {}
    return tensors | ({"moved": words.moved, "moved_to": words.moved_to} if isinstance(words, TunedWords) else {})


def open_words(tensors: dict[str, Any], given: WordVectors) -> Words:
    """The words that `encoder_tensors` described: those given, or what training made of them."""
    return TunedWords(given, tensors["moved"], tensors["moved_to"]) if "moved" in tensors else given


def _open_metric(unit: Unit, cluster: int, words: WordVectors, payload: bytes) -> Metric:
    """A trained metric, ready for use."""
    tensors, about, tasks = load(payload), read_about(payload), tuple(unit.spec["tasks"])
    encoder = ConvolutionEncoder(open_words(tensors, words), tensors["filters"], tensors["bias"])
    if about["objective"] == SHARED_LABEL:
        head, labels = Head(tensors["head"], tensors["offset"]), tuple(about["labels"])
        return SharedLabelMetric(unit.name, LEARNED, encoder, head, labels, tensors["prior"], tasks, cluster)
    return SimilarityMetric(unit.name, LEARNED, encoder, about["objective"], about["temperature"], tasks, cluster)
