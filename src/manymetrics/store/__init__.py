"""What is kept on disk: runs, unit by unit, and saved models. JSON and safetensors only; every write is atomic."""

from manymetrics.store.files import read_checked, write_atomically
from manymetrics.store.learned import Learned
from manymetrics.store.models import MetricModel, load_classifier, load_learned, load_model, save_learned
from manymetrics.store.onnx_export import OnnxExport, export_onnx
from manymetrics.store.runs import Failure, Run
from manymetrics.store.upkeep import RunSummary, Unused, find_unused, list_runs, remove_unused, show_run

__all__ = [
    "Failure",
    "Learned",
    "MetricModel",
    "OnnxExport",
    "Run",
    "RunSummary",
    "Unused",
    "export_onnx",
    "find_unused",
    "list_runs",
    "load_classifier",
    "load_learned",
    "load_model",
    "read_checked",
    "remove_unused",
    "save_learned",
    "show_run",
    "write_atomically",
]
