"""Stage 4: from measured transfer between tasks to clusters of tasks that share a metric.

    filter_pairs           S -> (Y, Omega)   keep the pairs on which both directions agree
    complete_similarity    (Y, Omega) -> (X, E)   fill in the rest, separate the errors
    cluster_tasks          X -> C_1 .. C_K   cluster the tasks

Paper: section 3.1, Robust Task Clustering by Matrix Completion. Everything here is pure: arrays in, arrays out. The
names of tasks are only passed on, so renaming them changes nothing. Learning sorts the tasks by content beforehand.
"""

from manymetrics.partition.clusters import choose_clusters, cluster_tasks
from manymetrics.partition.completion import complete_similarity, default_sparsity
from manymetrics.partition.pairs import choose_p1, filter_pairs, leave_out_unmeasured
