"""Files on disk: runs with one result per job, and folders that are replaced as a whole. Every write is atomic."""

from manymetrics.store import packed
from manymetrics.store.files import write_atomically
from manymetrics.store.folders import Kind, check_output_folder, folder_fingerprint, read_folder, write_folder
from manymetrics.store.maintenance import RunSummary, Unused, find_unused, list_runs, remove_unused, show_run
from manymetrics.store.runs import Failure, Run

__all__ = [
    "Failure",
    "Kind",
    "Run",
    "RunSummary",
    "Unused",
    "check_output_folder",
    "find_unused",
    "folder_fingerprint",
    "list_runs",
    "packed",
    "read_folder",
    "remove_unused",
    "show_run",
    "write_atomically",
    "write_folder",
]
