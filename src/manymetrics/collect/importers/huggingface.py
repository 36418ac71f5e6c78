"""The folder of a Hugging Face data set -> records: each config is a task, file names give the split.

downloaded       data/train-00000-of-00002.parquet, <config>/test.jsonl, train.csv and the like
save_to_disk     data-00000-of-00001.arrow beside a state.json, or a folder of such folders with dataset_dict.json

Names of classes are read from Parquet and Arrow files.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from manymetrics.collect.importers.tables import PART_OF, ImportOptions, read_table
from manymetrics.collect.readers.open import files_below, lookup, read_json, require_inside
from manymetrics.collect.readers.records import UNSPLIT, Record

TABLE_ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet", ".arrow")


def read_huggingface(folder: Path, options: ImportOptions) -> Iterator[Record]:
    """The records of all data files in a folder."""
    configs = {path: _config_of(path, folder) for path in table_files(folder)}
    several = len(set(configs.values())) > 1
    for path, config in configs.items():
        task = options.task
        if config is not None:
            task = options.task_name(config) if several or not options.prefix else options.prefix
        yield from read_table(path, options, task=task, part=_part_of(path, folder))


def table_files(folder: Path) -> list[Path]:
    """The tables below a folder, without Arrow files that the library datasets stores for itself."""
    paths = [path for path in files_below(folder) if path.suffix in TABLE_ENDINGS]
    caches = ("cache-", "indices", "tmp")
    return [
        require_inside(path, folder) for path in paths if not (path.suffix == ".arrow" and path.name.startswith(caches))
    ]


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
