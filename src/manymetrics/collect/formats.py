"""One file -> Examples: TSV, CSV, JSONL and Parquet, every row checked and cleaned on its way in.

    TSV       text<TAB>label, no header, no quoting; the last tab of the line separates
    CSV       a header row with the columns text and label, quoted as RFC 4180 says
    JSONL     one object a line with the fields text and label
    Parquet   the columns text and label (needs pyarrow)

Instead of text, a column may be named sentence or utterance; instead of label, intent or category. All text is UTF-8,
with or without a byte order mark, and is brought to Unicode's NFC once, here. Empty lines are skipped; a blank text is
a text; a blank label is an error. Lines end at LF or CRLF and nowhere else, because texts may hold U+2028 and its like.
"""

import csv
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from manymetrics.errors import MissingExtra, TaskFormatError
from manymetrics.values import Examples, Texts

MAX_ROWS = 1_000_000
MAX_LABELS = 1_000
TEXT_NAMES = ("text", "sentence", "utterance")
LABEL_NAMES = ("label", "intent", "category")

Choice = Callable[[Sequence[str], str], tuple[str | None, ...]]  # columns found, and where -> the columns to read
Record = tuple[str, tuple[Any, ...]]  # the place of a row in its file, and its values in the order of the choice

_SURROGATE = re.compile("[\ud800-\udfff]")


class Rows:
    """Rows of one file, collected one by one; each is checked and cleaned when it is added."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._texts: list[str] = []
        self._labels: list[str] = []
        self._known: dict[str, str] = {}  # label as written -> label as kept, one string for all rows that share it

    def add(self, text: object, label: object, *, where: str) -> None:
        """Take in one row; `where` is its place in the file, such as "line 17"."""
        if len(self._texts) >= MAX_ROWS:
            raise TaskFormatError(
                f"{self._path}: found more than {MAX_ROWS:,} rows. Take a sample of them, or split the task in several."
            )
        if not isinstance(text, str):
            raise TaskFormatError(
                f"{self._path}, {where}: the text is {kind_of(text)}, expected a string. Write it as text."
            )
        if isinstance(label, bool) or not isinstance(label, str | int):
            raise TaskFormatError(
                f"{self._path}, {where}: the label is {kind_of(label)}, expected a string. Write it as text."
            )
        self._texts.append(self._clean(text, where))
        self._labels.append(self._label(str(label), where))

    def examples(self) -> Examples:
        """All rows taken in, in their order."""
        found = len(set(self._known.values()))
        if found > MAX_LABELS:
            raise TaskFormatError(
                f"{self._path}: found {found:,} labels, a task may have at most {MAX_LABELS:,}. "
                "Check which column holds the label, or split the task in several."
            )
        return Examples(Texts(self._texts), tuple(self._labels))

    def _label(self, written: str, where: str) -> str:
        if (kept := self._known.get(written)) is None:
            kept = self._clean(written, where).strip()
            if not kept:
                raise TaskFormatError(
                    f"{self._path}, {where}: the label is blank. Give every text a label, or remove the row."
                )
            self._known[written] = kept
        return kept

    def _clean(self, text: str, where: str) -> str:
        if "\0" in text:
            raise TaskFormatError(
                f"{self._path}, {where}: found a NUL character. Remove it, or export the file again as UTF-8 text."
            )
        if text.isascii():
            return text
        if half := _SURROGATE.search(text):
            raise TaskFormatError(
                f"{self._path}, {where}: found half of a character (the lone surrogate U+{ord(half.group()):04X}). "
                "Remove it, or export the file again as UTF-8 text."
            )
        return unicodedata.normalize("NFC", text)


def read_examples(path: str | Path) -> Examples:
    """Read one file of examples, in the format that its ending names; an unknown ending is read as TSV."""
    path = Path(path)
    rows = Rows(path)
    for where, (text, label) in read_records(path, choose_text_and_label):
        rows.add(text, label, where=where)
    return rows.examples()


def read_records(path: Path, choose: Choice, *, kind: str | None = None) -> Iterator[Record]:
    """The rows of a file; of its columns those that `choose` names, and nothing where it names none.

    A TSV file has no names: of each row come text and label.
    """
    kind = kind or path.suffix.removeprefix(".")
    if kind in ("csv", "jsonl", "parquet"):
        return {"csv": _csv_records, "jsonl": _jsonl_records, "parquet": _parquet_records}[kind](path, choose)
    return _tsv_records(path)


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file, their ends kept, a byte order mark taken off."""
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                try:
                    yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise TaskFormatError(
                        f"{path}, line {number}: the byte 0x{error.object[error.start]:02x} is not UTF-8. "
                        "Save the file as UTF-8."
                    ) from None
    except OSError as error:
        raise _cannot_open(path, error) from None


