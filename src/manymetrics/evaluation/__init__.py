"""Evaluation: target tasks, sources held out in turn, scores with intervals, and scope."""

from manymetrics.evaluation.leave_one_out import evaluate_leave_one_out as evaluate_leave_one_out
from manymetrics.evaluation.scope import ScopeEvaluation as ScopeEvaluation
from manymetrics.evaluation.scope import evaluate_scope as evaluate_scope
from manymetrics.evaluation.scoring import Estimate as Estimate
from manymetrics.evaluation.targets import BaselineResult as BaselineResult
from manymetrics.evaluation.targets import Evaluation as Evaluation
from manymetrics.evaluation.targets import choose_targets as choose_targets
from manymetrics.evaluation.targets import evaluate as evaluate
