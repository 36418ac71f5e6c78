"""Stage 5, clusters -> metrics: one encoder for each cluster, and what a metric is."""

from manymetrics.specialize.linear import train_linear_metrics
from manymetrics.specialize.metric import FittedMetric, Metric, SharedLabelMetric, SimilarityMetric
from manymetrics.specialize.projections import train_cluster_projections, train_shared_projection
from manymetrics.specialize.training import train_metrics
from manymetrics.specialize.tuning import tune_encoder
from manymetrics.specialize.words import train_word_metric

__all__ = [
    "FittedMetric",
    "Metric",
    "SharedLabelMetric",
    "SimilarityMetric",
    "train_cluster_projections",
    "train_linear_metrics",
    "train_metrics",
    "train_shared_projection",
    "train_word_metric",
    "tune_encoder",
]
