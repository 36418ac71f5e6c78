"""A model of any number of planted clusters, to be reported on."""

from dataclasses import replace

import numpy as np

from manymetrics.classifier import Predictor
from manymetrics.model import MetricModel, Origin, describe_predictor
from manymetrics.partition import filter_pairs
from manymetrics.recipe import Recipe
from manymetrics.values import Clusters, Similarity, TransferMatrix

DOMAINS = ("books", "dvd", "music", "baby", "camera")


def planted_model(model, *, tasks, clusters, names=None, share=1.0, seed=0):
    """A model whose transfer is high within planted clusters; a share of its pairs is measured.

    Its metrics are those of the given model, the first of them once for each cluster.
    """
    rng = np.random.default_rng(seed)
    labels = np.sort(np.arange(tasks) % clusters)
    names = tuple(names or (f"{DOMAINS[label % 5]}.t{n}" for n, label in enumerate(labels)))
    together = labels[:, None] == labels[None, :]
    ease = rng.uniform(-0.1, 0.1, tasks)
    scores = 0.55 + 0.25 * together + ease + rng.normal(0, 0.05, (tasks, tasks))
    scores[rng.random(scores.shape) > share] = np.nan
    alike = np.where(together, 0.9, 0.05) + rng.normal(0, 0.03, scores.shape)
    found = Clusters(names, labels)
    learned = [replace(model.metrics[0], name=f"cluster-{k}", tasks=group, cluster=k) for k, group in enumerate(found)]
    predictor = Predictor((*learned, *model.metrics[2:]), letters=model.predictor.letters)
    origin = Origin(
        found,
        TransferMatrix(names, scores),
        filter_pairs(TransferMatrix(names, scores)),
        Similarity(names, (alike + alike.T) / 2, np.zeros(scores.shape), sparsity=0.2, steps=40, gap=1e-7),
        Recipe(clusters=clusters),
        held_out=names[:: max(tasks // 6, 1)],
        bank_fingerprint="f00d" * 16,
        **describe_predictor(predictor),
    )
    return MetricModel(predictor, origin)
