"""Stage 3, TaskBank -> S: a model for each task, and how well each one's representation serves the others."""

from manymetrics.measure.evidence import Evidence, join_evidence
from manymetrics.measure.heads import Head, fit_head
from manymetrics.measure.models import TaskModel, get_ready_to_train, open_task_model, train_task_models
from manymetrics.measure.projections import measure_projected_transfer, train_task_projections
from manymetrics.measure.transfer import choose_pairs, measure_transfer, pairs_enough, pairs_to_measure

__all__ = [
    "Evidence",
    "Head",
    "TaskModel",
    "choose_pairs",
    "fit_head",
    "get_ready_to_train",
    "join_evidence",
    "measure_projected_transfer",
    "measure_transfer",
    "open_task_model",
    "pairs_enough",
    "pairs_to_measure",
    "train_task_models",
    "train_task_projections",
]
