"""Tables with columns of any name, and folders of Hugging Face -> records; the options of an import.

A column may divide a table into tasks, and the column `split` into train, valid and test. Of a folder each config is a
task, and file names give the split:

downloaded       data/train-00000-of-00002.parquet, <config>/test.jsonl, train.csv and the like
save_to_disk     data-00000-of-00001.arrow beside a state.json, or a folder of such folders with dataset_dict.json
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from manymetrics.collect.readers.open import files_below, lookup, read_json, require_inside
from manymetrics.collect.readers.records import BLANK_TASK, UNSPLIT, ReadLog, Record, TableOptions
from manymetrics.collect.readers.tables import TABLES, table_rows
from manymetrics.errors import TaskFormatError

PART_OF = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("valid", "validation", "val", "dev"), "valid"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation"), "test"),
}
TABLE_ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet", ".arrow")
CACHES = ("cache-", "indices", "tmp")  # Arrow files that the library datasets stores for itself


@dataclass(frozen=True)
class ImportOptions:
    """How to read a source and what to call its tasks; importers write into the log."""

    format: str
    task: str  # the name of a single task
    prefix: str  # of the names of several tasks
    table: TableOptions
    log: ReadLog

    def task_name(self, name: str) -> str:
        """The name of one of several tasks."""
        return f"{self.prefix}-{name}" if self.prefix else name


def read_table(path: Path, options: ImportOptions, *, task: str = "", part: str = UNSPLIT) -> Iterator[Record]:
    """The records of one file; `task` and `part` apply where no column names another."""
    kind = options.format if options.format in TABLES else path.suffix.removeprefix(".")
    for record in table_rows(path, kind, options.table, options.log):
        name = task or options.task
        if options.table.task:
            cell = "" if record.task is None else str(record.task).strip()
            name = cell and options.task_name(cell)
        split = "" if record.part is None else _split_name(record.part, f"{path}, {record.position}")
        yield record._replace(label=record.label if name else BLANK_TASK, task=name, part=split or part)


def read_huggingface(folder: Path, options: ImportOptions) -> Iterator[Record]:
    """The records of all tables in a folder."""
    configs = {path: _config_of(path, folder) for path in table_files(folder)}
    several = len(set(configs.values())) > 1
    for path, config in configs.items():
        task = options.task_name(config) if config and (several or not options.prefix) else options.task
        yield from read_table(path, options, task=task, part=_part_of(path, folder))


def table_files(folder: Path) -> list[Path]:
    """The tables below a folder."""
    paths = (path for path in files_below(folder) if path.suffix in TABLE_ENDINGS)
    return [
        require_inside(path, folder) for path in paths if path.suffix != ".arrow" or not path.name.startswith(CACHES)
    ]


def _split_name(value: object, where: str) -> str:
    """The split that a cell names; empty if it is blank."""
    split = {**PART_OF, "": ""}.get(str(value).strip().casefold())
    if split is None:
        raise TaskFormatError(f"{where}: the split is {value!r}, expected train, valid or test. Rename the column.")
    return split


def _config_of(path: Path, folder: Path) -> str | None:
    parents = path.relative_to(folder).parts[:-1]
    return next((name for name in parents if name != "data" and _split_in(name) is None), None)


def _part_of(path: Path, folder: Path) -> str:
    state = path.with_name("state.json")
    stored = read_json(require_inside(state, folder)) if path.suffix == ".arrow" and state.is_file() else None
    split = lookup(stored, "_split")
    names = [path.stem, *reversed(path.relative_to(folder).parts[:-1]), split if isinstance(split, str) else ""]
    return next(filter(None, map(_split_in, names)), UNSPLIT)


def _split_in(name: str) -> str | None:
    words = re.split(r"[^a-z]+", name.casefold())
    return next((PART_OF[word] for word in words if word in PART_OF), None)
