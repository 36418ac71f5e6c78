"""The values that are handed from stage to stage, each checking itself once, when it is made.

All are frozen; arrays inside them are read-only copies.
"""

from manymetrics.values.examples import Episode as Episode
from manymetrics.values.examples import Examples as Examples
from manymetrics.values.examples import as_texts as as_texts
from manymetrics.values.examples import as_tuple as as_tuple
from manymetrics.values.examples import fold_text as fold_text
from manymetrics.values.examples import label_words as label_words
from manymetrics.values.matrices import Bools as Bools
from manymetrics.values.matrices import Clusters as Clusters
from manymetrics.values.matrices import Floats as Floats
from manymetrics.values.matrices import Ints as Ints
from manymetrics.values.matrices import ObservedPairs as ObservedPairs
from manymetrics.values.matrices import Similarity as Similarity
from manymetrics.values.matrices import TransferMatrix as TransferMatrix
from manymetrics.values.tasks import META_TRAIN as META_TRAIN
from manymetrics.values.tasks import ROLES as ROLES
from manymetrics.values.tasks import TARGET as TARGET
from manymetrics.values.tasks import SkippedTask as SkippedTask
from manymetrics.values.tasks import Task as Task
from manymetrics.values.tasks import TaskBank as TaskBank
from manymetrics.values.tasks import html_table as html_table
from manymetrics.values.work import Each as Each
from manymetrics.values.work import Job as Job
from manymetrics.values.work import RunJobs as RunJobs
from manymetrics.values.work import SharedData as SharedData
from manymetrics.values.work import no_progress as no_progress
from manymetrics.values.work import random_key as random_key
from manymetrics.values.work import rng_for as rng_for
