"""`import_tasks`: a source of any format -> Imported.

    csv, tsv, jsonl, json, parquet, arrow  one table; a column may divide it into tasks
    huggingface                            a folder of tables named by split, each config a task
    rasa, clu, luis, dialogflow            exports of chatbot services; one task

An importer gives the records of a source; one loop checks and groups them. Data without splits are split 64 / 16 / 20
by a hash of their content. Texts that belong to no label (`oos`, `None` of CLU and LUIS, a fallback intent) become
counter-examples, unless fewer than two labels would remain.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from manymetrics.collect.bank.splits import (
    SimilarLabels,
    describe_similar_labels,
    fold_labels,
    similar_labels,
    split_examples,
    without_copies,
)
from manymetrics.collect.bank.write import as_file_name
from manymetrics.collect.importers.chatbots import read_azure, read_dialogflow
from manymetrics.collect.importers.detect import choose_format
from manymetrics.collect.importers.rasa import read_rasa
from manymetrics.collect.importers.tables import ImportOptions, read_huggingface, read_table
from manymetrics.collect.readers.open import require_encoding
from manymetrics.collect.readers.records import COUNTER, UNSPLIT, ReadLog, Record, TableOptions, collect_examples
from manymetrics.collect.readers.tables import TABLES
from manymetrics.errors import InputError, TaskFormatError, TaskSkipped, list_first
from manymetrics.values import Examples, SkippedTask, Task, TaskBank

IMPORTERS: dict[str, Callable[[Path, ImportOptions], Iterator[Record]]] = {
    **dict.fromkeys(TABLES, read_table),
    "huggingface": read_huggingface,
    "rasa": read_rasa,
    "clu": read_azure,
    "luis": read_azure,
    "dialogflow": read_dialogflow,
}
OUT_OF_SCOPE = {"oos", "out_of_scope", "no_nodes_detected"}  # labels of texts that belong to no label
MIN_ROWS = 10  # of a table without known names, to suspect a header because its first label occurs only once

Parts = Mapping[str, Examples]  # train, valid, test, UNSPLIT and COUNTER of a task, as far as they occur


@dataclass(frozen=True)
class Imported:
    """Imported tasks, the format they were read in, and what was noticed."""

    format: str
    bank: TaskBank
    counter_examples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by task: texts of no label
    rows_left_out: int = 0
    notes: tuple[str, ...] = ()  # sentences on how the source was interpreted


def import_tasks(
    source: str | Path,
    *,
    format: str | None = None,
    name: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    task_column: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    split: bool = True,
    fold_labels: bool = False,
    strict: bool = False,
) -> Imported:
    """Read tasks from a file or folder of another program; the format is detected if not given.

    `name` is the name of a single task, by default that of the source, and the beginning of the names of several.
    Columns, delimiter (a character, or `tab`) and encoding apply to tables only. With `split=False`, examples without a
    split are all put in train. With `fold_labels`, labels that differ only in case or white space become one. Rows with
    a blank text or label, and a bad task among several, are left out with a warning; with `strict` they are an error.
    No example at all is an error.
    """
    source, log = Path(source), ReadLog()
    table = TableOptions(text_column, label_column, task_column, _delimiter(delimiter),
                         encoding and require_encoding(encoding), class_names=True)  # fmt: skip
    format, table = choose_format(source, format, table)
    default = source.resolve().name.removesuffix(source.suffix if source.is_file() else "")
    options = ImportOptions(format, name or default, name or "", table, log)
    examples = collect_examples(IMPORTERS[format](source, options), log)
    log.report(strict=strict)
    if not examples:
        raise TaskFormatError(f"{source}: found no examples in it, read as {format}. Give another --format.")
    if not log.notes and format in TABLES and (format == "tsv" or table.header is False):
        log.notes += _note_on_first_line(source, examples)
    imported = _make_tasks(source, format, examples, log, split=split, fold=fold_labels)
    for task in imported.bank.left_out:
        if strict:
            raise TaskFormatError(task.reason)
        warnings.warn(f"{task.name!r} is left out. {task.reason}", TaskSkipped, stacklevel=2)
    return imported


def _delimiter(name: str | None) -> str | None:
    character = "\t" if name in ("tab", "\\t") else name
    if character is not None and (len(character) != 1 or character in '"\r\n'):
        raise InputError(f"The delimiter is {name!r}, expected one character. Try ',', ';', '|' or tab.")
    return character


def _note_on_first_line(path: Path, examples: Mapping[str, Parts]) -> Iterator[str]:
    """A note on a table without known names whose first label occurs only once: its first line may be a header."""
    labels = next(iter(next(iter(examples.values())).values())).labels
    if len(labels) >= MIN_ROWS and labels[0] not in labels[1:]:
        yield (
            f"{path}: the first line is read as an example with the label {labels[0][:40]!r}, which no other line has. "
            "If it is a header, name the columns with --text-column and --label-column."
        )


def _make_tasks(
    source: Path, format: str, examples: Mapping[str, Parts], log: ReadLog, *, split: bool, fold: bool
) -> Imported:
    """Make tasks from examples by task and part; one that cannot be used is left out if there are others."""
    tasks: dict[str, Task] = {}  # by the name in lower case, because some file systems ignore case
    counters: dict[str, tuple[str, ...]] = {}
    folded: dict[str, tuple[SimilarLabels, ...]] = {}
    left_out = []
    out_of_scope = OUT_OF_SCOPE | ({"none"} if format in ("clu", "luis") else set())
    for original, parts in sorted(examples.items()):
        name = as_file_name(original)
        try:
            if not name:
                raise TaskFormatError(f"{source}: the task's name {original!r} has no letter. Give another --name.")
            if name.casefold() in tasks:
                raise TaskFormatError(f"{source}: two tasks would both be called {name!r}. Rename one of them.")
            texts, labelled = _take_counter_examples(parts, out_of_scope)
            if fold:
                labelled, folded[name] = fold_labels(labelled)
            tasks[name.casefold()] = _make_task(name, labelled, split=split)
            if texts:
                counters[name] = texts
        except InputError as error:
            if len(examples) == 1:
                raise
            left_out.append(SkippedTask(original, str(error)))
    if not tasks:
        raise TaskFormatError(f"{source}: none of its {len(examples)} tasks can be used. {left_out[0].reason}")
    bank = TaskBank(tuple(tasks.values()), left_out=tuple(left_out))
    return Imported(format, bank, counters, log.n_skipped, (*log.notes, *_notes(bank, counters, folded)))


def _take_counter_examples(parts: Parts, out_of_scope: set[str]) -> tuple[tuple[str, ...], dict[str, Examples]]:
    """The texts that belong to no label, each once, and the examples without them."""
    texts = list(parts.get(COUNTER, Examples()).texts)
    labelled = {part: examples for part, examples in parts.items() if part != COUNTER}
    labels = {label for examples in labelled.values() for label in examples.labels}
    removed = {label for label in labels if re.sub(r"[\s-]+", "_", label.casefold()) in out_of_scope}
    if removed and len(labels - removed) >= 2:
        for part, examples in labelled.items():
            texts += [text for text, label in zip(examples.texts, examples.labels, strict=True) if label in removed]
            labelled[part] = examples.take([row for row, label in enumerate(examples.labels) if label not in removed])
    return without_copies(texts), labelled


def _make_task(name: str, parts: Parts, *, split: bool) -> Task:
    if set(parts) == {UNSPLIT} and split:
        return Task(name, *split_examples(parts[UNSPLIT]))
    train, valid, test, unsplit = (parts.get(part, Examples()) for part in ("train", "valid", "test", UNSPLIT))
    return Task(name, Examples.join([train, unsplit]), valid, test)


def _notes(
    bank: TaskBank, counters: Mapping[str, tuple[str, ...]], folded: Mapping[str, tuple[SimilarLabels, ...]]
) -> Iterator[str]:
    if counters:
        counts = [f"{name}.counter.jsonl {len(texts):,}" for name, texts in counters.items()]
        listed, total = list_first(counts, more=" and {:,} more tasks"), sum(map(len, counters.values()))
        yield f"Texts that belong to no label become counter-examples: {total:,} ({listed})."
    similar = {task.name: similar_labels(*task.splits) for task in bank}
    yield from filter(None, (describe_similar_labels(folded, joined=True), describe_similar_labels(similar)))
