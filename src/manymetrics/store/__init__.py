"""What is kept on disk: runs, unit by unit, and folders that are there whole or not at all. Every write is atomic."""

from manymetrics.store.files import write_atomically
from manymetrics.store.folders import Kind, read_folder, require_place, seal_of, write_folder
from manymetrics.store.runs import Failure, Run
from manymetrics.store.upkeep import RunSummary, Unused, find_unused, list_runs, remove_unused, show_run

__all__ = [
    "Failure",
    "Kind",
    "Run",
    "RunSummary",
    "Unused",
    "find_unused",
    "list_runs",
    "read_folder",
    "remove_unused",
    "require_place",
    "seal_of",
    "show_run",
    "write_atomically",
    "write_folder",
]
