"""Tables from elsewhere -> Examples: files with columns of any name, and folders as Hugging Face datasets lay them out.

a file      CSV with a header, JSONL or Parquet; a column may divide it into tasks, and `split` into train, valid, test
a folder    <config>/<split>-00000-of-00002.parquet, data/train.csv ...; each config is a task
numbers of classes become their names, which are in the Parquet files, README.md or dataset_info(s).json
"""

import json
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yaml.nodes import Node, ScalarNode, SequenceNode

from manymetrics.collect.formats import (
    LABEL_NAMES,
    TEXT_NAMES,
    Rows,
    listed,
    open_parquet,
    read_json,
    read_lines,
    read_records,
)
from manymetrics.collect.yaml_tree import compose, fields_of
from manymetrics.errors import TaskFormatError, TaskLeftOut
from manymetrics.values import Examples

WHOLE = "whole"  # the part of examples that have no split
PART_OF = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("valid", "validation", "val", "dev"), "valid"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation"), "test"),
}
TABLE_ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")
UNLABELLED = -1  # the number of no class

Found = tuple[str, str, Examples]  # task, part, and what belongs there


@dataclass(frozen=True)
class Columns:
    """Which columns hold what; text and label are found by their usual names if not given."""

    text: str | None = None
    label: str | None = None
    task: str | None = None

    def choose(self, found: Sequence[str], where: str) -> tuple[str | None, ...]:
        """The columns of text, label, task and split among those found; upper and lower case are alike."""
        names = {name.casefold(): name for name in found}
        text = self._one(names, where, "text", self.text, TEXT_NAMES)
        label = self._one(names, where, "label", self.label, LABEL_NAMES)
        task = self._one(names, where, "task", self.task, ()) if self.task else None
        split = names.get("split")
        return text, label, task, split if split not in (text, label, task) else None

    @staticmethod
    def _one(names: Mapping[str, str], where: str, what: str, wanted: str | None, usual: Sequence[str]) -> str:
        for name in [wanted] if wanted else usual:
            if name.casefold() in names:
                return names[name.casefold()]
        expected = repr(wanted) if wanted else " or ".join(repr(name) for name in usual)
        raise TaskFormatError(
            f"{where}: found {listed(list(names.values()))}, expected {expected} for the {what}. "
            f"Name the right one with --{what}-column."
        )


def read_table(path: Path, columns: Columns, *, kind: str, task: str, part: str = WHOLE,
               classes: Sequence[str] = ()) -> Iterator[Found]:  # fmt: skip
    """The examples of one file by task and part; `task` and `part` stand where no column says otherwise."""
    piles: defaultdict[tuple[str, str], Rows] = defaultdict(lambda: Rows(path))
    unlabelled = 0
    for where, values in read_records(path, columns.choose, kind=kind):
        text, label, of_task, of_part = (*values, None, None)[:4]
        named = _class_name(label, classes, where=f"{path}, {where}")
        if named is None:
            unlabelled += 1
            continue
        key = (task, part)
        if columns.task and kind != "tsv":
            key = (_task_name(of_task, where=f"{path}, {where}"), part)
        if of_part is not None:
            key = (key[0], _part_name(of_part, where=f"{path}, {where}"))
        piles[key].add(text, named, where=where)
    if unlabelled:
        warnings.warn(f"{path}: {unlabelled} rows without a label are left out.", TaskLeftOut, stacklevel=2)
    return ((*key, rows.examples()) for key, rows in piles.items())


def read_huggingface(folder: Path, columns: Columns, *, task: str) -> Iterator[Found]:
    """The examples of all data files in a folder, config by config and split by split."""
    for path in table_files(folder):
        *above, _ = path.relative_to(folder).parts
        config = next((name for name in above if name != "data" and _split_word(name) is None), None)
        words = (_split_word(name) for name in (path.stem, *reversed(above)))
        part = next((word for word in words if word is not None), WHOLE)
        classes = _class_names(folder, path, config, columns.label or "label")
        kind = path.suffix.removeprefix(".")
        yield from read_table(path, columns, kind=kind, task=config or task, part=part, classes=classes)


def table_files(folder: Path) -> list[Path]:
    """The files below a folder that are tables, hidden ones left out."""
    found = (path for path in folder.rglob("*") if path.suffix in TABLE_ENDINGS and path.is_file())
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))


def _split_word(name: str) -> str | None:
    words = re.split(r"[^a-z]+", name.casefold())
    return next((PART_OF[word] for word in words if word in PART_OF), None)


def _task_name(value: object, *, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise TaskFormatError(f"{where}: the task is blank or no text. Give every row the name of its task.")
    return str(value).strip()


def _part_name(value: object, *, where: str) -> str:
    part = PART_OF.get(str(value).strip().casefold())
    if part is None:
        raise TaskFormatError(
            f"{where}: the split is {value!r}, expected train, valid or test. "
            "Rename the column if it means something else."
        )
    return part


def _class_name(label: Any, classes: Sequence[str], *, where: str) -> Any:
    """The name behind the number of a class, None behind that of no class; other labels stay."""
    if not classes or label in classes or isinstance(label, bool):
        return label
    try:
        number = int(label) if isinstance(label, int | str) else None
    except ValueError:
        number = None
    if number is None:
        return label
    if number == UNLABELLED:
        return None
    if not 0 <= number < len(classes):
        raise TaskFormatError(f"{where}: there is no class {number}, only 0 to {len(classes) - 1}. Check the labels.")
    return classes[number]


def _class_names(folder: Path, path: Path, config: str | None, column: str) -> tuple[str, ...]:
    """The names of the classes as far as the data set gives them, else none."""
    if path.suffix == ".parquet":
        with open_parquet(path) as file:
            about = (file.schema_arrow.metadata or {}).get(b"huggingface", b"{}")
        try:
            info = json.loads(about)
        except (ValueError, RecursionError):
            info = {}
        if names := _names_in(_at(info, "info", "features"), column):
            return names
    if (folder / "README.md").is_file() and (names := _names_of_card(folder / "README.md", config, column)):
        return names
    for name in ("dataset_infos.json", "dataset_info.json"):
        if (folder / name).is_file():
            info = read_json(folder / name)
            whole = _at(info, config or "default") or info
            only = next(iter(info.values()), None) if isinstance(info, dict) and len(info) == 1 else None
            if names := _names_in(_at(whole, "features"), column) or _names_in(_at(only, "features"), column):
                return names
    return ()


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _names_in(features: Any, column: str) -> tuple[str, ...]:
    names = _at(features, column, "names")
    return tuple(map(str, names)) if isinstance(names, list) else ()


def _names_of_card(path: Path, config: str | None, column: str) -> tuple[str, ...]:
    """The names of the classes in the head of a data card."""
    _, mark, after = "".join(read_lines(path)).partition("---\n")
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
            if _word(fields.get("name")) == column:
                return _names_of_feature(fields_of(fields_of(fields.get("dtype")).get("class_label")).get("names"))
    return ()


def _names_of_feature(names: Node | None) -> tuple[str, ...]:
    if isinstance(names, SequenceNode):
        return tuple(_word(name) or "" for name in names.value)
    by_number = {int(key): _word(name) or "" for key, name in fields_of(names).items() if key.isdecimal()}
    return tuple(by_number[number] for number in sorted(by_number))


def _word(node: Node | None) -> str | None:
    return node.value if isinstance(node, ScalarNode) else None
