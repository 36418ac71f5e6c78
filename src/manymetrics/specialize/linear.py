"""Clusters -> linear metrics: a logistic regression for each cluster, where tasks share their labels.

The paper's metrics are convolution networks. Where the tasks of the bank and of the future have the same labels, a
linear classifier over a cluster's pooled texts is a metric of another kind: it errs elsewhere, and together they err
less. One more is learned from all clusters together: the choice of a task whose shots mislead about its cluster. Over
word vectors the features are phrases, over a sentence encoder its rows.
"""

from collections.abc import Collection

import numpy as np
from safetensors.numpy import load, save
from scipy import sparse

from manymetrics.encode.encoder import Encoder
from manymetrics.encode.ngrams import PhraseEncoder
from manymetrics.encode.vectors import WordVectors
from manymetrics.measure.heads import Head, fit_head, solve_softmax
from manymetrics.specialize.metric import LINEAR, Metric, SharedLabelMetric
from manymetrics.values import Clusters, Ints, LabelledTexts, Material, TaskBank, Texts, Unit, Work

STAGE = "specialize-linear"
COMMON = "phrases"  # the name of the linear metric that all clusters have in common
SOLVER = {"maxiter": 300, "gtol": 1e-5, "ftol": 1e-6, "maxcor": 6}
PENALTY = 0.2  # inverse variance of the weights; chosen on meta-validation tasks


def train_linear_metrics(material: Material, clusters: Clusters, work: Work, *, base: Encoder,
                         held_out: Collection[str] = ()) -> list[Metric]:  # fmt: skip
    """Train one linear metric on each cluster and one on all of them; none where tasks differ in their labels.

    A cluster whose tasks are all held out has none, and is served by that of all.
    """
    labels = material.bank.shared_labels
    if labels is None:
        return []
    everything = {task.name: task.fingerprint for task in material.bank}  # the rarity of a phrase comes from all
    groups: list[tuple[str, int | None, tuple[str, ...]]] = [
        (f"phrases-{number}", number, group) for number, group in enumerate(clusters) if set(group) - set(held_out)
    ]
    if len(clusters) > 1:
        groups.append((COMMON, None, clusters.names))
    units = []
    for name, _, group in groups:
        tasks = [task for task in sorted(group) if task not in held_out]
        spec = {"penalty": PENALTY, "tasks": tasks, "bank": everything, "encoder": base.fingerprint}
        units.append(Unit(name, spec))
    payloads = work(STAGE, train_linear_metric, units)
    encoder = _features(base, material.bank)
    metrics: list[Metric] = []
    for unit, (name, cluster, _) in zip(units, groups, strict=True):
        if name in payloads:
            tensors = load(payloads[name])
            head, prior, source = Head(tensors["head"], tensors["offset"]), tensors["prior"], tuple(unit.spec["tasks"])
            metrics.append(SharedLabelMetric(name, LINEAR, encoder, head, labels, prior, source, cluster))
    return metrics


def _features(base: Encoder, bank: TaskBank) -> Encoder:
    if not isinstance(base, WordVectors):
        return base
    return PhraseEncoder.from_texts(base, Texts.join([task.train.texts for task in bank]))


def train_linear_metric(unit: Unit, material: Material) -> bytes:
    """Train the linear metric of some tasks, on their train and valid texts."""
    bank = material.bank
    encoder = _features(material.encoders[unit.spec["encoder"]], bank)
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
