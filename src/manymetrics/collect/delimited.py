"""CSV and TSV files -> records: how a file is separated, whether it has a header, and its rows.

CSV    has a header and is quoted as RFC 4180 says; the delimiter is the one that makes sense of the header
TSV    text<TAB>label without quoting, the last tab separates; or a header of known names, and fields by name
"""

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from manymetrics.collect.columnar import Choice, Record
from manymetrics.collect.opening import read_lines
from manymetrics.collect.rows import ReadLog
from manymetrics.errors import TaskFormatError

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
LOOKED_AT = 30  # lines of a CSV file, to tell how it is separated

Line = tuple[int, str]  # its number, and what it holds


@dataclass(frozen=True)
class Dialect:
    """How a table is written; what is not given is found from the file."""

    delimiter: str | None = None
    encoding: str | None = None

    def lines(self, path: Path) -> Iterator[str]:
        """The lines of a file in its encoding."""
        return read_lines(path, self.encoding)


FOUND = Dialect()


def csv_rows(path: Path, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file that are not blank, each with the number of its last line."""
    reader = csv.reader(dialect.lines(path), delimiter=dialect.delimiter or ",", strict=True)
    try:
        for row in reader:
            if any(map(str.strip, row)):
                yield reader.line_num, row
    except csv.Error as error:
        raise TaskFormatError(
            f"{path}, line {reader.line_num}: this is not CSV ({error}). "
            "Check the double quotes, or store the task as JSONL."
        ) from None


def find_delimiter(path: Path, dialect: Dialect, fits: Callable[[list[str]], bool]) -> Dialect:
    """The dialect with its delimiter: one that makes the first row fit, else one that divides all rows alike."""
    if dialect.delimiter:
        return dialect
    lines = list(islice(dialect.lines(path), LOOKED_AT))
    rows = {one: found for one in DELIMITERS if (found := _first_rows(lines, one))}
    fitting = [one for one in rows if fits(rows[one][0])]
    even = [one for one in rows if len({len(row) for row in rows[one][:-1] or rows[one]}) == 1]
    best = max(fitting or even, key=lambda one: len(rows[one][0]), default=",")  # the first of those that divide most
    return Dialect(best, dialect.encoding)


def csv_records(path: Path, choose: Choice, dialect: Dialect) -> Iterator[Record]:
    """The rows of a CSV file with a header."""
    dialect = find_delimiter(path, dialect, lambda header: _fits(header, choose))
    rows = csv_rows(path, dialect)
    header = _names(next(rows, (1, []))[1])
    places = _places(header, choose(header, f"{path}, line 1"))
    between = DELIMITERS.get(dialect.delimiter or ",", f"the character {dialect.delimiter!r}")
    for line, row in rows:
        if len(row) != len(header):
            raise TaskFormatError(
                f"{path}, line {line}: found {_fields(len(row))}, expected {len(header)} as in the header. "
                f"Put texts that hold {between} in double quotes."
            )
        yield f"line {line}", _pick(row, places)


def tsv_records(path: Path, choose: Choice, log: ReadLog, *, dialect: Dialect, named: bool) -> Iterator[Record]:
    """The rows of a TSV file; without names in its first line of each row come text and label.

    With `named` the first line is a header whatever it holds.
    """
    lines = _filled_lines(path, dialect)
    first = next(lines, None)
    if first is None:
        return
    header = _names(first[1].split("\t"))
    if not named and not _fits(header, choose):
        for number, line in chain([first], lines):
            yield f"line {number}", _text_and_label(path, number, line)
        return
    chosen = choose(header, f"{path}, line {first[0]}")
    log.notes.append(
        f"{path}: line {first[0]} is a header; the texts are under {chosen[0]!r}, the labels under {chosen[1]!r}."
    )
    places = _places(header, chosen)
    for number, line in lines:
        row = line.split("\t")
        if len(row) > 2 == len(header) and places[:2] == [0, 1]:  # a text that holds tabs
            row = list(_text_and_label(path, number, line))
        if len(row) != len(header):
            raise TaskFormatError(
                f"{path}, line {number}: found {_fields(len(row))}, expected {len(header)} as in the header. "
                "If fields with line ends are in quotes, import it with --format csv --delimiter tab."
            )
        yield f"line {number}", _pick([_unquoted(field) for field in row], places)


def _filled_lines(path: Path, dialect: Dialect) -> Iterator[Line]:
    for number, line in enumerate(dialect.lines(path), start=1):
        row = line.removesuffix("\n").removesuffix("\r")
        if row.strip():
            yield number, row


def _text_and_label(path: Path, number: int, line: str) -> tuple[str, str]:
    text, tab, label = line.rpartition("\t")
    if not tab:
        raise TaskFormatError(f"{path}, line {number}: found 1 field, expected text<TAB>label. Check the separator.")
    return text, label


def _first_rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(lines, delimiter=delimiter) if any(map(str.strip, row))]
    except csv.Error:
        return []


def _fits(header: Sequence[str], choose: Choice) -> bool:
    try:
        choose(_names(header), "")
    except TaskFormatError:
        return False
    return True


def _names(header: Sequence[str]) -> list[str]:
    return [_unquoted(name).strip().casefold() for name in header]


def _places(header: Sequence[str], chosen: Sequence[str | None]) -> list[int | None]:
    return [None if name is None else header.index(name) for name in chosen]


def _pick(row: Sequence[str], places: Sequence[int | None]) -> tuple[Any, ...]:
    return tuple(None if place is None else row[place] for place in places)


def _unquoted(field: str) -> str:
    """A field without the quotes that programs put around it, if they are such."""
    inner = field[1:-1]
    quoted = len(field) > 1 and field[0] == field[-1] == '"' and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if quoted else field


def _fields(count: int) -> str:
    return f"{count} field{'' if count == 1 else 's'}"
