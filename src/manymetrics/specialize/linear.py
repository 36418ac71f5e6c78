"""Clusters -> linear metrics: a logistic regression for each cluster, where tasks share their labels.

The paper's metrics are convolution networks. Where the tasks of the bank and of the future have the same labels, a
linear classifier over a cluster's pooled texts is a metric of another kind: it errs elsewhere, and together they err
less. One more is learned from all clusters together: the choice of a task whose shots mislead about its cluster. Over
word vectors the features are phrases; over a sentence encoder there are two of each, one over its rows and one over
phrases.
"""

from collections.abc import Collection
from weakref import WeakKeyDictionary

import numpy as np
from safetensors.numpy import load, save
from scipy import sparse

from manymetrics.encode.encoder import Encoder
from manymetrics.encode.ngrams import PhraseEncoder
from manymetrics.encode.vectors import WordVectors
from manymetrics.measure.heads import Head, fit_head, solve_softmax
from manymetrics.specialize.metric import LINEAR, PHRASES, Metric, SharedLabelMetric
from manymetrics.values import Clusters, Ints, LabelledTexts, Material, Texts, Unit, Work

STAGE = "specialize-linear"
OF_PHRASES, OF_ROWS = "phrases", "rows"  # what is looked at, and the metric of all clusters; those of one are numbered
SOLVER = {"maxiter": 300, "gtol": 1e-5, "ftol": 1e-6, "maxcor": 6}
PENALTY = 0.2  # inverse variance of the weights; chosen on meta-validation tasks
_COUNTED: WeakKeyDictionary[Material, PhraseEncoder] = WeakKeyDictionary()


def train_linear_metrics(material: Material, clusters: Clusters, work: Work, *, base: Encoder,
                         held_out: Collection[str] = ()) -> list[Metric]:  # fmt: skip
    """Train one linear metric on each cluster and one on all of them; none where tasks differ in their labels.

    A cluster whose tasks are all held out has none, and is served by that of all.
    """
    labels = material.bank.shared_labels
    if labels is None:
        return []
    everything = {task.name: task.fingerprint for task in material.bank}  # the rarity of a phrase comes from all
    groups: list[tuple[int | None, tuple[str, ...]]] = [
        (number, group) for number, group in enumerate(clusters) if set(group) - set(held_out)
    ]
    if len(clusters) > 1:
        groups.append((None, clusters.names))  # the one that all clusters have in common
    planned = []
    for features, kind in _kinds(base).items():
        for number, group in groups:
            tasks = [task for task in sorted(group) if task not in held_out]
            spec = {"penalty": PENALTY, "tasks": tasks, "bank": everything, "encoder": base.fingerprint}
            unit = Unit(features if number is None else f"{features}-{number}", {**spec, "features": features})
            planned.append((unit, kind, number))
    payloads = work(STAGE, train_linear_metric, [unit for unit, _, _ in planned])
    encoders = {features: _encoder(features, base, material) for features in _kinds(base)}
    metrics: list[Metric] = []
    for unit, kind, number in planned:
        if unit.name in payloads:
            tensors, encoder = load(payloads[unit.name]), encoders[unit.spec["features"]]
            head, prior, source = Head(tensors["head"], tensors["offset"]), tensors["prior"], tuple(unit.spec["tasks"])
            metrics.append(SharedLabelMetric(unit.name, kind, encoder, head, labels, prior, source, number))
    return metrics


def _kinds(base: Encoder) -> dict[str, str]:
    """What linear metrics look at, and the kind of metric that gives."""
    return {OF_PHRASES: LINEAR} if isinstance(base, WordVectors) else {OF_ROWS: LINEAR, OF_PHRASES: PHRASES}


def _encoder(features: str, base: Encoder, material: Material) -> Encoder:
    """What gives the features; phrases are counted once, as every cluster asks for them."""
    if features == OF_ROWS:
        return base
    if material not in _COUNTED:
        words = base if isinstance(base, WordVectors) else None
        every = Texts.join([task.train.texts for task in material.bank])
        _COUNTED[material] = PhraseEncoder.from_texts(words, every)
    return _COUNTED[material]


def train_linear_metric(unit: Unit, material: Material) -> bytes:
    """Train the linear metric of some tasks, on their train and valid texts."""
    bank = material.bank
    encoder = _encoder(unit.spec["features"], material.encoders[unit.spec["encoder"]], material)
    tasks = [bank[name] for name in unit.spec["tasks"]]
    examples = LabelledTexts.join([part for task in tasks for part in (task.labelled_train, task.labelled_valid)])
    rows, labels, classes = encoder.encode(examples.texts), examples.labels, len(bank.tasks[0].labels)
    if sparse.issparse(rows):
        head = fit_linear(rows, labels, classes=classes, penalty=unit.spec["penalty"])
    else:
        head = fit_head(rows, labels, classes=classes)
    shares = (np.bincount(labels, minlength=classes) + 1) / (len(labels) + classes)
    return save({"head": head.weights, "offset": head.offset, "prior": shares.astype(np.float32)})


def fit_linear(rows: sparse.csr_array, labels: Ints, *, classes: int, penalty: float) -> Head:
    """The most likely softmax regression over sparse rows under a Gaussian prior on its weights."""
    used = np.unique(rows.indices)  # phrases that do not occur keep the weight 0
    seen = rows[:, used]
    head = solve_softmax(seen, seen.T.tocsr(), labels, classes=classes, penalty=penalty, options=SOLVER)
    weights = np.zeros((rows.shape[1], classes), dtype=np.float32)
    weights[used] = head.weights
    return Head(weights, head.offset)
