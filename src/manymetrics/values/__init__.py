"""The values that are handed from stage to stage, each checking itself once, when it is made.

    Texts, LabelledTexts                        texts with what encoders remember of them; the same with label numbers
    Examples, Task, TaskBank    T_i             a labelled task and a collection of them
    Episode                                     a few-shot problem: a support set, and queries to be answered from it
    TransferMatrix              S               how well the representation of task i serves task j
    ObservedPairs               Y on Omega      the pairs of tasks whose likeness can be believed
    Similarity                  X, E            the completed likeness of all pairs, and the errors taken out
    Clusters                    C_1 .. C_K      which tasks share a metric
    Mix                         alpha           how much each metric counts for one new task
    Unit, Work, Material                        a piece of a long computation, who does it, and what all pieces share

All are frozen; arrays inside them are read-only copies.
"""

from manymetrics.values.arrays import Bools, Floats, Ints
from manymetrics.values.matrices import Clusters, Mix, ObservedPairs, Similarity, TransferMatrix
from manymetrics.values.tasks import META_TRAIN, ROLES, TARGET, Examples, LeftOut, Task, TaskBank
from manymetrics.values.texts import NO_TEXTS, Episode, LabelledTexts, Texts
from manymetrics.values.work import Material, Unit, Work

__all__ = [
    "META_TRAIN",
    "NO_TEXTS",
    "ROLES",
    "TARGET",
    "Bools",
    "Clusters",
    "Episode",
    "Examples",
    "Floats",
    "Ints",
    "LabelledTexts",
    "LeftOut",
    "Material",
    "Mix",
    "ObservedPairs",
    "Similarity",
    "Task",
    "TaskBank",
    "Texts",
    "TransferMatrix",
    "Unit",
    "Work",
]
