"""What is kept on disk: runs, unit by unit, and saved models. JSON and safetensors only; every write is atomic."""

from manymetrics.store.files import read_checked, write_atomically
from manymetrics.store.models import MetricModel, load_classifier, load_model
from manymetrics.store.runs import Run

__all__ = ["MetricModel", "Run", "load_classifier", "load_model", "read_checked", "write_atomically"]
