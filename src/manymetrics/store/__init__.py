"""What is kept on disk: runs, unit by unit, and saved models. JSON and safetensors only; every write is atomic."""

from manymetrics.store.files import read_checked, write_atomically
from manymetrics.store.learned import Learned
from manymetrics.store.models import MetricModel, load_classifier, load_learned, load_model, save_learned
from manymetrics.store.onnx_export import OnnxExport, export_onnx
from manymetrics.store.runs import Run

__all__ = [
    "Learned",
    "MetricModel",
    "OnnxExport",
    "Run",
    "export_onnx",
    "load_classifier",
    "load_learned",
    "load_model",
    "read_checked",
    "save_learned",
    "write_atomically",
]
