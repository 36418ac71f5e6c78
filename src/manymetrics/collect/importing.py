"""Data from elsewhere -> TaskBank: reads each format with its own reader, and splits what is undivided.

    csv, tsv, jsonl, parquet, arrow        one table; a column may divide it into tasks
    huggingface                            a folder of tables named by split, each config a task
    rasa, clu, luis, watson, dialogflow    what chatbot services export; one task

Data without splits are split 64 / 16 / 20 by a hash of its content, as a Rasa file in a bank is. Texts that belong to
no label (`oos`, `None` of CLU, counter-examples of Watson, a fallback intent) are kept apart from the examples.
"""

import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from manymetrics.collect.assembling import Imported, Parts, assemble
from manymetrics.collect.chatbots import read_clu, read_luis
from manymetrics.collect.class_names import class_names
from manymetrics.collect.detection import TABLES, require_fit, tell_format
from manymetrics.collect.dialogflow import read_dialogflow
from manymetrics.collect.huggingface import read_huggingface
from manymetrics.collect.options import Columns, Options, as_dialect
from manymetrics.collect.rasa_project import read_rasa_source
from manymetrics.collect.rows import MAX_ROWS
from manymetrics.collect.tables import Found, read_table
from manymetrics.collect.watson import read_watson
from manymetrics.errors import TaskFormatError, TaskLeftOut
from manymetrics.values import Examples

ENOUGH_TO_TELL = 10  # rows of a TSV file, to find it odd that its first label comes only once
READERS = {
    "huggingface": read_huggingface,
    "rasa": read_rasa_source,
    "clu": read_clu,
    "luis": read_luis,
    "watson": read_watson,
    "dialogflow": read_dialogflow,
}


def import_tasks(source: str | Path, *, format: str | None = None, name: str | None = None,
                 text_column: str | None = None, label_column: str | None = None, task_column: str | None = None,
                 delimiter: str | None = None, encoding: str | None = None, split: bool = True,
                 strict: bool = False) -> Imported:  # fmt: skip
    """Read tasks from a file or folder of another program; the format is found from the content if not given.

    `name` is what a single task is called, else it has the name of the source; where there are several tasks, their
    names begin with it. Columns, delimiter (a character, or `tab`) and encoding matter to tables alone. With
    `split=False`, examples that have no split are all put in train. Rows with a blank text or label, and one bad task
    among several, are left out with a warning; with `strict` they are an error. No example at all is an error.
    """
    source, columns = Path(source), Columns(text_column, label_column, task_column)
    dialect = as_dialect(delimiter, encoding)
    chosen = format or tell_format(source, columns, dialect)
    require_fit(source, chosen, columns, dialect)
    own = source.resolve().name.removesuffix(source.suffix if source.is_file() else "")
    options = Options(name or own, name or "", columns, dialect)
    found = _gather(source, chosen, options)
    log = options.log
    if log.rows_left_out and strict:
        raise TaskFormatError(" ".join(log.sentences()))
    if log.rows_left_out:
        warnings.warn(log.as_warning(), TaskLeftOut, stacklevel=2)
    if not found:
        raise TaskFormatError(
            f"{source}: found no examples in it, read as {chosen}. Check the export, or give another --format."
        )
    made = assemble(source, chosen, found, split=split)
    if made.bank.left_out and strict:
        raise TaskFormatError(made.bank.left_out[0].reason)
    for left in made.bank.left_out:
        warnings.warn(f"{left.name!r} is left out. {left.reason}", TaskLeftOut, stacklevel=2)
    return replace(made, rows_left_out=log.rows_left_out, notes=(*log.notes, *made.notes))


def _gather(source: Path, chosen: str, options: Options) -> dict[str, Parts]:
    """What a source holds, by task and part."""
    found: dict[str, Parts] = {}
    rows: defaultdict[str, int] = defaultdict(int)
    for task, part, examples in _read(source, chosen, options):
        if not len(examples):
            continue
        found.setdefault(task, defaultdict(list))[part].append(examples)
        rows[task] += len(examples)
        if rows[task] > MAX_ROWS:
            raise TaskFormatError(f"{source}: task {task!r} has more than {MAX_ROWS:,} rows. Take a sample of them.")
    return found


def _read(source: Path, chosen: str, options: Options) -> Iterator[Found]:
    if chosen not in TABLES:
        yield from READERS[chosen](source, options)
        return
    for found in read_table(source, options, kind=chosen, classes=class_names(source)):
        if chosen == "tsv" and not options.log.notes:
            options.log.notes += _on_first_line(source, found[2])
        yield found


def _on_first_line(path: Path, examples: Examples) -> list[str]:
    """A word on a TSV file without known names, whose first label comes only once: it may be a header."""
    labels, enough = examples.labels, len(examples) >= ENOUGH_TO_TELL
    if not enough or labels[0] in labels[1:]:
        return []
    return [
        f"{path}: the first line is taken for an example with the label {labels[0][:40]!r}, which no other line has. "
        "If it is a header, name the columns with --text-column and --label-column."
    ]
