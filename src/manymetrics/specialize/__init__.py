"""Stage 5, clusters -> metrics: one encoder for each cluster, and what a metric is."""

from manymetrics.specialize.cluster_metrics import train_linear_metric, train_metrics
from manymetrics.specialize.metric import LabelHead, Metric