def _cannot_open(path: Path, error: OSError) -> TaskFormatError:
    reason = error.strerror or str(error)
    return TaskFormatError(f"{path}: cannot be opened ({reason}). Check that it may be read.")


def read_json(path: Path) -> Any:
    """The content of a JSON file."""
    text = "".join(read_lines(path))
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        place = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "too large or too deep"
        raise TaskFormatError(f"{path}{place}: this is not JSON ({reason}). Export the file again.") from None


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file that are not empty, each with the number of its last line."""
    reader = csv.reader(read_lines(path), strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise TaskFormatError(
            f"{path}, line {reader.line_num}: this is not CSV ({error}). "
            "Check the double quotes, or store the task as JSONL."
        ) from None


def _tsv_records(path: Path) -> Iterator[Record]:
    for number, line in enumerate(read_lines(path), start=1):
        row = line.removesuffix("\n").removesuffix("\r")
        if not row:
            continue
        text, tab, label = row.rpartition("\t")
        if not tab:
            raise TaskFormatError(
                f"{path}, line {number}: found 1 field, expected text<TAB>label. Check the separator."
            )
        yield f"line {number}", (text, label)


def _csv_records(path: Path, choose: Choice) -> Iterator[Record]:
    rows = csv_rows(path)
    header = [name.strip().casefold() for name in next(rows, (1, []))[1]]
    places = [None if name is None else header.index(name) for name in choose(header, f"{path}, line 1")]
    for line, row in rows:
        if len(row) != len(header):
            raise TaskFormatError(
                f"{path}, line {line}: found {len(row)} field{'s' if len(row) > 1 else ''}, "
                f"expected {len(header)} as in the header. Put texts that hold commas in double quotes."
            )
        yield f"line {line}", tuple(None if place is None else row[place] for place in places)


def _jsonl_records(path: Path, choose: Choice) -> Iterator[Record]:
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        where = f"line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "too large or too deep"
            raise _not_an_object(path, where, reason=reason) from None
        if not isinstance(row, dict):
            raise _not_an_object(path, where, reason=f"found {kind_of(row)}")
        yield where, tuple(None if name is None else row[name] for name in choose(list(row), f"{path}, {where}"))


def _not_an_object(path: Path, where: str, *, reason: str) -> TaskFormatError:
    return TaskFormatError(
        f"{path}, {where}: this is not a JSON object ({reason}). "
        'Write one object a line, such as {"text": "where is my parcel", "label": "delivery"}.'
    )


def _parquet_records(path: Path, choose: Choice) -> Iterator[Record]:
    with open_parquet(path) as file:
        if file.metadata.num_rows > MAX_ROWS:
            raise TaskFormatError(
                f"{path}: found {file.metadata.num_rows:,} rows, a file may have at most {MAX_ROWS:,}. "
                "Take a sample of them, or split the task in several."
            )
        names = choose(file.schema_arrow.names, str(path))
        table = file.read(columns=[name for name in names if name is not None])
        columns = [[None] * len(table) if name is None else table.column(name).to_pylist() for name in names]
    for number, values in enumerate(zip(*columns, strict=True), start=1):
        yield f"row {number}", values


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """A Parquet file, opened by pyarrow; whatever pyarrow finds wrong with it is one sentence."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise MissingExtra(
            f'{path}: pyarrow is needed to read Parquet. Install it with: pip install "manymetrics[parquet]"'
        ) from None
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except TaskFormatError:
        raise
    except (ArrowException, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise TaskFormatError(f"{path}: this is not a readable Parquet file ({reason}). Write it again.") from None


def choose_text_and_label(found: Sequence[str], where: str) -> tuple[str, str]:
    """The columns that hold text and label, known by their names."""
    text = next((name for name in TEXT_NAMES if name in found), None)
    label = next((name for name in LABEL_NAMES if name in found), None)
    if text is None or label is None:
        raise TaskFormatError(
            f"{where}: found {listed(found)}, expected 'text' and 'label'. "
            "Name the columns so; sentence or utterance, and intent or category, are understood too."
        )
    return text, label


def listed(names: Sequence[str]) -> str:
    """Names of columns, for a sentence."""
    if not names:
        return "no column names"
    shown = ", ".join(ascii(name[:40]) for name in names[:5])
    return f"the columns {shown}" + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def kind_of(value: object) -> str:
    """What a value is, for a sentence."""
    names = {type(None): "missing", bool: "true or false", int: "a number", float: "a number", str: "a string"}
    names |= {list: "a list", dict: "an object", bytes: "bytes"}
    return names.get(type(value), f"of type {type(value).__name__}")
