"""Parquet files and Arrow streams -> records, read batch by batch with pyarrow within limits of rows and bytes.

An Arrow stream is what `save_to_disk` of Hugging Face's datasets writes, which also stores the names of classes.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from manymetrics.collect.readers.open import MAX_TABLE_BYTES, lookup, open_regular, require_at_most
from manymetrics.collect.readers.records import MAX_ROWS, NO_CLASS, Record, TableOptions
from manymetrics.errors import InputError, MissingExtra, TaskFormatError

BATCH_ROWS = 100  # of a Parquet file decoded at once: a small file may hold very long texts
UNLABELLED = -1  # the class number of texts without a label


def arrow_rows(path: Path, kind: str, options: TableOptions) -> Iterator[Record]:
    """The rows of a file of the kind `parquet` or `arrow`."""
    with _pyarrow_errors(path, kind), open_regular(path) as raw:
        from pyarrow import ipc, parquet

        file = ipc.open_stream(raw) if kind == "arrow" else parquet.ParquetFile(raw)
        schema = file.schema if kind == "arrow" else file.schema_arrow
        names = options.choose(schema.names, str(path))
        columns = [name for name in names if name is not None]
        classes = _class_names(schema, names[1]) if options.class_names else []
        n_rows = n_bytes = 0
        for whole in file if kind == "arrow" else file.iter_batches(BATCH_ROWS, columns=columns):
            batch = whole.select(columns)
            batch.validate(full=True)  # before any offset in it is used
            n_bytes += batch.nbytes
            require_at_most(MAX_ROWS, n_rows + batch.num_rows, "rows", path)
            require_at_most(MAX_TABLE_BYTES, n_bytes, "uncompressed bytes", path)
            cells = [[None] * batch.num_rows if name is None else batch.column(name).to_pylist() for name in names]
            for text, label, task, split in zip(*cells, strict=True):
                n_rows += 1
                named = _class_name(label, classes, f"{path}, row {n_rows}") if classes else label
                yield Record(path, f"row {n_rows}", text, named, task, split)


@contextmanager
def _pyarrow_errors(path: Path, kind: str) -> Iterator[None]:
    """Turn errors of pyarrow, and its absence, into one sentence."""
    name = kind.capitalize()
    try:
        from pyarrow import ArrowException
    except ImportError:
        raise MissingExtra(f'{path}: {name} needs pyarrow. Install it: pip install "manymetrics[parquet]"') from None
    try:
        yield
    except InputError:
        raise
    except (ArrowException, OSError, ValueError, KeyError, IndexError, MemoryError) as error:
        reason = str(error).partition("\n")[0] or "too large"
        raise TaskFormatError(f"{path}: this is not a readable {name} file ({reason}). Write it again.") from None


def _class_names(schema: Any, label: str | None) -> list[str]:
    """The names of the classes of the label column, if Hugging Face stored them."""
    try:
        stored = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    except (ValueError, RecursionError):
        return []
    names = lookup(stored, "info", "features", str(label), "names")
    return list(map(str, names)) if isinstance(names, list) else []


def _class_name(label: Any, names: Sequence[str], where: str) -> Any:
    """The name of a class number, or the problem that it is none; other labels are returned unchanged."""
    if not isinstance(label, int):
        return label
    if label == UNLABELLED:
        return NO_CLASS
    if not 0 <= label < len(names):
        raise TaskFormatError(f"{where}: there is no class {label}, only 0 to {len(names) - 1}. Check the labels.")
    return names[label]
