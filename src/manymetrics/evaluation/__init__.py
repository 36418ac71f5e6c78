"""Evaluation: target tasks, sources held out in turn, scores with intervals, and scope."""

from manymetrics.evaluation.leave_one_out import evaluate_leave_one_out
from manymetrics.evaluation.scope import ScopeEvaluation, evaluate_scope
from manymetrics.evaluation.scoring import Estimate
from manymetrics.evaluation.targets import BaselineResult, Evaluation, choose_targets, evaluate

__all__ = [
    "BaselineResult",
    "Estimate",
    "Evaluation",
    "ScopeEvaluation",
    "choose_targets",
    "evaluate",
    "evaluate_leave_one_out",
    "evaluate_scope",
]
