"""A table in any format -> records, Examples or texts.

CSV     a header and quotes as in RFC 4180; the delimiter is the one for which the header makes sense
TSV     text<TAB>label without quoting, separated at the last tab; or a header of known names, and fields by name
JSONL   one object a line; JSON: a list of objects

Columns of a file without a header can be chosen by number, from 1. Lines end at LF or CRLF only, because texts may hold
U+2028 and other line separators.
"""

import csv
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from manymetrics.collect.readers.arrow import arrow_rows
from manymetrics.collect.readers.open import json_problem, read_json, read_lines, refuse_spreadsheet
from manymetrics.collect.readers.records import ReadLog, Record, TableOptions, clean_text, collect_examples, kind_of
from manymetrics.errors import TaskFormatError
from manymetrics.values import Examples

TABLES = ("csv", "tsv", "jsonl", "json", "parquet", "arrow")
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
LINES_TO_DETECT = 30  # lines of a CSV file from which its delimiter is detected
EXAMPLE = '{"text": "where is my parcel", "label": "delivery"}'  # in messages

Line = tuple[int, str]  # number and content


def read_examples(path: str | Path) -> Examples:
    """Read one file of examples, in the format that its ending names; an unknown ending is read as TSV.

    Rows with a blank text or label are left out with a warning.
    """
    log = ReadLog()
    examples = read_file(Path(path), log)
    log.report(strict=False)
    return examples


def read_file(path: Path, log: ReadLog) -> Examples:
    """Read one file of examples; skipped rows are recorded in the log."""
    rows = table_rows(path, path.suffix.removeprefix("."), TableOptions(cure="Rename the column."), log)
    tasks = collect_examples((Record(*row[:4]) for row in rows), log)  # of one task without splits
    return next((examples for parts in tasks.values() for examples in parts.values()), Examples())


def read_texts(path: str | Path, *, column: str | None = None) -> Iterator[str]:
    """The texts of a table, one for each row in its order, in the format that its ending names.

    `column` is the column of the texts, if it has another name than usual, or its number, if the table has no header. A
    row without a text gives an empty one.
    """
    path = Path(path)
    kind = path.suffix.casefold().removeprefix(".")
    options = TableOptions(column, texts_only=True)
    for record in table_rows(path, kind if kind in TABLES else "csv", options, ReadLog()):
        yield clean_text(record.text, f"{path}, {record.position}")


def table_rows(path: Path, kind: str, options: TableOptions, log: ReadLog) -> Iterator[Record]:
    """The rows of a file as they are, with the cells of task and split. An unknown kind is read as TSV."""
    refuse_spreadsheet(path)
    if kind in ("parquet", "arrow"):
        return arrow_rows(path, kind, options)
    if kind == "csv":
        return csv_rows(path, options)
    if kind in ("json", "jsonl"):
        return json_rows(path, options, lines=kind == "jsonl" or is_json_lines(path))
    return tsv_rows(path, options, log)


@dataclass(frozen=True)
class _Header:
    """The columns of a table and the indices of text, label, task and split."""

    columns: Sequence[str]
    indices: Sequence[int | None]
    in_file: bool  # whether the first line names the columns
    expected: str  # fields of a row and what to do about others, for a message

    @classmethod
    def of(cls, row: Sequence[str], options: TableOptions, where: str, advice: str) -> "_Header":
        """The header in the first row, or numbers of columns if the options have only these."""
        in_file = options.header is not False or is_header(row, options)
        columns = _column_names(row) if in_file else [str(number) for number in range(1, len(row) + 1)]
        indices = [None if name is None else columns.index(name) for name in options.choose(columns, where)]
        line = "header" if in_file else "first line"
        return cls(columns, indices, in_file, f"{len(columns)} as in the {line}. {advice}")

    def pick(self, row: Sequence[str], path: Path, line: int) -> Record:
        """The chosen fields of a row, which must be as long as the header."""
        if len(row) != len(self.columns):
            count = "1 field" if len(row) == 1 else f"{len(row)} fields"
            raise TaskFormatError(f"{path}, line {line}: found {count}, expected {self.expected}")
        return Record(path, f"line {line}", *(None if index is None else row[index] for index in self.indices))


def csv_rows(path: Path, options: TableOptions) -> Iterator[Record]:
    """The rows of a CSV file with a header, or with columns chosen by number."""
    options = detect_delimiter(path, options)
    rows = csv_lines(path, options)
    first = next(rows, (1, []))
    separators = DELIMITERS.get(options.delimiter or ",", f"the character {options.delimiter!r}")
    header = _Header.of(first[1], options, f"{path}, line 1", f"Put texts that hold {separators} in double quotes.")
    for line, row in rows if header.in_file else chain([first], rows):
        yield header.pick(row, path, line)


