"""Collected examples -> Imported: tasks with names for files, splits, counter-examples, and notes.

Texts that belong to no label (`oos`, `None` of CLU and LUIS, a fallback intent) become
counter-examples, unless fewer than two labels would remain.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from manymetrics.collect.bank.labels import DIFFERENCE, SimilarLabels, describe_similar_labels, fold_labels, list_groups
from manymetrics.collect.bank.splits import split_task, without_copies
from manymetrics.collect.bank.write import as_file_name
from manymetrics.collect.readers.records import COUNTER, UNSPLIT, ReadLog
from manymetrics.errors import InputError, TaskFormatError
from manymetrics.values import Examples, SkippedTask, Task, TaskBank

OUT_OF_SCOPE = frozenset(("oos", "out_of_scope", "no_nodes_detected"))
OUT_OF_SCOPE_IN = {"clu": frozenset(("none",)), "luis": frozenset(("none",))}  # further labels, by format
FILES_LISTED = 5  # in a note


@dataclass(frozen=True)
class Imported:
    """Imported tasks, the format they were read in, and what was noticed."""

    format: str
    bank: TaskBank
    counter_examples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by task: texts of no label
    rows_left_out: int = 0
    notes: tuple[str, ...] = ()  # sentences on how the source was interpreted


def assemble(
    source: Path, format: str, examples: Mapping[str, Mapping[str, Examples]], log: ReadLog, *, split: bool, fold: bool
) -> Imported:
    """Make tasks from examples by task and part; one that cannot be used is left out if there are others.

    With `fold`, labels of a task that differ only in case or white space become one.
    """
    tasks: dict[str, Task] = {}  # by the name in lower case, because some file systems ignore case
    counters: dict[str, tuple[str, ...]] = {}
    folded: dict[str, tuple[SimilarLabels, ...]] = {}
    left_out = []
    for original, parts in sorted(examples.items()):
        name = as_file_name(original)
        try:
            _require_name(source, original, name, tasks)
            texts, labelled = _take_counter_examples(parts, OUT_OF_SCOPE | OUT_OF_SCOPE_IN.get(format, frozenset()))
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


def _require_name(source: Path, original: str, name: str, tasks: Mapping[str, Task]) -> None:
    if not name:
        raise TaskFormatError(f"{source}: the task's name {original!r} has no letter. Give it another with --name.")
    if name.casefold() in tasks:
        raise TaskFormatError(f"{source}: two tasks would both be called {name!r}. Rename one of them.")


def _take_counter_examples(
    parts: Mapping[str, Examples], out_of_scope: frozenset[str]
) -> tuple[tuple[str, ...], dict[str, Examples]]:
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


def _make_task(name: str, parts: Mapping[str, Examples], *, split: bool) -> Task:
    if set(parts) == {UNSPLIT} and split:
        return split_task(name, parts[UNSPLIT])
    train, valid, test, unsplit = (parts.get(part, Examples()) for part in ("train", "valid", "test", UNSPLIT))
    return Task(name, Examples.join([train, unsplit]), valid, test)


def _notes(
    bank: TaskBank, counters: Mapping[str, tuple[str, ...]], folded: Mapping[str, tuple[SimilarLabels, ...]]
) -> Iterator[str]:
    if counters:
        counts = [f"{name}.counter.jsonl {len(texts):,}" for name, texts in counters.items()]
        more = f" and {len(counts) - FILES_LISTED:,} more tasks" if len(counts) > FILES_LISTED else ""
        listed, total = ", ".join(counts[:FILES_LISTED]) + more, sum(map(len, counters.values()))
        yield f"Texts that belong to no label become counter-examples: {total:,} ({listed})."
    if any(folded.values()):
        yield f"{DIFFERENCE} are joined, each group under its most frequent label: {list_groups(folded)}."
    if similar := describe_similar_labels(bank):
        yield similar
