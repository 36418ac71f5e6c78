"""Files on disk: runs with one result per job, and folders that are replaced as a whole. Every write is atomic."""

from manymetrics.store import packed as packed
from manymetrics.store.files import Kind as Kind
from manymetrics.store.files import check_output_folder as check_output_folder
from manymetrics.store.files import folder_fingerprint as folder_fingerprint
from manymetrics.store.files import read_folder as read_folder
from manymetrics.store.files import write_atomically as write_atomically
from manymetrics.store.files import write_folder as write_folder
from manymetrics.store.runs import Failure as Failure
from manymetrics.store.runs import Run as Run
