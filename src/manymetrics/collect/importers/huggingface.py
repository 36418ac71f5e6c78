"""The folder of a Hugging Face data set -> records: each config is a task, file names give the split.

downloaded       data/train-00000-of-00002.parquet, <config>/test.jsonl, train.csv and the like
save_to_disk     data-00000-of-00001.arrow beside a state.json, or a folder of such folders with dataset_dict.json

Names of classes are read from the data file itself, or from the metadata of README.md.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from yaml.nodes import Node, SequenceNode

from manymetrics.collect.importers.tables import PART_OF, ImportOptions, read_table
from manymetrics.collect.readers.arrow import hugging_face_features
from manymetrics.collect.readers.columns import LABEL_NAMES, TableOptions
from manymetrics.collect.readers.open import files_below, lookup, read_document, read_json, require_inside
from manymetrics.collect.readers.records import UNSPLIT, Record
from manymetrics.collect.readers.yaml import compose, fields_of, string_of

TABLE_ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet", ".arrow")

ClassNames = dict[str, tuple[str, ...]]  # column, in lower case -> names of its classes; empty if it has none


def read_huggingface(folder: Path, options: ImportOptions) -> Iterator[Record]:
    """The records of all data files in a folder."""
    configs = {path: _config_of(path, folder) for path in table_files(folder)}
    several = len(set(configs.values())) > 1
    for path, config in configs.items():
        task = options.task
        if config is not None:
            task = options.task_name(config) if several or not options.prefix else options.prefix
        names = class_names(path, options.table, folder, config)
        kind, part = path.suffix.removeprefix("."), _part_of(path, folder)
        yield from read_table(path, options, kind=kind, task=task, part=part, class_names=names)


def table_files(folder: Path) -> list[Path]:
    """The tables below a folder, without Arrow files that the library datasets stores for itself."""
    paths = [path for path in files_below(folder) if path.suffix in TABLE_ENDINGS]
    caches = ("cache-", "indices", "tmp")
    return [
        require_inside(path, folder) for path in paths if not (path.suffix == ".arrow" and path.name.startswith(caches))
    ]


def class_names(
    path: Path, table: TableOptions, folder: Path | None = None, config: str | None = None
) -> tuple[str, ...]:
    """The class names of the label column, as far as a file or the data card of its folder has them."""
    names = _names_in(hugging_face_features(path)) if path.suffix in (".parquet", ".arrow") else {}
    if folder is not None and (card := _file_in(folder, "README.md")):
        in_card = _names_in_card(card, config)
        names |= {column: names.get(column) or of_column for column, of_column in in_card.items()}
    columns = [table.label.casefold()] if table.label else LABEL_NAMES
    return next((names[column] for column in columns if column in names), ())


def _names_in(features: Any) -> ClassNames:
    columns = features.items() if isinstance(features, dict) else ()
    lists = {str(column).casefold(): lookup(feature, "names") for column, feature in columns}
    return {column: tuple(map(str, names)) if isinstance(names, list) else () for column, names in lists.items()}


def _names_in_card(path: Path, config: str | None) -> ClassNames:
    """The class names in the metadata of a data card."""
    _, start, rest = read_document(path).partition("---\n")
    metadata, end, _ = rest.partition("\n---")
    if not start or not end:
        return {}
    infos = [fields_of(info) for info in _nodes(fields_of(compose(metadata, path)).get("dataset_info"))]
    names: ClassNames = {}
    for info in [info for info in infos if string_of(info.get("config_name")) == config] or infos:
        for feature in map(fields_of, _nodes(info.get("features"))):
            class_label = fields_of(feature.get("dtype")).get("class_label")
            of_column = _names_of_classes(fields_of(class_label).get("names"))
            names.setdefault((string_of(feature.get("name")) or "").casefold(), of_column)
    return names


def _nodes(node: Node | None) -> list[Node | None]:
    return node.value if isinstance(node, SequenceNode) else [node]


def _names_of_classes(names: Node | None) -> tuple[str, ...]:
    if isinstance(names, SequenceNode):
        return tuple(string_of(name) or "" for name in names.value)
    by_number = {int(key): string_of(name) or "" for key, name in fields_of(names).items() if key.isdecimal()}
    return tuple(by_number[number] for number in sorted(by_number))


def _file_in(folder: Path, name: str) -> Path | None:
    return require_inside(folder / name, folder) if (folder / name).is_file() else None


def _config_of(path: Path, folder: Path) -> str | None:
    parents = path.relative_to(folder).parts[:-1]
    return next((name for name in parents if name != "data" and _split_in(name) is None), None)


def _part_of(path: Path, folder: Path) -> str:
    state = _file_in(path.parent, "state.json") if path.suffix == ".arrow" else None
    split = lookup(read_json(state), "_split") if state else None
    names = [path.stem, *reversed(path.relative_to(folder).parts[:-1]), split if isinstance(split, str) else ""]
    return next(filter(None, map(_split_in, names)), UNSPLIT)


def _split_in(name: str) -> str | None:
    words = re.split(r"[^a-z]+", name.casefold())
    return next((PART_OF[word] for word in words if word in PART_OF), None)
