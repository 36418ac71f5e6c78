"""Runs jobs in this process, in several or on a cluster, with the same functions and the same results."""

from manymetrics.engine.progress import Progress, ProgressDisplay
from manymetrics.engine.run_job import Limits
from manymetrics.engine.stage import Engine, OpenEngine, engines
