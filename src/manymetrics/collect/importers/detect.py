"""A file or folder -> the name of its format, from its ending and its content."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from manymetrics.collect.bank.folder import belongs_to_a_bank
from manymetrics.collect.importers.chatbots import azure_utterances, dialogflow_files
from manymetrics.collect.importers.rasa import RASA_ENDINGS, rasa_files
from manymetrics.collect.importers.tables import table_files
from manymetrics.collect.readers.open import read_json, read_lines, refuse_spreadsheet
from manymetrics.collect.readers.records import TableOptions, list_columns
from manymetrics.collect.readers.tables import TABLES, csv_lines, detect_delimiter, is_header, is_json_lines
from manymetrics.errors import InputError, TaskFormatError

FORMATS = (*TABLES, "huggingface", "rasa", "clu", "luis", "dialogflow")
FOLDER_FORMATS = ("huggingface", "dialogflow")  # never a single file
DELIMITED = ("csv", "huggingface")  # may have any delimiter
ARCHIVES = ("zip", "gz", "tar", "tgz")
MIN_ROWS_TO_DETECT, ROWS_TO_DETECT = 10, 1000  # rows of a file without known names that tell labels from texts
MAX_DISTINCT_LABELS, MIN_DISTINCT_TEXTS = 0.5, 0.9  # distinct values of a column of labels and of texts, per row


def choose_format(source: Path, name: str | None, table: TableOptions) -> tuple[str, TableOptions]:
    """The given format, or the detected one, and how to read a table; what does not fit the source is refused."""
    if name is not None and name not in FORMATS:
        raise InputError(f"There is no format {name!r}. Known are {', '.join(FORMATS)}.")
    if not source.exists():
        raise InputError(f"{source}: there is no such file or folder. Check the path.")
    refuse_spreadsheet(source)
    if name is None:
        name = _detect_folder(source) if source.is_dir() else _detect_file(source, table)
    if source.is_dir() != (name in FOLDER_FORMATS) and name != "rasa":
        actual, expected = ("a folder", "a file") if source.is_dir() else ("a file", "a folder")
        raise InputError(f"{source}: this is {actual}, and {name} comes as {expected}. Give another --format.")
    for option, given, formats in (
        ("columns", table.columns, (*TABLES, "huggingface")),
        ("delimiter", table.delimiter, (*DELIMITED, "tsv") if table.delimiter == "\t" else DELIMITED),
        ("encoding", table.encoding, (*DELIMITED, "tsv", "jsonl")),
    ):
        if given and name not in formats:
            raise InputError(f"{source}: {name} has no {option} to choose. Leave it out, or give another --format.")
    if not table.columns and name == "tsv":
        lines = (line.strip("\r\n") for line in read_lines(source, table.encoding))
        _require_texts_first(source, [line.split("\t") for line in islice(filter(str.strip, lines), ROWS_TO_DETECT)])
    return name, table if table.columns or name != "csv" else _detect_columns(source, table)


def _detect_folder(folder: Path) -> str:
    if dialogflow_files(folder):
        return "dialogflow"
    if any(map(belongs_to_a_bank, folder.iterdir())):
        raise InputError(f"{folder}: this is a bank already. Use it as it is.")
    if table_files(folder):
        return "huggingface"
    if rasa_files(folder):
        return "rasa"
    raise InputError(f"{folder}: found neither tables nor Rasa files nor a Dialogflow agent. Check the path.")


def _detect_file(path: Path, table: TableOptions) -> str:
    ending = path.suffix.casefold().removeprefix(".")
    if ending in ARCHIVES:
        raise InputError(f"{path}: archives are not opened. Unpack it, and give the folder or file that was in it.")
    name = ending if ending in TABLES else "rasa" if path.suffix in RASA_ENDINGS else ""
    if ending == "json":
        name = _detect_json(path)
    elif (ending == "tsv" and table.delimiter not in (None, "\t")) or (not name and (table.delimiter or table.columns)):
        name = "csv"
    if not name:
        raise InputError(f"{path}: the format is unclear. Name it with --format: {', '.join(FORMATS)}.")
    return name


def _detect_json(path: Path) -> str:
    """The format of a JSON file; empty if it is unclear."""
    if is_json_lines(path):
        return "jsonl"
    content = read_json(path)
    chatbot = next((name for name in ("clu", "luis") if azure_utterances(content, name) is not None), "")
    return "json" if isinstance(content, list) else chatbot


def _detect_columns(path: Path, table: TableOptions) -> TableOptions:
    """Known names in the header; or no header but text and label, if a later row repeats the label of the first."""
    table = detect_delimiter(path, table)
    rows = [row for _, row in islice(csv_lines(path, table), ROWS_TO_DETECT)]
    if not rows:
        raise TaskFormatError(f"{path}: found no examples in it, it is empty. Check the export.")
    if is_header(rows[0], table):
        return table
    _require_texts_first(path, rows)
    if len(rows[0]) == 2 and any(row[1:] == rows[0][1:] for row in rows[1:]):
        return replace(table, text="1", label="2")
    raise InputError(
        f"{path}, line 1: found {list_columns(rows[0])}, which may be a header or an example. Name the columns "
        "with --text-column and --label-column; give their numbers, from 1, if there is no header."
    )


def _require_texts_first(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Refuse two columns without names if the first has few distinct values and the second many."""
    if len(rows) < MIN_ROWS_TO_DETECT or any(len(row) != 2 for row in rows) or is_header(rows[0], TableOptions()):
        return
    first, second = (len({row[index] for row in rows}) / len(rows) for index in (0, 1))
    if first <= MAX_DISTINCT_LABELS and second >= MIN_DISTINCT_TEXTS:
        raise InputError(f"{path}: the first column seems to hold the labels. Give --label-column 1 --text-column 2.")
