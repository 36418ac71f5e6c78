"""A table in any format -> rows, Examples or texts."""

from collections.abc import Iterator
from pathlib import Path

from manymetrics.collect.readers.arrow import arrow_rows
from manymetrics.collect.readers.columns import NAME_COLUMN, Row, TableOptions
from manymetrics.collect.readers.open import refuse_spreadsheet
from manymetrics.collect.readers.records import UNSPLIT, ReadLog, Record, clean_text, collect_examples
from manymetrics.collect.readers.text import csv_rows, is_json_lines, json_rows, tsv_rows
from manymetrics.values import Examples

TABLES = ("csv", "tsv", "jsonl", "json", "parquet", "arrow")


def read_examples(path: str | Path, *, strict: bool = False) -> Examples:
    """Read one file of examples, in the format that its ending names; an unknown ending is read as TSV.

    Rows with a blank text or label are left out with a warning; with `strict` they are an error.
    """
    log = ReadLog()
    examples = read_file(Path(path), log)
    log.report(strict=strict)
    return examples


def read_file(path: Path, log: ReadLog) -> Examples:
    """Read one file of examples; skipped rows are recorded in the log."""
    rows = table_rows(path, path.suffix.removeprefix("."), TableOptions(), log)
    tasks = collect_examples((Record(path, position, *values[:2]) for position, values in rows), log)
    return tasks.get("", {}).get(UNSPLIT, Examples())


def read_texts(path: str | Path, *, column: str | None = None) -> Iterator[str]:
    """The texts of a table, one for each row in its order, in the format that its ending names.

    `column` is the column of the texts, if it has another name than usual, or its number, if the table has no header. A
    row without a text gives an empty one.
    """
    path = Path(path)
    kind = path.suffix.casefold().removeprefix(".")
    options = TableOptions(column, texts_only=True, cure=NAME_COLUMN)
    for position, (text, *_) in table_rows(path, kind if kind in TABLES else "csv", options, ReadLog()):
        yield clean_text(text, f"{path}, {position}")


def table_rows(path: Path, kind: str, options: TableOptions, log: ReadLog) -> Iterator[Row]:
    """The rows of a file: text, label, task and split. An unknown kind is read as TSV."""
    refuse_spreadsheet(path)
    if kind in ("parquet", "arrow"):
        return arrow_rows(path, kind, options)
    if kind == "csv":
        return csv_rows(path, options)
    if kind in ("json", "jsonl"):
        return json_rows(path, options, lines=kind == "jsonl" or is_json_lines(path))
    return tsv_rows(path, options, log)
