"""Clusters -> linear metrics: a logistic regression over phrases for each cluster, where tasks share their labels.

The paper's metrics are convolution networks. Where the tasks of the bank and of the future have the same labels, a
linear classifier over a cluster's pooled texts is a metric of another kind: it errs elsewhere, and together they err
less. One more is learned from all clusters together: the choice of a task whose shots mislead about its cluster.
"""

from collections.abc import Collection

import numpy as np
from safetensors.numpy import load, save
from scipy import sparse

from manymetrics.encode.phrases import PhraseEncoder
from manymetrics.encode.reading import ReadBank
from manymetrics.encode.tokens import join
from manymetrics.measure.heads import Head, solve_softmax
from manymetrics.specialize.metric import COMMON_LINEAR_METRIC, LINEAR, Metric, SharedLabelMetric, linear_metric
from manymetrics.values import Clusters, Ints, Unit, Work

STAGE = "specialize-linear"
VERSION = 2
SOLVER = {"maxiter": 300, "gtol": 1e-5, "ftol": 1e-6, "maxcor": 6}
PENALTY = 0.2  # inverse variance of the weights; chosen on meta-validation tasks


def train_linear_metrics(bank: ReadBank, clusters: Clusters, work: Work, *,
                         held_out: Collection[str] = ()) -> list[Metric]:  # fmt: skip
    """Train one linear metric on each cluster and one on all of them; none where tasks differ in their labels."""
    if len({task.labels for task in bank}) != 1:
        return []
    encoder = PhraseEncoder.from_bank(join([task.train.tokens for task in bank]))
    labels = bank.tasks[0].labels
    everything = {task.name: task.fingerprint for task in bank}
    groups = {linear_metric(number): group for number, group in enumerate(clusters)}
    if len(groups) > 1:
        groups[COMMON_LINEAR_METRIC] = clusters.names
    units = []
    for metric, group in groups.items():
        tasks = [name for name in sorted(group) if name not in held_out]
        spec = {"version": VERSION, "penalty": PENALTY, "tasks": tasks, "bank": everything}
        units.append(Unit(metric, {**spec, "vectors": bank.vectors.fingerprint}))
    payloads = work(STAGE, train_linear_metric, units)
    metrics: list[Metric] = []
    for unit in units:
        if unit.name in payloads:
            tensors = load(payloads[unit.name])
            head = Head(tensors["head"], tensors["offset"])
            prior, learned_from = tensors["prior"], tuple(unit.spec["tasks"])
            metrics.append(SharedLabelMetric(unit.name, LINEAR, encoder, head, labels, prior, learned_from))
    return metrics


def train_linear_metric(unit: Unit, bank: ReadBank) -> bytes:
    """Train the linear metric of some tasks, on their train and valid texts."""
    encoder = PhraseEncoder.from_bank(join([task.train.tokens for task in bank]))
    parts = [part for name in unit.spec["tasks"] for part in (bank[name].train, bank[name].valid)]
    rows = encoder.encode(join([part.tokens for part in parts]))
    labels = np.concatenate([part.labels for part in parts])
    classes = len(bank.tasks[0].labels)
    head = fit_linear(rows, labels, classes=classes, penalty=unit.spec["penalty"])
    shares = (np.bincount(labels, minlength=classes) + 1) / (len(labels) + classes)
    return save({"head": head.weights, "offset": head.offset, "prior": shares.astype(np.float32)})


def fit_linear(rows: sparse.csr_array, labels: Ints, *, classes: int, penalty: float) -> Head:
    """The most likely softmax regression over sparse rows under a Gaussian prior on its weights."""
    used = np.unique(rows.indices)  # phrases that do not occur keep the weight 0
    told = rows[:, used]
    head = solve_softmax(told, told.T.tocsr(), labels, classes=classes, penalty=penalty, options=SOLVER)
    weights = np.zeros((rows.shape[1], classes), dtype=np.float32)
    weights[used] = head.weights
    return Head(weights, head.offset)
