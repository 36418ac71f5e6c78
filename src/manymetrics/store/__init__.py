"""Files on disk: runs with one result per job, and folders that are replaced as a whole. Every write is atomic."""

from manymetrics.store import packed
from manymetrics.store.files import (
    Kind,
    check_output_folder,
    folder_fingerprint,
    read_folder,
    write_atomically,
    write_folder,
)
from manymetrics.store.runs import Failure, Run
