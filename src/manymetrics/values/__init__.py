"""The values that are handed from stage to stage, each checking itself once, when it is made.

    Examples                                    labelled texts
    Episode                                     a few-shot problem: a support set, and queries to be answered from it
    Task, TaskBank              T_i             a labelled task and a collection of them
    TransferMatrix              S               how well the representation of task i serves task j
    ObservedPairs               Y on Omega      the pairs of tasks whose similarity is observed
    Similarity                  X, E            the completed similarity of all pairs, and the errors taken out
    Clusters                    C_1 .. C_K      which tasks share a metric
    Job, RunJobs, SharedData                    a piece of a long computation, what runs it, and what all pieces share

All are frozen; arrays inside them are read-only copies.
"""

from manymetrics.values.arrays import Bools, Floats, Ints, random_key, rng_for
from manymetrics.values.examples import Episode, Examples, as_texts, as_tuple
from manymetrics.values.matrices import Clusters, ObservedPairs, Similarity, TransferMatrix
from manymetrics.values.tasks import META_TRAIN, ROLES, TARGET, SkippedTask, Task, TaskBank
from manymetrics.values.work import Each, Job, RunJobs, SharedData, no_progress

__all__ = [
    "META_TRAIN",
    "ROLES",
    "TARGET",
    "Bools",
    "Clusters",
    "Each",
    "Episode",
    "Examples",
    "Floats",
    "Ints",
    "Job",
    "ObservedPairs",
    "RunJobs",
    "SharedData",
    "Similarity",
    "SkippedTask",
    "Task",
    "TaskBank",
    "TransferMatrix",
    "as_texts",
    "as_tuple",
    "no_progress",
    "random_key",
    "rng_for",
]
