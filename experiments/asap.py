"""Clusters in the manner of ASAP-MT-LR (Barzilai and Crammer, 2015), for binary tasks with one label set.

A logistic regression for each cluster, and each task in the cluster whose regression serves it best. Theirs is a convex
problem with an assignment matrix that is relaxed and smoothed; the code was not published, so ours alternates instead:

    features    the mean word vector of a text, at most `TEXTS` train texts of a task, each task counting alike
    begin       each task's own regression, grouped by k-means
    relax       task t belongs to cluster k by  q_tk ~ exp(-loss_tk / heat),  the heat falling to zero by rounds
    fit         cluster k's regression minimises  sum_t q_tk loss_tk  with a small ridge
    end         the cluster with the least loss; a cluster left empty takes the task that fits worst where it is
"""

import numpy as np
from scipy.special import expit, softmax

from manymetrics.encode.encoder import normalize
from manymetrics.encode.vectors import WordVectors
from manymetrics.errors import DataError
from manymetrics.partition.clusters import number_by_first
from manymetrics.values import Clusters, Floats, Ints, Task, TaskBank

TEXTS = 400
RIDGE = 1e-3
HEATS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002)  # in nats a text
SCALE = 8.0  # mean vectors have length one; this brings a regression's weights to the order of one


def binary_and_shared(bank: TaskBank) -> bool:
    """Whether all tasks choose between the same two labels."""
    return bank.shared_labels is not None and len(bank.shared_labels) == 2


def asap_clusters(bank: TaskBank, words: WordVectors, clusters: int, *, seed: int = 0) -> Clusters:
    """Cluster the tasks so that each cluster is served by one logistic regression."""
    if not binary_and_shared(bank):
        raise DataError(
            "ASAP-style clusters need tasks that all choose between the same two labels, and these do not. "
            "Use find_clusters, which asks for nothing of the kind."
        )
    tasks = [_features(task, words, np.random.default_rng([seed, place])) for place, task in enumerate(bank)]
    rows = np.concatenate([task[0] for task in tasks])  # (texts, features)
    signs = np.concatenate([task[1] for task in tasks])  # (texts,): -1 or 1
    owners = np.repeat(np.arange(len(tasks)), [len(task[1]) for task in tasks])  # (texts,)
    even = 1 / np.bincount(owners)[owners]  # (texts,): each task counts alike
    own = np.stack([_fit(rows[owners == place], signs[owners == place], None) for place in range(len(tasks))])
    labels = _group(own, clusters, seed)  # (tasks,)
    models = np.stack([own[labels == cluster].mean(axis=0) for cluster in range(clusters)])  # (K, features + 1)
    for heat in HEATS:
        losses = _losses(rows, signs, owners, models)  # (tasks, K)
        belongs = softmax(-losses / heat, axis=1)  # (tasks, K): q
        models = np.stack(
            [_fit(rows, signs, even * belongs[owners, place], models[place]) for place in range(clusters)]
        )
    losses = _losses(rows, signs, owners, models)
    return Clusters(bank.names, number_by_first(_fill(losses.argmin(axis=1), losses)))


def _features(task: Task, words: WordVectors, rng: np.random.Generator) -> tuple[Floats, Floats]:
    part = task.train.take(rng.permutation(len(task.train))[:TEXTS])
    rows = normalize(words.encode(part.texts)).astype(np.float64) * SCALE
    return np.hstack([rows, np.ones((len(rows), 1))]), 2.0 * part.numbers - 1


def _fit(rows: Floats, signs: Floats, weights: Floats | None, start: Floats | None = None) -> Floats:
    """Weighted logistic regression with a ridge: (features,)."""
    from scipy.optimize import minimize

    weights = np.ones(len(signs)) if weights is None else weights
    weights = weights / max(weights.sum(), 1e-12)

    def loss_and_slope(model: Floats) -> tuple[float, Floats]:
        margins = signs * (rows @ model)  # (texts,)
        slope = -(weights * signs * expit(-margins)) @ rows + RIDGE * model
        return float(weights @ np.logaddexp(0, -margins) + 0.5 * RIDGE * model @ model), slope

    start = np.zeros(rows.shape[1]) if start is None else start
    found: Floats = minimize(loss_and_slope, start, jac=True, method="L-BFGS-B", options={"maxiter": 30}).x
    return found


def _losses(rows: Floats, signs: Floats, owners: Ints, models: Floats) -> Floats:
    """The mean loss of each cluster's regression on each task: (tasks, K)."""
    each = np.logaddexp(0, -signs[:, None] * (rows @ models.T))  # (texts, K)
    totals = np.stack([np.bincount(owners, weights=column) for column in each.T], axis=1)  # (tasks, K)
    return totals / np.bincount(owners)[:, None]


def _group(models: Floats, clusters: int, seed: int) -> Ints:
    from sklearn.cluster import KMeans

    unit_embeddings = models / np.maximum(np.linalg.norm(models, axis=1, keepdims=True), 1e-12)
    labels: Ints = KMeans(clusters, n_init=10, random_state=seed).fit_predict(unit_embeddings)
    return _fill(labels, np.zeros((len(labels), clusters)))


def _fill(labels: Ints, losses: Floats) -> Ints:
    """No cluster empty: each that is takes the task with the largest loss among those with company."""
    labels = labels.copy()
    for cluster in range(losses.shape[1]):
        if not (labels == cluster).any():
            company = np.bincount(labels, minlength=losses.shape[1])[labels] > 1
            labels[np.where(company, losses[np.arange(len(labels)), labels], -np.inf).argmax()] = cluster
    return labels
