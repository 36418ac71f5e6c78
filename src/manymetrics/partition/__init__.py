"""Stage 4: from measured transfer between tasks to clusters of tasks that share a metric.

    keep_reliable_pairs    S -> (Y, Omega)          keep the pairs on which both directions agree
    complete_similarity    (Y, Omega) -> (X, E)     fill in the rest, separate the errors
    cluster_tasks          X -> C_1 .. C_K          cluster the tasks

    default_sparsity       lambda, from the number of known pairs
    choose_clusters        K, from the spectrum
    choose_p1              p1, from how often one direction, or one kind of evidence, speaks without the other

Paper: section 3.1, Robust Task Clustering by Matrix Completion. Everything here is pure: arrays in, arrays out. Each
function works on the tasks in the order of their names, so the order they are given in changes nothing.
"""

from manymetrics.partition.choice import choose_clusters
from manymetrics.partition.completion import complete_similarity, default_sparsity
from manymetrics.partition.pairs import choose_p1, keep_reliable_pairs
from manymetrics.partition.spectral import cluster_tasks

__all__ = [
    "choose_clusters",
    "choose_p1",
    "cluster_tasks",
    "complete_similarity",
    "default_sparsity",
    "keep_reliable_pairs",
]
