"""A file or folder -> the name of its format, told from its ending and a look inside."""

from itertools import islice
from pathlib import Path

from manymetrics.collect.chatbots import clu_utterances, luis_utterances
from manymetrics.collect.delimited import Dialect, csv_rows, find_delimiter
from manymetrics.collect.dialogflow import dialogflow_files
from manymetrics.collect.folder import belongs_to_a_bank
from manymetrics.collect.formats import LABEL_NAMES, TEXT_NAMES, listed
from manymetrics.collect.huggingface import table_files
from manymetrics.collect.opening import read_json
from manymetrics.collect.options import Columns
from manymetrics.collect.rasa import MARKDOWN_ENDINGS, YAML_ENDINGS, is_rasa
from manymetrics.collect.rasa_project import rasa_files
from manymetrics.collect.watson import watson_workspaces
from manymetrics.errors import InputError, TaskFormatError

TABLES = ("csv", "tsv", "jsonl", "parquet", "arrow")
FORMATS = (*TABLES, "huggingface", "rasa", "clu", "luis", "watson", "dialogflow")
FOLDERS = ("huggingface", "dialogflow")  # the formats that are never one file
SEPARATED = ("csv", "huggingface", "watson")  # the formats that may have any delimiter
LOOKED_AT = 1000  # rows of a CSV file without known names, to tell a header from an example


def tell_format(source: Path, columns: Columns, dialect: Dialect) -> str:
    """The format of a source; one that cannot be told is an error that says how to name it."""
    if not source.exists():
        raise InputError(f"{source}: there is no such file or folder. Check the path.")
    found = _tell_folder(source) if source.is_dir() else _tell_file(source, columns, dialect)
    if found is None:
        raise InputError(f"{source}: cannot tell what this is. Say it with --format: {', '.join(FORMATS)}.")
    return found


def _tell_file(source: Path, columns: Columns, dialect: Dialect) -> str | None:
    ending, named = source.suffix.casefold(), columns != Columns()
    if ending in (".zip", ".gz", ".tar", ".tgz"):
        raise InputError(f"{source}: archives are not opened. Unpack it, and give the folder or file that was in it.")
    if ending == ".csv" and not named:
        return _tell_csv(source, dialect)
    if ending == ".tsv" and dialect.delimiter not in (None, "\t"):
        return "csv"
    if ending.removeprefix(".") in TABLES:
        return ending.removeprefix(".")
    if ending in (*YAML_ENDINGS, *MARKDOWN_ENDINGS):
        return "rasa"
    if ending == ".json":
        return _tell_json(source)
    return "csv" if dialect.delimiter or named else None


def require_fit(source: Path, chosen: str, columns: Columns, dialect: Dialect) -> None:
    """Refuse a format that is none, that the source cannot have, or that takes no such options."""
    if chosen not in FORMATS:
        raise InputError(f"There is no format {chosen!r}. Known are {', '.join(FORMATS)}.")
    if not source.exists():
        raise InputError(f"{source}: there is no such file or folder. Check the path.")
    if source.is_dir() != (chosen in FOLDERS) and chosen != "rasa":
        found, expected = ("a folder", "a file") if source.is_dir() else ("a file", "a folder")
        raise InputError(f"{source}: this is {found}, and {chosen} comes as {expected}. Give another --format.")
    if columns != Columns() and chosen not in (*TABLES, "huggingface"):
        raise InputError(f"{source}: {chosen} has no columns to name. Leave the column options out.")
    if dialect.delimiter and chosen not in (*SEPARATED, *(["tsv"] if dialect.delimiter == "\t" else [])):
        raise InputError(f"{source}: {chosen} has no delimiter to choose. Leave it out, or give --format csv.")
    if dialect.encoding and chosen not in (*SEPARATED, "tsv", "jsonl"):
        raise InputError(f"{source}: {chosen} has no encoding to choose. Leave it out, and save the file as UTF-8.")


def _tell_folder(folder: Path) -> str:
    if dialogflow_files(folder):
        return "dialogflow"
    if any(map(belongs_to_a_bank, folder.iterdir())):
        raise InputError(f"{folder}: this is a bank already. Use it as it is.")
    if table_files(folder):
        return "huggingface"
    if rasa_files(folder):
        return "rasa"
    raise InputError(
        f"{folder}: found neither tables (train.csv, data/train-00000-of-00001.parquet), nor Rasa files, nor the "
        "intents of a Dialogflow agent. Check the path, or give one file."
    )


def _tell_json(path: Path) -> str | None:
    if is_rasa(path):
        return "rasa"
    content = read_json(path)
    if clu_utterances(content) is not None:
        return "clu"
    if luis_utterances(content) is not None:
        return "luis"
    return "watson" if watson_workspaces(content) else None


def _has_known_names(row: list[str]) -> bool:
    header = {name.strip().casefold() for name in row}
    return bool(header & set(TEXT_NAMES) and header & set(LABEL_NAMES))


def _tell_csv(path: Path, dialect: Dialect) -> str:
    """A known header makes it csv; without one, two columns whose first row has a label of later rows are Watson's."""
    dialect = find_delimiter(path, dialect, _has_known_names)
    rows = [row for _, row in islice(csv_rows(path, dialect), LOOKED_AT)]
    if not rows:
        raise TaskFormatError(f"{path}: found no examples in it, it is empty. Check the export.")
    if _has_known_names(rows[0]):
        return "csv"
    if len(rows[0]) == 2 and any(row[1:] == rows[0][1:] for row in rows[1:]):
        return "watson"
    otherwise = ", or say --format watson if it has no header" if len(rows[0]) == 2 else ""
    raise InputError(
        f"{path}, line 1: found {listed(rows[0])}, and cannot tell whether this is a header or an example. Name the "
        f"columns with --text-column and --label-column{otherwise}."
    )
