"""Data from elsewhere -> TaskBank: tells formats apart, reads each with its own reader, and splits what is undivided.

    csv, tsv, jsonl, parquet    one table; a column may divide it into tasks
    huggingface                 a folder of tables named by split, each config a task
    rasa, clu, watson, dialogflow    what chatbot services export; one task

Data without splits are split 64 / 16 / 20 by a hash of its content, as a Rasa file in a bank is.
"""

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from manymetrics.collect.chatbots import (
    clu_utterances,
    rasa_files,
    read_clu,
    read_dialogflow,
    read_rasa_source,
    read_watson,
)
from manymetrics.collect.folder import belongs_to_a_bank, split_whole
from manymetrics.collect.formats import LABEL_NAMES, TEXT_NAMES, csv_rows, read_json
from manymetrics.collect.rasa import MARKDOWN_ENDINGS, YAML_ENDINGS, is_rasa
from manymetrics.collect.tables import WHOLE, Columns, Found, read_huggingface, read_table, table_files
from manymetrics.collect.writing import as_file_name
from manymetrics.errors import InputError, TaskFormatError, TaskLeftOut
from manymetrics.values import Examples, LeftOut, Task, TaskBank, Texts

TABLES = ("csv", "tsv", "jsonl", "parquet")
FORMATS = (*TABLES, "huggingface", "rasa", "clu", "watson", "dialogflow")
FOLDERS = ("huggingface", "dialogflow")  # the formats that are never one file
LOOKED_AT = 1000  # rows of a CSV file without known names, to tell a header from an example


@dataclass(frozen=True)
class Imported:
    """What was read from elsewhere, and as what it was read."""

    format: str
    bank: TaskBank


def import_tasks(source: str | Path, *, format: str | None = None, name: str | None = None,
                 text_column: str | None = None, label_column: str | None = None, task_column: str | None = None,
                 split: bool = True) -> Imported:  # fmt: skip
    """Read tasks from a file or folder of another program; the format is found from the content if not given.

    `name` is what a single task is called, else it has the name of the source. The columns matter to tables alone.
    With `split=False`, examples that have no split are all put in train. One bad task among several is left out with a
    warning; no example at all is an error.
    """
    source = Path(source)
    columns = Columns(text_column, label_column, task_column)
    chosen = format or _tell_format(source, columns)
    _require_fit(source, chosen, columns)
    task = name or source.resolve().name.removesuffix(source.suffix if source.is_file() else "")
    parts: defaultdict[str, defaultdict[str, list[Examples]]] = defaultdict(lambda: defaultdict(list))
    for of_task, part, examples in _read(source, chosen, columns, task):
        if len(examples):
            parts[of_task][part].append(examples)
    if not parts:
        raise TaskFormatError(
            f"{source}: found no examples in it, read as {chosen}. Check the export, or give another --format."
        )
    return Imported(chosen, _make_bank(source, parts, split=split))


def _read(source: Path, chosen: str, columns: Columns, task: str) -> Iterator[Found]:
    if chosen in TABLES:
        return read_table(source, columns, kind=chosen, task=task)
    if chosen == "huggingface":
        return read_huggingface(source, columns, task=task)
    readers = {"rasa": read_rasa_source, "clu": read_clu, "watson": read_watson, "dialogflow": read_dialogflow}
    return readers[chosen](source, task=task)


def _make_bank(source: Path, parts: dict[str, defaultdict[str, list[Examples]]], *, split: bool) -> TaskBank:
    tasks: dict[str, Task] = {}  # by the name in lower case, as some disks do not tell the two apart
    left_out = []
    for name, found in sorted(parts.items()):
        plain = as_file_name(name)
        try:
            if not plain:
                raise TaskFormatError(f"{source}: the task's name {name!r} has no letter. Give it another with --name.")
            if plain.casefold() in tasks:
                raise TaskFormatError(f"{source}: two tasks would both be called {plain!r}. Rename one of them.")
            tasks[plain.casefold()] = _make_task(plain, found, split=split)
        except InputError as problem:
            if len(parts) == 1:
                raise
            left_out.append(LeftOut(name, str(problem)))
    if not tasks:
        raise TaskFormatError(f"{source}: none of its {len(parts)} tasks can be used. {left_out[0].reason}")
    for left in left_out:
        warnings.warn(f"{left.name!r} is left out. {left.reason}", TaskLeftOut, stacklevel=3)
    return TaskBank(tuple(tasks.values()), left_out=tuple(left_out))


def _make_task(name: str, found: defaultdict[str, list[Examples]], *, split: bool) -> Task:
    if set(found) == {WHOLE} and split:
        return split_whole(name, _join(found[WHOLE]))
    return Task(name, _join([*found["train"], *found[WHOLE]]), _join(found["valid"]), _join(found["test"]))


def _join(parts: Iterable[Examples]) -> Examples:
    parts = list(parts)
    return Examples(Texts.join([part.texts for part in parts]), tuple(label for part in parts for label in part.labels))


def _require_fit(source: Path, chosen: str, columns: Columns) -> None:
    if chosen not in FORMATS:
        raise InputError(f"There is no format {chosen!r}. Known are {', '.join(FORMATS)}.")
    if not source.exists():
        raise InputError(f"{source}: there is no such file or folder. Check the path.")
    if source.is_dir() != (chosen in FOLDERS) and chosen != "rasa":
        found, expected = ("a folder", "a file") if source.is_dir() else ("a file", "a folder")
        raise InputError(f"{source}: this is {found}, and {chosen} comes as {expected}. Give another --format.")
    if columns != Columns() and chosen not in ("csv", "jsonl", "parquet", "huggingface"):
        raise InputError(f"{source}: {chosen} has no columns to name. Leave the column options out.")


def _tell_format(source: Path, columns: Columns) -> str:
    if source.is_dir():
        return _tell_folder(source)
    ending = source.suffix.casefold()
    if ending in (".zip", ".gz", ".tar", ".tgz"):
        raise InputError(f"{source}: archives are not opened. Unpack it, and give the folder or file that was in it.")
    if ending == ".csv":
        return "csv" if columns != Columns() else _tell_csv(source)
    if ending.removeprefix(".") in TABLES:
        return ending.removeprefix(".")
    if ending in (*YAML_ENDINGS, *MARKDOWN_ENDINGS):
        return "rasa"
    if ending == ".json" and source.is_file():
        if is_rasa(source):
            return "rasa"
        if clu_utterances(read_json(source)) is not None:
            return "clu"
    if not source.exists():
        raise InputError(f"{source}: there is no such file or folder. Check the path.")
    raise InputError(f"{source}: cannot tell what this is. Say it with --format: {', '.join(FORMATS)}.")


def _tell_folder(folder: Path) -> str:
    if any((folder / "intents").glob("*.json")):
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


def _tell_csv(path: Path) -> str:
    """A known header makes it csv; without one, two columns whose first row has a label of later rows are Watson's."""
    rows = [row for _, row in islice(csv_rows(path), LOOKED_AT)]
    if not rows:
        raise TaskFormatError(f"{path}: found no examples in it, it is empty. Check the export.")
    header = {name.strip().casefold() for name in rows[0]}
    if header & set(TEXT_NAMES) and header & set(LABEL_NAMES):
        return "csv"
    if len(rows[0]) == 2 and any(row[1:] == rows[0][1:] for row in rows[1:]):
        return "watson"
    raise InputError(
        f"{path}, line 1: cannot tell whether this is a header or an example. Name the columns with --text-column and "
        "--label-column, or say --format watson if it has no header."
    )
