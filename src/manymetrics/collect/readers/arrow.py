"""Parquet files and Arrow streams -> rows, read batch by batch with pyarrow within limits of rows and bytes.

An Arrow stream is what `save_to_disk` of Hugging Face's datasets writes.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from manymetrics.collect.readers.columns import LABEL_NAMES, Row, TableOptions
from manymetrics.collect.readers.open import MAX_TABLE_BYTES, lookup, open_regular, require_at_most
from manymetrics.collect.readers.records import MAX_ROWS
from manymetrics.errors import InputError, MissingExtra, TaskFormatError

BATCH_ROWS = 100  # of a Parquet file decoded at once: a small file may hold very long texts


def arrow_rows(path: Path, kind: str, options: TableOptions) -> Iterator[Row]:
    """The rows of a file of the kind `parquet` or `arrow`."""
    with _pyarrow_errors(path, kind), open_regular(path) as raw:
        from pyarrow import ipc, parquet

        if kind == "arrow":
            stream = ipc.open_stream(raw)
            yield from _rows(stream, _choose(stream.schema, options, path), path)
        else:
            file = parquet.ParquetFile(raw)
            names = _choose(file.schema_arrow, options, path)
            columns = [name for name in names if name is not None]
            yield from _rows(file.iter_batches(BATCH_ROWS, columns=columns), names, path)


def class_names(path: Path, options: TableOptions) -> tuple[str, ...]:
    """The names of the classes of the label column, if Hugging Face stored them in this Parquet or Arrow file."""
    kind = path.suffix.removeprefix(".")
    if kind not in ("parquet", "arrow"):
        return ()
    with _pyarrow_errors(path, kind), open_regular(path) as raw:
        from pyarrow import ipc, parquet

        schema = ipc.open_stream(raw).schema if kind == "arrow" else parquet.ParquetFile(raw).schema_arrow
        stored = (schema.metadata or {}).get(b"huggingface", b"{}")
    try:
        features = lookup(json.loads(stored), "info", "features")
    except (ValueError, RecursionError):
        return ()
    columns = features.items() if isinstance(features, dict) else ()
    names = {column.casefold(): lookup(feature, "names") for column, feature in columns}
    expected = [options.label.casefold()] if options.label else LABEL_NAMES
    classes = next((names[column] for column in expected if column in names), None)
    return tuple(map(str, classes)) if isinstance(classes, list) else ()


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


def _choose(schema: Any, options: TableOptions, path: Path) -> tuple[str | None, ...]:
    """The chosen columns; one that holds neither strings nor numbers is refused."""
    from pyarrow import types

    names = options.choose(schema.names, str(path))
    numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_null)
    for field in (schema.field(name) for name in names if name is not None):
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if not any(is_kind(kind) for is_kind in (types.is_string, types.is_large_string, *numbers)):
            column = f"the column {field.name[:40]!r} is of type {str(kind)[:40]}"
            raise TaskFormatError(f"{path}: {column}, expected strings. Convert it, or choose another.")
    return names


def _rows(batches: Iterable[Any], names: Sequence[str | None], path: Path) -> Iterator[Row]:
    n_rows = n_bytes = 0
    for whole in batches:
        batch = whole.select([name for name in names if name is not None])
        batch.validate(full=True)  # before any offset in it is used
        n_bytes += batch.nbytes
        require_at_most(MAX_ROWS, n_rows + batch.num_rows, "rows", path)
        require_at_most(MAX_TABLE_BYTES, n_bytes, "uncompressed bytes", path)
        columns = [[None] * batch.num_rows if name is None else batch.column(name).to_pylist() for name in names]
        for values in zip(*columns, strict=True):
            n_rows += 1
            yield f"row {n_rows}", values
