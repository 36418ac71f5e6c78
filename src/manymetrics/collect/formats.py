"""One file -> Examples: TSV, CSV, JSONL and Parquet.

    TSV       text<TAB>label, no quoting, the last tab of the line separates; a first line of known names is a header
    CSV       a header row with the columns text and label, quoted as RFC 4180 says; separated by , ; | or tabs
    JSONL     one object a line with the fields text and label
    Parquet   the columns text and label (needs pyarrow)

Instead of text, a column may be named sentence or utterance; instead of label, intent or category. All text is brought
to Unicode's NFC once, here. Empty lines are skipped; a row with a blank text or a blank label is left out and counted.
Lines end at LF or CRLF and nowhere else, because texts may hold U+2028 and its like.
"""

import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from manymetrics.collect.columnar import Choice, Record, arrow_records, parquet_records
from manymetrics.collect.delimited import FOUND, Dialect, csv_records, tsv_records
from manymetrics.collect.rows import MAX_LABELS as MAX_LABELS  # noqa: PLC0414
from manymetrics.collect.rows import ReadLog, Rows, kind_of
from manymetrics.errors import TaskFormatError, TaskLeftOut
from manymetrics.values import Examples

TEXT_NAMES = ("text", "sentence", "utterance")
LABEL_NAMES = ("label", "intent", "category")


def read_examples(path: str | Path, *, strict: bool = False) -> Examples:
    """Read one file of examples, in the format that its ending names; an unknown ending is read as TSV.

    Rows with a blank text or label are left out with a warning; with `strict` they are an error.
    """
    log = ReadLog()
    examples = read_logged(Path(path), log)
    if log.rows_left_out and strict:
        raise TaskFormatError(" ".join(log.sentences()))
    if log.rows_left_out:
        warnings.warn(log.as_warning(), TaskLeftOut, stacklevel=2)
    return examples


def read_logged(path: Path, log: ReadLog) -> Examples:
    """Read one file of examples; the log gets what is left out."""
    rows = Rows(path, log)
    for where, (text, label) in read_records(path, choose_text_and_label, log):
        rows.add(text, label, where=where)
    return rows.examples()


def read_records(path: Path, choose: Choice, log: ReadLog, *, kind: str | None = None, dialect: Dialect = FOUND,
                 named: bool = False) -> Iterator[Record]:  # fmt: skip
    """The rows of a file; of its columns those that `choose` names, and nothing where it names none.

    A TSV file need not have names: without them come text and label of each row. `named` says that it has.
    """
    kind = kind or path.suffix.removeprefix(".")
    if kind in ("parquet", "arrow"):
        return {"parquet": parquet_records, "arrow": arrow_records}[kind](path, choose)
    if kind in ("csv", "jsonl"):
        return {"csv": csv_records, "jsonl": _jsonl_records}[kind](path, choose, dialect)
    return tsv_records(path, choose, log, dialect=dialect, named=named)


def _jsonl_records(path: Path, choose: Choice, dialect: Dialect) -> Iterator[Record]:
    chosen: tuple[str | None, ...] | None = None
    for number, line in enumerate(dialect.lines(path), start=1):
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
        try:
            chosen = choose(list(row), f"{path}, {where}")
        except TaskFormatError:
            if chosen is None:  # else one row that lacks what others have: it is blank there
                raise
        yield where, tuple(None if name is None else row.get(name) for name in chosen)


def _not_an_object(path: Path, where: str, *, reason: str) -> TaskFormatError:
    return TaskFormatError(
        f"{path}, {where}: this is not a JSON object ({reason}). "
        'Write one object a line, such as {"text": "where is my parcel", "label": "delivery"}.'
    )


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
