"""What was pasted or uploaded -> labelled texts, by the readers of `import`, in whichever of its formats.

The content goes to a folder of its own under a name made here; of the name it had, the ending is looked at. An archive
is unpacked within bounds, and the names in it are spelled anew from a few plain characters.
"""

from __future__ import annotations

import io
import json
import re
import tempfile
import warnings
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import manymetrics as mm
from manymetrics.service.problems import Invalid
from manymetrics.service.values import Labelled

FORMATS = {
    "": "found from the content",
    "csv": "CSV, with a header",
    "tsv": "text and label, parted by a tab",
    "jsonl": "JSON lines",
    "parquet": "Parquet",
    "arrow": "Arrow",
    "rasa": "Rasa (YAML, Markdown or JSON)",
    "clu": "Azure CLU",
    "luis": "LUIS",
    "watson": "Watson",
    "dialogflow": "Dialogflow (zip)",
    "huggingface": "Hugging Face folder (zip)",
}
ENDINGS = (".csv", ".tsv", ".jsonl", ".json", ".yml", ".yaml", ".md", ".parquet", ".arrow")
TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
COLUMNAR = {".parquet": "parquet", ".arrow": "ipc"}  # as pyarrow calls them
MAGIC = {b"PK\x03\x04": ".zip", b"PAR1": ".parquet", b"ARROW1": ".arrow"}
MOST_ROWS = 50_000  # of all tables that are handed in at once
MOST_FILES = 2_000  # of an archive
MOST_UNPACKED = 32 * 2**20  # bytes of all its files
LONGEST_MESSAGE = 400
OPTIONS = {
    "--text-column": "Text column", "--label-column": "Label column", "--format": "Format", "--encoding": "Encoding",
    "--name": "Name", "--task-column": "a column of tasks",
}  # fmt: skip
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True)
class Given:
    """What somebody handed in, and what was said about it."""

    content: bytes
    file_name: str = ""
    format: str = ""
    text_column: str = ""
    label_column: str = ""
    encoding: str = ""


@dataclass(frozen=True)
class Read:
    """The examples that were found, texts of no label among them, and how many rows could not be used."""

    examples: list[Labelled]
    left_out: int


def read_examples(given: Given) -> Read:
    """The examples of one task."""
    if not given.content.strip():
        raise Invalid("There is nothing to read. Paste examples, choose a file, or start from a sample.")
    if given.format not in FORMATS:
        raise Invalid("There is no such format. Choose one of the list.")
    with tempfile.TemporaryDirectory(prefix="manymetrics-") as name:
        folder = Path(name)
        try:
            source = _source(given, folder)
            _require_few_rows(folder)
            return _read(source, given)
        except mm.ManyMetricsError as problem:
            raise Invalid(_told(str(problem), folder)) from problem


def _read(source: Path, given: Given) -> Read:
    """What the readers find; a table of one label, which is no task, may still add to one."""
    try:
        return _one_task(_import(source, given))
    except mm.NotEnoughExamples:
        if source.suffix not in TABLES:
            raise
    found = mm.read_examples(source)
    return Read([Labelled(text, label) for text, label in zip(found.texts, found.labels, strict=True)], 0)


def _import(source: Path, given: Given) -> mm.Imported:
    with warnings.catch_warnings():  # what is left out is counted in what comes back
        warnings.simplefilter("ignore")
        return mm.import_tasks(
            source, format=given.format or None, name="examples", text_column=given.text_column or None,
            label_column=given.label_column or None, encoding=given.encoding or None, split=False,
        )  # fmt: skip


def _one_task(found: mm.Imported) -> Read:
    if len(found.bank) > 1:
        raise Invalid(f"There are {len(found.bank)} tasks in it. Hand in one at a time.")
    task = found.bank.tasks[0]
    examples = [
        Labelled(text, label)
        for part in (task.train, task.valid, task.test)
        for text, label in zip(part.texts, part.labels, strict=True)
    ]
    examples += [Labelled(text) for text in found.counter_examples.get(task.name, ())]
    try:
        "".join(one.text + (one.label or "") for one in examples).encode()
    except UnicodeEncodeError:
        raise Invalid("A text holds half of a character. Save the file anew as UTF-8.") from None
    return Read(examples, found.rows_left_out)


