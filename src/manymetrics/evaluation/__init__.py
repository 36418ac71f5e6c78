"""How good it is: target tasks, scores with intervals, scope, and the demonstration."""

from manymetrics.evaluation.demo import Demo, run_demo
from manymetrics.evaluation.scope import ScopeEvaluation, evaluate_scope
from manymetrics.evaluation.scoring import Answered, Estimate, mean_over_tasks, paired_gain
from manymetrics.evaluation.targets import Evaluation, evaluate

__all__ = [
    "Answered",
    "Demo",
    "Estimate",
    "Evaluation",
    "ScopeEvaluation",
    "evaluate",
    "evaluate_scope",
    "mean_over_tasks",
    "paired_gain",
    "run_demo",
]
