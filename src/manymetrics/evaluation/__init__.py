"""How good it is: target tasks, baselines, intervals, the paper's experiments, and the demonstration."""

from manymetrics.evaluation.demo import Demo, run_demo
from manymetrics.evaluation.reproduction import reproduce
from manymetrics.evaluation.scoring import Answered, Estimate, mean_over_tasks, paired_gain
from manymetrics.evaluation.targets import Evaluation, evaluate

__all__ = [
    "Answered",
    "Demo",
    "Estimate",
    "Evaluation",
    "evaluate",
    "mean_over_tasks",
    "paired_gain",
    "reproduce",
    "run_demo",
]
