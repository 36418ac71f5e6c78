"""Stage 6, encoders + examples -> a task's own metric: assignment to clusters, regression, fallback, published mix."""

from manymetrics.weigh.assignment import Assignment, ClusterAssigner, learn_assigner
from manymetrics.weigh.published import GradientSettings, tune_gradient
from manymetrics.weigh.task_metric import TaskMetric, encoder_weights, fit_head
