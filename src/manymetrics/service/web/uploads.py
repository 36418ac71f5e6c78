"""Pasted text or an uploaded file -> labelled texts, in any format that `import_tasks` reads.

The content is written to a temporary folder under a name chosen here; only the suffix of the client's file name is
used. Archives are unpacked within limits, and the names in them are reduced to letters, digits, `_` and `-`.
"""

import io
import os
import re
import tempfile
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import manymetrics as mm
from manymetrics.service.domain.errors import Invalid
from manymetrics.service.domain.schemas import Labelled
from manymetrics.service.web.session import Form

OPTIONS = ("format", "text_column", "label_column", "encoding")  # fields of the form
LINES, COLUMNAR = (".csv", ".tsv", ".jsonl"), {".parquet": "parquet", ".arrow": "ipc"}
SUFFIXES = (*LINES, ".json", ".yml", ".yaml", ".md", *COLUMNAR)
MAGIC = {b"PK\x03\x04": ".zip", b"PAR1": ".parquet", b"ARROW1": ".arrow"}  # first bytes -> suffix
MAX_ROWS = 50_000  # in all tables of an upload
MAX_FILES = 2_000  # in an archive
MAX_UNPACKED_BYTES = 32 * 2**20
MAX_MESSAGE_LENGTH = 400
_OTHER_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True)
class Upload:
    """The examples of an upload, counter-examples without a label, and the number of rows that were skipped."""

    examples: list[Labelled]
    skipped: int = 0


def read_upload(form: Form) -> Upload:
    """Read the examples of one task from the pasted text of a form, or else from its file."""
    pasted = form.fields.get("pasted", "")
    file_name, content = ("", pasted.encode()) if pasted.strip() else (form.file_name, form.content)
    if not content.strip():
        raise Invalid("There is nothing to read. Paste examples, choose a file, or start from a sample.")
    options = {name: form.fields.get(name, "").strip() or None for name in OPTIONS}
    with tempfile.TemporaryDirectory(prefix="manymetrics-") as name:
        folder = Path(name).resolve()
        try:
            suffix = _suffix(content, file_name)
            source = _unpack(content, folder) if suffix == ".zip" else folder / f"examples{suffix}"
            if suffix != ".zip":
                source.write_bytes(content)
            _check_rows(folder)
            return _import(source, options)
        except mm.ManyMetricsError as error:
            raise Invalid(_page_message(str(error), folder)) from error


def _import(source: Path, options: dict[str, Any]) -> Upload:
    try:
        with warnings.catch_warnings():  # skipped rows are counted in the result
            warnings.simplefilter("ignore")
            imported = mm.import_tasks(source, name="examples", split=False, **options)
    except mm.NotEnoughExamples:
        if source.suffix not in (*LINES, ".parquet"):
            raise
        table = mm.read_examples(source)  # with one label it is not a task, but can be added to one
        return Upload([Labelled(*row) for row in zip(table.texts, table.labels, strict=True)])
    if len(imported.bank) > 1:
        raise Invalid(f"The upload has {len(imported.bank)} tasks. Upload one task at a time.")
    task = imported.bank.tasks[0]
    parts = (task.train, task.valid, task.test)
    examples = [Labelled(*row) for part in parts for row in zip(part.texts, part.labels, strict=True)]
    counter_examples = [Labelled(text, None) for text in imported.counter_examples.get(task.name, ())]
    return Upload(examples + counter_examples, imported.rows_left_out)


def _check_rows(folder: Path) -> None:
    """Refuse tables that take long to read."""
    if sum(_count_rows(path) for path in folder.rglob("*") if path.is_file()) > MAX_ROWS:
        raise Invalid(f"The upload has more than {MAX_ROWS:,} rows. Upload a sample of them.")


def _count_rows(path: Path) -> int:
    """The number of lines of a table, or of rows in its metadata; 0 for other files."""
    if path.suffix in LINES:
        return path.read_bytes().count(b"\n")
    try:
        from pyarrow import dataset

        return int(dataset.dataset(path, format=COLUMNAR[path.suffix]).count_rows()) if path.suffix in COLUMNAR else 0
    except (ImportError, OSError, ValueError):  # the reader reports what is wrong
        return 0


def _suffix(content: bytes, file_name: str) -> str:
    """The suffix of a file with this content; the client's file name decides between formats of text."""
    for magic, suffix in MAGIC.items():
        if content.startswith(magic):
            return suffix
    suffix = Path(file_name).suffix.casefold()
    if suffix in SUFFIXES:
        return suffix
    text = content.decode("utf-8", "replace").lstrip("\ufeff \r\n")
    first, _, rest = text.partition("\n")
    if text.startswith(("{", "[")):
        return ".jsonl" if first.startswith("{") and first.rstrip().endswith("}") and rest.strip() else ".json"
    if re.match(r"(version|nlu)\s*:", text):
        return ".yml"
    if text.startswith("## "):
        return ".md"
    return ".tsv" if "\t" in first else ".csv"


def _unpack(content: bytes, folder: Path) -> Path:
    """Unpack an archive; returns its only file, or the innermost folder that holds all its files."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _write_entries(archive, folder)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError):
        raise Invalid("The archive cannot be unpacked. Create it again, as a zip file without a password.") from None
    files = [path for path in folder.rglob("*") if path.is_file()]
    if not files:
        raise Invalid(f"The archive has no file with a known suffix: {', '.join(SUFFIXES)}.")
    if len(files) == 1:
        return files[0]
    innermost = Path(os.path.commonpath([path.parent for path in files]))
    return innermost.parent if innermost.name == "intents" else innermost  # a Dialogflow agent holds `intents`


def _write_entries(archive: zipfile.ZipFile, folder: Path) -> None:
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(entries) > MAX_FILES:
        raise Invalid(f"The archive has more than {MAX_FILES:,} files. Remove those that are not examples.")
    left = MAX_UNPACKED_BYTES
    for entry in entries:
        if not (parts := _safe_parts(entry.filename)):
            continue
        with archive.open(entry) as file:
            content = file.read(left + 1)
        left -= len(content)
        if left < 0:
            raise Invalid(f"The archive unpacks to more than {MAX_UNPACKED_BYTES // 2**20} MiB. Upload less at once.")
        path = folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _safe_parts(name: str) -> list[str]:
    """The folders and the file name of an entry, of safe characters only; empty for files that are not data."""
    *folders, file_name = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")] or [""]
    stem, _, suffix = file_name.rpartition(".")
    hidden = any(part.startswith(("__MACOSX", ".")) for part in folders)
    if hidden or not stem or f".{suffix.casefold()}" not in SUFFIXES:
        return []
    *folders, stem = (_OTHER_CHARACTERS.sub("_", part)[:100] for part in (*folders[-5:], stem))
    return [*folders, f"{stem}.{suffix.lower()}"]


def _page_message(message: str, folder: Path) -> str:
    """A message of the library without paths, and with the names of fields instead of command-line options."""
    message = re.sub(re.escape(str(folder)) + r"[\w./-]*", "Examples", message)
    message = re.sub(r"(?<= )--([a-z-]+)", lambda option: f"“{option[1].replace('-', ' ').capitalize()}”", message)
    return message if len(message) <= MAX_MESSAGE_LENGTH else message[:MAX_MESSAGE_LENGTH] + " …"
