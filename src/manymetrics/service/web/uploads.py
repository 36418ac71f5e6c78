"""Pasted text or an uploaded file -> labelled texts, in any format of one text file that `import_tasks` reads.

The content is written to a temporary folder under a name chosen here; only the suffix of the client's file name is
used.
"""

import re
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import manymetrics as mm
from manymetrics.service.domain.errors import Invalid
from manymetrics.service.domain.schemas import Labelled
from manymetrics.service.web.session import Form

OPTIONS = ("format", "text_column", "label_column", "encoding")  # fields of the form
FORMATS = (None, "csv", "tsv", "jsonl", "rasa", "clu", "luis")  # None: detected
LINES = (".csv", ".tsv", ".jsonl")
BINARY = (b"PK\x03\x04", b"PAR1", b"ARROW1")  # the first bytes of archives, Parquet and Arrow files
MAX_ROWS = 50_000
MAX_MESSAGE_LENGTH = 400


@dataclass(frozen=True)
class Upload:
    """The examples of an upload, counter-examples without a label, and the number of rows that were skipped."""

    examples: list[Labelled]
    skipped: int = 0


def read_upload(form: Form) -> Upload:
    """Read the examples of one task from the pasted text of a form, or else from its file."""
    pasted = form.fields.get("pasted", "")
    file_name, content = ("", pasted.encode()) if pasted.strip() else (form.file_name, form.content)
    options = {name: form.fields.get(name, "").strip() or None for name in OPTIONS}
    if not content.strip():
        raise Invalid("There is nothing to read. Paste examples, or choose a file.")
    if content.startswith(BINARY):
        raise Invalid("Archives, Parquet and Arrow files are not read here. Upload CSV, TSV or JSON lines.")
    if options["format"] not in FORMATS:
        raise Invalid("There is no such format. Choose one of the list.")
    suffix = _suffix(content, file_name)
    if suffix in LINES and content.count(b"\n") > MAX_ROWS:
        raise Invalid(f"The upload has more than {MAX_ROWS:,} rows. Upload a sample of them.")
    with tempfile.TemporaryDirectory(prefix="manymetrics-") as name:
        folder = Path(name).resolve()
        source = folder / f"examples{suffix}"
        source.write_bytes(content)
        try:
            return _import(source, options)
        except mm.ManyMetricsError as error:
            raise Invalid(_page_message(str(error), folder)) from error


def _import(source: Path, options: dict[str, Any]) -> Upload:
    try:
        with warnings.catch_warnings():  # skipped rows are counted in the result
            warnings.simplefilter("ignore")
            imported = mm.import_tasks(source, name="examples", split=False, **options)
    except mm.NotEnoughExamples:
        if source.suffix not in LINES:
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


def _suffix(content: bytes, file_name: str) -> str:
    """The suffix of the client's file name, or of a file with this content."""
    suffix = Path(file_name).suffix.casefold()
    if suffix in (*LINES, ".json", ".yml", ".yaml", ".md"):
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


def _page_message(message: str, folder: Path) -> str:
    """A message of the library without paths, and with the names of fields instead of command-line options."""
    message = re.sub(re.escape(str(folder)) + r"[\w./-]*", "Examples", message)
    message = re.sub(r"(?<= )--([a-z-]+)", lambda option: f"“{option[1].replace('-', ' ').capitalize()}”", message)
    return message if len(message) <= MAX_MESSAGE_LENGTH else message[:MAX_MESSAGE_LENGTH] + " …"
