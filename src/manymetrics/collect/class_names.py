"""The names of classes that a data set of Hugging Face gives by number: in its Parquet or Arrow files, or beside them.

Looked for in this order: the file itself, the head of README.md, dataset_infos.json, dataset_info.json.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from yaml.nodes import Node, ScalarNode, SequenceNode

from manymetrics.collect.columnar import features_in
from manymetrics.collect.opening import file_in, read_json, read_text
from manymetrics.collect.tables import ClassNames
from manymetrics.collect.yaml_tree import compose, fields_of

COLUMNAR = (".parquet", ".arrow")


def class_names(path: Path, folder: Path | None = None, config: str | None = None) -> ClassNames:
    """A function that gives the names of the classes of a column, as far as a file or its folder tells them."""

    def names_of(column: str) -> tuple[str, ...]:
        return next((names for names in _told(path, folder, config, column.casefold()) if names), ())

    return names_of


def _told(path: Path, folder: Path | None, config: str | None, column: str) -> Iterator[tuple[str, ...]]:
    if path.suffix in COLUMNAR:
        yield _names_in(features_in(path), column)
    if folder is None:
        return
    if card := file_in(folder, "README.md"):
        yield _names_of_card(card, config, column)
    for place in dict.fromkeys((folder, path.parent)):
        for name in ("dataset_infos.json", "dataset_info.json"):
            if about := file_in(place, name):
                yield from _names_of_info(read_json(about), config, column)


def _names_of_info(info: Any, config: str | None, column: str) -> Iterator[tuple[str, ...]]:
    yield _names_in(_at(info, config or "default", "features"), column)
    yield _names_in(_at(info, "features"), column)
    if isinstance(info, dict) and len(info) == 1:
        yield _names_in(_at(next(iter(info.values())), "features"), column)


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _names_in(features: Any, column: str) -> tuple[str, ...]:
    named = {str(name).casefold(): about for name, about in features.items()} if isinstance(features, dict) else {}
    names = _at(named.get(column), "names")
    return tuple(map(str, names)) if isinstance(names, list) else ()


def _names_of_card(path: Path, config: str | None, column: str) -> tuple[str, ...]:
    """The names of the classes in the head of a data card."""
    _, mark, after = read_text(path).partition("---\n")
    head, end, _ = after.partition("\n---")
    if not mark or not end:
        return ()
    info = fields_of(compose(head, path)).get("dataset_info")
    configs = info.value if isinstance(info, SequenceNode) else [info]
    infos = [fields_of(one) for one in configs]
    for about in [one for one in infos if _word(one.get("config_name")) == config] or infos:
        features = about.get("features")
        for feature in features.value if isinstance(features, SequenceNode) else ():
            fields = fields_of(feature)
            if (_word(fields.get("name")) or "").casefold() == column:
                return _names_of_feature(fields_of(fields_of(fields.get("dtype")).get("class_label")).get("names"))
    return ()


def _names_of_feature(names: Node | None) -> tuple[str, ...]:
    if isinstance(names, SequenceNode):
        return tuple(_word(name) or "" for name in names.value)
    by_number = {int(key): _word(name) or "" for key, name in fields_of(names).items() if key.isdecimal()}
    return tuple(by_number[number] for number in sorted(by_number))


def _word(node: Node | None) -> str | None:
    return node.value if isinstance(node, ScalarNode) else None
