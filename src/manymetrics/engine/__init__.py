"""Where work runs: in this process, in several, or on a cluster, with the same functions and the same results."""

from manymetrics.engine.display import ProgressDisplay
from manymetrics.engine.stages import Engine, Progress
from manymetrics.engine.units import Limits

__all__ = ["Engine", "Limits", "Progress", "ProgressDisplay"]
