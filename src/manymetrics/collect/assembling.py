"""What readers found, by task and part -> a bank: names for files, splits, counter-examples, and what is to be told.

Texts that belong to no label (`oos`, `None` of CLU and LUIS, counter-examples of Watson, a fallback intent) are kept
apart from the examples, unless fewer than two labels would be left.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from manymetrics.collect.duplicates import count_duplicates, count_shared, normal_form
from manymetrics.collect.folder import split_whole
from manymetrics.collect.tables import COUNTER, WHOLE
from manymetrics.collect.writing import as_file_name
from manymetrics.errors import InputError, TaskFormatError
from manymetrics.values import Examples, LeftOut, Task, TaskBank, Texts

OUT_OF_SCOPE = frozenset(("oos", "out_of_scope", "no_nodes_detected"))
ALSO_OUT_OF_SCOPE = {"clu": frozenset(("none",)), "luis": frozenset(("none",))}  # by format
NAMED = 5  # tasks in a sentence

Parts = defaultdict[str, list[Examples]]  # part -> what was read of it


@dataclass(frozen=True)
class Imported:
    """What was read from elsewhere, as what it was read, and what was noticed."""

    format: str
    bank: TaskBank
    counter_examples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by task: texts of no label
    duplicates: Mapping[str, int] = field(default_factory=dict)  # by task: examples whose text came before
    rows_left_out: int = 0
    notes: tuple[str, ...] = ()  # sentences on what was taken for what


def assemble(source: Path, chosen: str, found: Mapping[str, Parts], *, split: bool) -> Imported:
    """Make a task of each name; one that cannot be used is left out if there are others."""
    tasks: dict[str, Task] = {}  # by the name in lower case, as some disks do not tell the two apart
    counter: dict[str, tuple[str, ...]] = {}
    left_out = []
    for name, parts in sorted(found.items()):
        plain = as_file_name(name)
        try:
            _require_free(source, name, plain, tasks)
            texts, joined = _take_out(parts, OUT_OF_SCOPE | ALSO_OUT_OF_SCOPE.get(chosen, frozenset()))
            tasks[plain.casefold()] = _make_task(plain, joined, split=split)
            if texts:
                counter[plain] = texts
        except InputError as problem:
            if len(found) == 1:
                raise
            left_out.append(LeftOut(name, str(problem)))
    if not tasks:
        raise TaskFormatError(f"{source}: none of its {len(found)} tasks can be used. {left_out[0].reason}")
    bank = TaskBank(tuple(tasks.values()), left_out=tuple(left_out))
    duplicates = {task.name: count for task in bank if (count := count_duplicates(task))}
    notes = [*_on_duplicates(bank, duplicates), *_on_shared(bank), *_on_counter_examples(counter)]
    return Imported(chosen, bank, counter, duplicates, notes=tuple(notes))


def _require_free(source: Path, name: str, plain: str, tasks: Mapping[str, Task]) -> None:
    if not plain:
        raise TaskFormatError(f"{source}: the task's name {name!r} has no letter. Give it another with --name.")
    if plain.casefold() in tasks:
        raise TaskFormatError(f"{source}: two tasks would both be called {plain!r}. Rename one of them.")


def _take_out(parts: Parts, out_of_scope: frozenset[str]) -> tuple[tuple[str, ...], dict[str, Examples]]:
    """The texts that belong to no label, each once, and the examples without them."""
    joined = {part: _join(found) for part, found in parts.items()}
    texts = list(joined.pop(COUNTER, Examples()).texts)
    labels = {label for examples in joined.values() for label in examples.labels}
    strange = {label for label in labels if re.sub(r"[\s-]+", "_", label.casefold()) in out_of_scope}
    if strange and len(labels - strange) >= 2:
        for part, examples in joined.items():
            texts += [text for text, label in zip(examples.texts, examples.labels, strict=True) if label in strange]
            joined[part] = examples.take([row for row, label in enumerate(examples.labels) if label not in strange])
    return tuple({normal_form(text): text for text in reversed(texts)}.values())[::-1], joined


def _make_task(name: str, found: Mapping[str, Examples], *, split: bool) -> Task:
    if set(found) == {WHOLE} and split:
        return split_whole(name, found[WHOLE])
    train, valid, test, whole = (found.get(part, Examples()) for part in ("train", "valid", "test", WHOLE))
    return Task(name, _join([train, whole]), valid, test)


def _join(parts: Iterable[Examples]) -> Examples:
    parts = list(parts)
    return Examples(Texts.join([part.texts for part in parts]), tuple(label for part in parts for label in part.labels))


def _on_duplicates(bank: TaskBank, duplicates: Mapping[str, int]) -> Iterable[str]:
    if duplicates:
        count, texts = sum(duplicates.values()), sum(len(part) for task in bank for part in _parts(task))
        yield (
            f"Copies of other texts, but for case, spaces and punctuation at the ends: {count:,} of {texts:,}"
            f"{_in_tasks(bank, duplicates)}. They stay on one side of a split made here."
        )


def _on_shared(bank: TaskBank) -> Iterable[str]:
    shared = {task.name: count for task in bank if (count := count_shared(task))}
    if shared:
        yield (
            f"Texts of valid and test that are in train too, as the source splits them: {sum(shared.values()):,}"
            f"{_in_tasks(bank, shared)}. What is measured on them says little."
        )


def _on_counter_examples(counter: Mapping[str, tuple[str, ...]]) -> Iterable[str]:
    if counter:
        count = sum(map(len, counter.values()))
        named = _listed({f"{name}.counter.jsonl": len(texts) for name, texts in counter.items()})
        yield f"Texts that belong to no label, kept apart from the examples as counter-examples: {count:,} ({named})."


def _parts(task: Task) -> tuple[Examples, ...]:
    return task.train, task.valid, task.test


def _in_tasks(bank: TaskBank, counts: Mapping[str, int]) -> str:
    return f" ({_listed(counts)})" if len(bank) > 1 else ""


def _listed(counts: Mapping[str, int]) -> str:
    more = f" and {len(counts) - NAMED:,} more tasks" if len(counts) > NAMED else ""
    return ", ".join(f"{name} {count:,}" for name, count in list(counts.items())[:NAMED]) + more
