"""Stage 5, clusters -> metrics: one encoder for each cluster, and what a metric is."""

from manymetrics.specialize.cluster_metrics import train_metrics
from manymetrics.specialize.linear import train_linear_metric
from manymetrics.specialize.metric import FittedMetric, LabelHead, Metric

__all__ = [
    "FittedMetric",
    "LabelHead",
    "Metric",
    "train_linear_metric",
    "train_metrics",
]
