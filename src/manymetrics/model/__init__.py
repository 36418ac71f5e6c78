"""A learned model: what answers, where it comes from, and the folder it is saved in."""

from manymetrics.model.change import remove_parts
from manymetrics.model.metric_model import MetricModel, check_output_folders, load_classifier, load_model
from manymetrics.model.origin import (
    Clustering,
    Origin,
    SharedLabels,
    describe_predictor,
    load_origin,
    model_folder,
    save_origin,
)
