"""`import_tasks`: a source of any format -> Imported.

    csv, tsv, jsonl, json, parquet, arrow  one table; a column may divide it into tasks
    huggingface                            a folder of tables named by split, each config a task
    rasa, clu, luis, dialogflow            exports of chatbot services; one task

An importer gives the records of a source; one loop checks and groups them. Data without splits are split 64 / 16 / 20
by a hash of their content.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from manymetrics.collect.importers.assemble import Imported, assemble
from manymetrics.collect.importers.chatbots import read_azure, read_dialogflow
from manymetrics.collect.importers.detect import choose_format
from manymetrics.collect.importers.huggingface import read_huggingface
from manymetrics.collect.importers.rasa import read_rasa
from manymetrics.collect.importers.tables import ImportOptions, read_table
from manymetrics.collect.readers.columns import NAME_COLUMN, TableOptions
from manymetrics.collect.readers.open import require_encoding
from manymetrics.collect.readers.records import ReadLog, Record, collect_examples
from manymetrics.collect.readers.table import TABLES
from manymetrics.errors import InputError, TaskFormatError, TaskSkipped
from manymetrics.values import Examples

DELIMITER_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "bar": "|"}
MIN_ROWS = 10  # of a table without known names, to suspect a header because its first label occurs only once
IMPORTERS: dict[str, Callable[[Path, ImportOptions], Iterator[Record]]] = {
    **dict.fromkeys(TABLES, read_table),
    "huggingface": read_huggingface,
    "rasa": read_rasa,
    "clu": read_azure,
    "luis": read_azure,
    "dialogflow": read_dialogflow,
}


def import_tasks(
    source: str | Path,
    *,
    format: str | None = None,
    name: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    task_column: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    split: bool = True,
    fold_labels: bool = False,
    strict: bool = False,
) -> Imported:
    """Read tasks from a file or folder of another program; the format is detected if not given.

    `name` is the name of a single task, by default that of the source, and the beginning of the names of several.
    Columns, delimiter (a character, or `tab`) and encoding apply to tables only. With `split=False`, examples without a
    split are all put in train. With `fold_labels`, labels that differ only in case or white space become one. Rows with
    a blank text or label, and a bad task among several, are left out with a warning; with `strict` they are an error.
    No example at all is an error.
    """
    source = Path(source)
    columns = (text_column, label_column, task_column)
    table = TableOptions(*columns, _delimiter(delimiter), encoding and require_encoding(encoding), cure=NAME_COLUMN)
    format, table = choose_format(source, format, table)
    default = source.resolve().name.removesuffix(source.suffix if source.is_file() else "")
    log = ReadLog()
    examples = collect_examples(
        IMPORTERS[format](source, ImportOptions(format, name or default, name or "", table, log)), log
    )
    log.report(strict=strict)
    if not examples:
        raise TaskFormatError(f"{source}: found no examples in it, read as {format}. Give another --format.")
    if not log.notes and format in TABLES and (format == "tsv" or table.header is False):
        log.notes += _note_on_first_line(source, examples)
    imported = assemble(source, format, examples, log, split=split, fold=fold_labels)
    for task in imported.bank.left_out:
        if strict:
            raise TaskFormatError(task.reason)
        warnings.warn(f"{task.name!r} is left out. {task.reason}", TaskSkipped, stacklevel=2)
    return imported


def _delimiter(name: str | None) -> str | None:
    """A delimiter given by character or by name."""
    character = DELIMITER_NAMES.get((name or "").casefold(), name)
    if character is not None and (len(character) != 1 or character in '"\r\n'):
        raise InputError(f"The delimiter is {name!r}, expected one character. Try ',', ';', '|' or tab.")
    return character


def _note_on_first_line(path: Path, examples: Mapping[str, Mapping[str, Examples]]) -> list[str]:
    """A note on a table without known names whose first label occurs only once: its first line may be a header."""
    labels = next(iter(next(iter(examples.values())).values())).labels
    if len(labels) < MIN_ROWS or labels[0] in labels[1:]:
        return []
    return [
        f"{path}: the first line is read as an example with the label {labels[0][:40]!r}, which no other line has. "
        "If it is a header, name the columns with --text-column and --label-column."
    ]