def csv_lines(path: Path, options: TableOptions) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file, each with the number of its last line; without empty rows, and rows of blank fields."""
    reader = csv.reader(read_lines(path, options.encoding), delimiter=options.delimiter or ",", strict=True)
    try:
        for row in reader:
            if any(map(str.strip, row)) or (options.texts_only and row):
                yield reader.line_num, row
    except csv.Error as error:
        raise TaskFormatError(f"{path}, line {reader.line_num}: this is not CSV ({error}). Check the quotes.") from None


def detect_delimiter(path: Path, options: TableOptions) -> TableOptions:
    """The options with a delimiter: one with a fitting header, else one that divides all rows into equally many."""
    if options.delimiter:
        return options
    lines = list(islice(read_lines(path, options.encoding), LINES_TO_DETECT))
    fitting, even = {}, {}  # delimiter -> number of columns
    for delimiter in DELIMITERS:
        try:
            rows = [row for row in csv.reader(lines, delimiter=delimiter) if any(map(str.strip, row))]
        except csv.Error:
            continue
        if rows and options.header is not False and is_header(rows[0], options):
            fitting[delimiter] = len(rows[0])
        if len({len(row) for row in rows[:-1] or rows}) == 1:  # the last one may be cut off
            even[delimiter] = len(rows[0])
    columns = fitting or even
    return replace(options, delimiter=max(columns, key=columns.__getitem__, default=","))


def tsv_rows(path: Path, options: TableOptions, log: ReadLog) -> Iterator[Record]:
    """The rows of a TSV file: fields by name, or text and label if its first line has no known names."""
    lines: Iterator[Line] = (
        (number, line.removesuffix("\n").removesuffix("\r"))
        for number, line in enumerate(read_lines(path, options.encoding), start=1)
    )
    first = next((line for line in lines if line[1].strip()), None)
    if first is None:
        return
    columns = first[1].split("\t")
    named = options.header is not None or is_header(columns, options)
    if named:
        advice = "If fields with tabs or line breaks are in quotes, import it with --format csv --delimiter tab."
        header = _Header.of(columns, options, f"{path}, line {first[0]}", advice)
    else:
        header = _without_names(path, first, options)
    if header.in_file and not options.texts_only:
        text, label = (header.columns[index] for index in header.indices[:2] if index is not None)
        under = f"the texts are under {text!r}, the labels under {label!r}"
        log.notes.append(f"{path}: line {first[0]} is a header; {under}.")
    width = len(header.columns)
    ends_at_last_tab = width <= 2 and header.indices[0] == 0 and header.indices[1] != 0
    for number, line in lines if header.in_file else chain([first], lines):
        if line.strip() or (options.texts_only and "\t" in line):
            row = line.rsplit("\t", width - 1) if ends_at_last_tab else line.split("\t")
            yield header.pick(list(map(_unquote, row)) if named else row, path, number)


def _without_names(path: Path, first: Line, options: TableOptions) -> _Header:
    """Text and label; text alone if the rows are texts and the first line has no tab."""
    labelled = "\t" in first[1] or not options.texts_only
    if labelled and options.texts_only:
        warnings.warn(f"{path}: there is no header, so the text of a line ends at its last tab.", stacklevel=3)
    columns = ("text", "label") if labelled else ("text",)
    indices = (0, 1 if labelled else None, None, None)
    return _Header(columns, indices, in_file=False, expected="text<TAB>label. Check the separator.")


def json_rows(path: Path, options: TableOptions, *, lines: bool) -> Iterator[Record]:
    """The objects of a file of JSON lines, or of a JSON list."""
    chosen: tuple[str | None, ...] | None = None
    for position, entry in _parse_json_lines(path, options) if lines else _json_list(path):
        if not isinstance(entry, dict):
            raise _not_an_object(path, position, f"found {kind_of(entry)}")
        try:
            chosen = options.choose(list(entry), f"{path}, {position}")
        except TaskFormatError:
            if chosen is None:  # otherwise only this object lacks a field, which is blank then
                raise
        yield Record(path, position, *(None if name is None else entry.get(name) for name in chosen))


def is_json_lines(path: Path) -> bool:
    """Whether a file holds several JSON objects, one a line, whatever its ending."""
    lines = list(islice((line for line in read_lines(path, document=True) if line.strip()), 2))
    try:
        return len(lines) == 2 and isinstance(json.loads(lines[0]), dict)
    except (ValueError, RecursionError):
        return False


def _parse_json_lines(path: Path, options: TableOptions) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(read_lines(path, options.encoding), start=1):
        try:
            if line.strip():
                yield f"line {number}", json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _not_an_object(path, f"line {number}", json_problem(error)) from None


def _json_list(path: Path) -> Iterator[tuple[str, Any]]:
    content = read_json(path)
    if not isinstance(content, list):
        raise TaskFormatError(f"{path}: found {kind_of(content)}, expected a list of objects. Write [{EXAMPLE}, ...].")
    return ((f"entry {number}", entry) for number, entry in enumerate(content, start=1))


def _not_an_object(path: Path, position: str, reason: str) -> TaskFormatError:
    cure = f"Write one object for each text, such as {EXAMPLE}."
    return TaskFormatError(f"{path}, {position}: this is not a JSON object ({reason}). {cure}")


def is_header(row: Sequence[str], options: TableOptions) -> bool:
    """Whether a first row can be the names of the columns."""
    try:
        options.choose(_column_names(row), "")
    except TaskFormatError:
        return False
    return True


def _column_names(row: Sequence[str]) -> list[str]:
    return [_unquote(name).strip().casefold() for name in row]


def _unquote(field: str) -> str:
    """A field without the quotes around it, if they are such."""
    inner = field[1:-1]
    quoted = len(field) > 1 and field[0] == field[-1] == '"' and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if quoted else field
