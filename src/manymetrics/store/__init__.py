"""What is kept on disk: runs, unit by unit, and saved models. JSON and safetensors only; every write is atomic."""

from manymetrics.store.files import read_checked, write_atomically
from manymetrics.store.models import MetricModel, load_model
from manymetrics.store.runs import Failure, Run
from manymetrics.store.upkeep import RunSummary, Unused, find_unused, list_runs, remove_unused, show_run

__all__ = [
    "Failure",
    "MetricModel",
    "Run",
    "RunSummary",
    "Unused",
    "find_unused",
    "list_runs",
    "load_model",
    "read_checked",
    "remove_unused",
    "show_run",
    "write_atomically",
]
