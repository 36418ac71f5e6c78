"""A learned model: what answers, where it comes from, and the folder it is saved in."""

from manymetrics.model.metric_model import MetricModel, check_output_folders, load_classifier, load_model
from manymetrics.model.origin import (
    Clustering,
    Origin,
    SharedLabels,
    check_origin_folder,
    describe_predictor,
    load_origin,
    model_folder,
    save_origin,
)
from manymetrics.model.removal import remove_parts

__all__ = [
    "Clustering",
    "MetricModel",
    "Origin",
    "SharedLabels",
    "check_origin_folder",
    "check_output_folders",
    "describe_predictor",
    "load_classifier",
    "load_model",
    "load_origin",
    "model_folder",
    "remove_parts",
    "save_origin",
]