def _require_few_rows(folder: Path) -> None:
    """Refuse tables that would take long to read, by their lines or by what they say of themselves."""
    if sum(_rows(path) for path in folder.rglob("*") if path.is_file()) > MOST_ROWS:
        raise Invalid(f"There are more than {MOST_ROWS:,} rows in it. Hand in a sample of them.")


def _rows(path: Path) -> int:
    if path.suffix in (".csv", ".tsv", ".jsonl"):
        return path.read_bytes().count(b"\n")
    if path.suffix not in (".parquet", ".arrow"):
        return 0
    try:
        from pyarrow import dataset

        return int(dataset.dataset(path, format=COLUMNAR[path.suffix]).count_rows())
    except (ImportError, OSError, ValueError):  # the reader tells what is wrong
        return 0


def _source(given: Given, folder: Path) -> Path:
    """The content as a file, or as a folder where it is an archive."""
    ending = _ending(given)
    if ending == ".zip":
        return _unpacked(given.content, folder)
    path = folder / f"examples{ending}"
    path.write_bytes(given.content)
    return path


def _ending(given: Given) -> str:
    for magic, ending in MAGIC.items():
        if given.content.startswith(magic):
            return ending
    named = Path(given.file_name).suffix.casefold()
    return named if named in ENDINGS else _sniffed(given.content.decode("utf-8", "replace"))


def _sniffed(content: str) -> str:
    """The ending that files with such content have."""
    text = content.lstrip("\ufeff \r\n")
    first, _, rest = text.partition("\n")
    if text.startswith(("{", "[")):
        return ".jsonl" if rest.strip() and _is_object(first) else ".json"
    if re.match(r"(version|nlu)\s*:", text):
        return ".yml"
    if text.startswith("## "):
        return ".md"
    return ".tsv" if "\t" in first else ".csv"


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _unpacked(content: bytes, folder: Path) -> Path:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _unpack(archive, folder)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError):
        raise Invalid("The archive cannot be unpacked. Make it anew, as a plain zip without a password.") from None
    return _innermost(folder)


def _unpack(archive: zipfile.ZipFile, folder: Path) -> None:
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(entries) > MOST_FILES:
        raise Invalid(f"The archive holds more than {MOST_FILES:,} files. Leave out what is no example.")
    left = MOST_UNPACKED
    for entry in entries:
        parts = _plain_parts(entry.filename)
        if not parts:
            continue
        with archive.open(entry) as file:
            content = file.read(left + 1)
        left -= len(content)
        if left < 0:
            raise Invalid(f"The archive unpacks to more than {MOST_UNPACKED // 2**20} MiB. Hand in less at once.")
        path = folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _plain_parts(name: str) -> list[str]:
    """The folders and the file name of an entry, of plain characters only; nothing for files that are no data."""
    *folders, last = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")] or [""]
    stem, _, ending = last.rpartition(".")
    if f".{ending.casefold()}" not in ENDINGS or not stem or any(one.startswith(("__MACOSX", ".")) for one in folders):
        return []
    return [_NOT_PLAIN.sub("_", one)[:100] for one in folders[-5:]] + [
        f"{_NOT_PLAIN.sub('_', stem)[:100]}.{ending.lower()}"
    ]


def _innermost(folder: Path) -> Path:
    """Where the files begin: an archive often holds one folder that holds everything."""
    inside = sorted(folder.iterdir())
    if not inside:
        raise Invalid(f"The archive holds none of the files that are read: {', '.join(ENDINGS)}.")
    return (
        _innermost(inside[0])
        if len(inside) == 1 and inside[0].is_dir() and inside[0].name != "intents"
        else (inside[0] if len(inside) == 1 and inside[0].is_file() else folder)
    )


def _told(message: str, folder: Path) -> str:
    """What a reader says, in the words of the page."""
    told = re.sub(
        re.escape(str(folder.resolve())) + r"[\w./-]*|" + re.escape(str(folder)) + r"[\w./-]*", "Examples", message
    )
    for option, name in OPTIONS.items():
        told = told.replace(option, f"“{name}”")
    return told if len(told) <= LONGEST_MESSAGE else told[:LONGEST_MESSAGE] + " …"


def as_lines(text: str) -> list[str]:
    """Texts that were pasted one a line, each once."""
    return list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))


def sample_tasks() -> Iterable[mm.Task]:
    """Made-up tasks to start from."""
    bank = mm.sample_bank(tasks=16)
    return [task for task in bank if bank.role(task.name) == "target"]
