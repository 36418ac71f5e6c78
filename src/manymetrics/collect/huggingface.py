"""The folder of a Hugging Face data set -> Examples: each config is a task, each file says its split.

downloaded       data/train-00000-of-00002.parquet, <config>/test.jsonl, train.csv and the like
save_to_disk     data-00000-of-00001.arrow beside a state.json, or a folder of such folders with dataset_dict.json
"""

import re
from collections.abc import Iterator
from pathlib import Path

from manymetrics.collect.class_names import class_names
from manymetrics.collect.opening import file_in, files_below, read_json, require_inside
from manymetrics.collect.options import Options
from manymetrics.collect.tables import PART_OF, WHOLE, Found, read_table

TABLE_ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet", ".arrow")


def read_huggingface(folder: Path, options: Options) -> Iterator[Found]:
    """The examples of all data files in a folder, config by config and split by split."""
    files = table_files(folder)
    configs = {path: _config_of(path, folder) for path in files}
    several = len(set(configs.values())) > 1
    for path, config in configs.items():
        task = options.task
        if config is not None:
            task = options.name(config) if several or not options.prefix else options.prefix
        kind = path.suffix.removeprefix(".")
        names = class_names(path, folder, config)
        yield from read_table(path, options, kind=kind, task=task, part=_part_of(path, folder), classes=names)


def table_files(folder: Path) -> list[Path]:
    """The files below a folder that are tables; of those that `save_to_disk` wrote the ones that belong to the data."""
    found = [path for path in files_below(folder) if path.suffix in TABLE_ENDINGS]
    return [require_inside(path, folder) for path in found if path.suffix != ".arrow" or _is_data(path)]


def _is_data(path: Path) -> bool:
    """Whether an Arrow file is one of the data, not one that the library keeps for itself beside them."""
    state = _state_beside(path)
    if isinstance(state, dict) and isinstance(files := state.get("_data_files"), list):
        return any(isinstance(file, dict) and file.get("filename") == path.name for file in files)
    return not path.name.startswith(("cache-", "indices", "tmp"))


def _state_beside(path: Path) -> object:
    state = file_in(path.parent, "state.json")
    return read_json(state) if state else None


def _config_of(path: Path, folder: Path) -> str | None:
    above = path.relative_to(folder).parts[:-1]
    return next((name for name in above if name != "data" and _split_word(name) is None), None)


def _part_of(path: Path, folder: Path) -> str:
    above = path.relative_to(folder).parts[:-1]
    words = [_split_word(name) for name in (path.stem, *reversed(above))]
    state = _state_beside(path) if path.suffix == ".arrow" else None
    if isinstance(state, dict) and isinstance(state.get("_split"), str):
        words.append(_split_word(state["_split"]))
    return next((word for word in words if word is not None), WHOLE)


def _split_word(name: str) -> str | None:
    words = re.split(r"[^a-z]+", name.casefold())
    return next((PART_OF[word] for word in words if word in PART_OF), None)
