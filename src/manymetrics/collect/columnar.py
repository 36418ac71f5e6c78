"""Parquet and Arrow files -> records: read piece by piece by pyarrow, and no more than is allowed.

Parquet   rows and bytes are looked up before anything is decoded; repeated strings are kept once
Arrow     a stream of batches, as `save_to_disk` of Hugging Face's datasets writes it; each is checked before use
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from manymetrics.collect.opening import MAX_BYTES, open_regular
from manymetrics.collect.rows import MAX_ROWS
from manymetrics.errors import InputError, MissingExtra, TaskFormatError

DICTIONARY, BATCH = 2, 3  # kinds of Arrow messages that hold data

Choice = Callable[[Sequence[str], str], tuple[str | None, ...]]  # columns found, and where -> the columns to read
Record = tuple[str, tuple[Any, ...]]  # the place of a row in its file, and its values in the order of the choice


def parquet_records(path: Path, choose: Choice) -> Iterator[Record]:
    """The rows of a Parquet file."""
    with _reading(path, "Parquet"), open_regular(path) as raw:
        from pyarrow import parquet

        about = parquet.ParquetFile(raw)
        names = choose(about.schema_arrow.names, str(path))
        _require_few_rows(path, _parquet_rows(about.metadata))
        _require_few_bytes(path, _parquet_bytes(about.metadata, names))
        strings = [name for name in names if name is not None and _require_plain(path, about.schema_arrow.field(name))]
        raw.seek(0)
        file = parquet.ParquetFile(raw, read_dictionary=strings, metadata=about.metadata)
        wanted = [name for name in names if name is not None]
        tables = (file.read_row_group(group, columns=wanted) for group in range(file.num_row_groups))
        yield from _records((batch for table in tables for batch in table.to_batches()), names, path)


def arrow_records(path: Path, choose: Choice) -> Iterator[Record]:
    """The rows of a file of Arrow batches."""
    with _reading(path, "Arrow"), open_regular(path) as raw:
        from pyarrow import ipc

        reader = ipc.open_stream(raw)
        names = choose(reader.schema.names, str(path))
        wanted = [reader.schema.get_field_index(name) for name in names if name is not None]
        for place in wanted:
            _require_plain(path, reader.schema.field(place))
        raw.seek(0)
        if any(map(_is_packed, ipc.MessageReader.open_stream(raw))):
            raise TaskFormatError(f"{path}: its batches are packed, and are not opened. Write it without compression.")
        raw.seek(0)
        options = ipc.IpcReadOptions(included_fields=wanted)
        yield from _records(ipc.open_stream(raw, options=options), names, path)


def features_in(path: Path) -> Any:
    """What Hugging Face has written about the columns into a Parquet or Arrow file; None if it has not."""
    arrow = path.suffix == ".arrow"
    with _reading(path, "Arrow" if arrow else "Parquet"), open_regular(path) as raw:
        from pyarrow import ipc, parquet

        schema = ipc.open_stream(raw).schema if arrow else parquet.ParquetFile(raw).schema_arrow
        about = (schema.metadata or {}).get(b"huggingface", b"{}")
    try:
        info = json.loads(about)
        return info["info"]["features"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None


@contextmanager
def _reading(path: Path, kind: str) -> Iterator[None]:
    """Whatever pyarrow finds wrong with a file is one sentence, and so is a pyarrow that is not there."""
    try:
        from pyarrow import ArrowException
    except ImportError:
        raise MissingExtra(
            f'{path}: pyarrow is needed to read {kind}. Install it with: pip install "manymetrics[parquet]"'
        ) from None
    try:
        yield
    except InputError:
        raise
    except (ArrowException, OSError, ValueError, KeyError, IndexError, MemoryError) as error:
        reason = str(error).partition("\n")[0] or "too large"
        raise TaskFormatError(f"{path}: this is not a readable {kind} file ({reason}). Write it again.") from None


def _records(batches: Iterable[Any], names: Sequence[str | None], path: Path) -> Iterator[Record]:
    number = 0
    for batch in batches:
        batch.validate(full=True)  # before anything in it is followed
        _require_few_rows(path, number + batch.num_rows)
        columns = [[None] * batch.num_rows if name is None else _values(batch.column(name)) for name in names]
        for values in zip(*columns, strict=True):
            number += 1
            yield f"row {number}", values


def _values(column: Any) -> list[Any]:
    """The values of a column; of a dictionary each entry is made once, however often it is used."""
    if not hasattr(column, "dictionary"):
        return list(column.to_pylist())
    entries = column.dictionary.to_pylist()
    return [None if place is None else entries[place] for place in column.indices.to_pylist()]


def _require_plain(path: Path, field: Any) -> bool:
    """Refuse a column of anything but strings and numbers, before it is read; tells whether it is one of strings."""
    from pyarrow import types

    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    if types.is_string(kind) or types.is_large_string(kind):
        return True
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind):
        return False
    raise TaskFormatError(
        f"{path}: the column {field.name[:40]!r} is of type {str(kind)[:40]}, expected strings. Write it as text."
    )


def _require_few_rows(path: Path, rows: int) -> None:
    if rows > MAX_ROWS:
        raise TaskFormatError(
            f"{path}: found {rows:,} rows, a file may have at most {MAX_ROWS:,}. "
            "Take a sample of them, or split the task in several."
        )


def _require_few_bytes(path: Path, size: int) -> None:
    if size > MAX_BYTES:
        raise TaskFormatError(
            f"{path}: the columns have {size:,} bytes when unpacked, {MAX_BYTES:,} are the most that is read. "
            "Take a sample of the rows, or split the task in several."
        )


def _is_packed(message: Any) -> bool:
    """Whether a batch is compressed, told from its head before it is unpacked (Message.fbs of Arrow)."""
    head = memoryview(message.metadata)
    table = _follow(head, 0)
    kind, inner = _field(head, table, 1), _field(head, table, 2)
    if kind is None or inner is None or head[kind] not in (DICTIONARY, BATCH):
        return False
    batch: int | None = _follow(head, inner)
    if head[kind] == DICTIONARY:
        inner = _field(head, _follow(head, inner), 1)
        batch = None if inner is None else _follow(head, inner)
    return batch is not None and _field(head, batch, 3) is not None


def _follow(head: memoryview, place: int) -> int:
    return place + int.from_bytes(head[place : place + 4], "little")


def _field(head: memoryview, table: int, number: int) -> int | None:
    """Where a field of a FlatBuffers table is; None if the table does not have it."""
    about = table - int.from_bytes(head[table : table + 4], "little", signed=True)
    slot = about + 4 + 2 * number
    if slot >= about + int.from_bytes(head[about : about + 2], "little"):
        return None
    offset = int.from_bytes(head[slot : slot + 2], "little")
    return table + offset if offset else None


def _parquet_rows(about: Any) -> int:
    rows = sum(int(about.row_group(group).num_rows) for group in range(about.num_row_groups))
    return max(int(about.num_rows), rows)


def _parquet_bytes(about: Any, names: Sequence[str | None]) -> int:
    """The unpacked size of some columns, as the file tells it."""
    groups = [about.row_group(group) for group in range(about.num_row_groups)]
    chunks = (group.column(place) for group in groups for place in range(group.num_columns))
    return sum(int(chunk.total_uncompressed_size) for chunk in chunks if chunk.path_in_schema.split(".")[0] in names)
