"""Evaluation: target tasks, sources held out in turn, scores with intervals, scope, and the demonstration."""

from manymetrics.evaluation.demo import Demo, run_demo
from manymetrics.evaluation.leave_one_out import evaluate_leave_one_out
from manymetrics.evaluation.scope import ScopeEvaluation, evaluate_scope
from manymetrics.evaluation.scoring import Estimate
from manymetrics.evaluation.targets import BaselineResult, Evaluation, choose_targets, evaluate

__all__ = [
    "BaselineResult",
    "Demo",
    "Estimate",
    "Evaluation",
    "ScopeEvaluation",
    "choose_targets",
    "evaluate",
    "evaluate_leave_one_out",
    "evaluate_scope",
    "run_demo",
]
