"""The values that are handed from stage to stage, each checking itself once, when it is made.

All are frozen; arrays inside them are read-only copies.
"""

from manymetrics.values.matrices import Bools, Clusters, Floats, Ints, ObservedPairs, Similarity, TransferMatrix
from manymetrics.values.tasks import (
    META_TRAIN,
    ROLES,
    TARGET,
    Episode,
    Examples,
    SkippedTask,
    Task,
    TaskBank,
    as_texts,
    as_tuple,
    fold_text,
    html_table,
    label_words,
)
from manymetrics.values.work import Each, Job, RunJobs, SharedData, no_progress, random_key, rng_for
