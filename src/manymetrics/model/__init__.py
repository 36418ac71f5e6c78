"""A learned model: what serves, where it comes from, and the folder it is saved in."""

from manymetrics.model.metric_model import (
    MetricModel,
    load_classifier,
    load_model,
    load_origin,
    require_origin_place,
    save_origin,
)
from manymetrics.model.origin import Centres, Origin, SharedLabels, describe_serving
from manymetrics.model.places import require_places

__all__ = [
    "Centres",
    "MetricModel",
    "Origin",
    "SharedLabels",
    "describe_serving",
    "load_classifier",
    "load_model",
    "load_origin",
    "require_origin_place",
    "require_places",
    "save_origin",
]
