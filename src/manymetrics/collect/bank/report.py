"""A folder -> BankReport: sizes, balance, copies of texts, and what cannot be used, before anything is learned."""

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from manymetrics.collect.bank.folder import COUNTER_ENDING, read_folder
from manymetrics.collect.bank.splits import SimilarLabels, describe_similar_labels, normal_form, similar_labels
from manymetrics.values import META_TRAIN, SkippedTask, Task

REPORT_FORMAT = 1


@dataclass(frozen=True)
class TaskReport:
    """One task in numbers; copies count as the same text."""

    name: str
    role: str
    labels: int
    train: int
    valid: int
    test: int
    largest_share: float  # of the most frequent label in train
    duplicates: int  # rows of train whose text an earlier row of train has
    shared: int  # texts in more than one of train, valid and test
    contradictions: int  # texts with more than one label
    similar_labels: tuple[SimilarLabels, ...] = ()  # groups of labels that differ only in case or white space


@dataclass(frozen=True)
class BankReport:
    """A folder in numbers, task by task, with all that is not used of it."""

    path: str
    tasks: tuple[TaskReport, ...]
    left_out: tuple[SkippedTask, ...]
    not_tasks: tuple[str, ...]  # files that are not task files
    counter_files: tuple[str, ...] = ()  # files of texts that belong to no label of a task

    @property
    def label_problems(self) -> str:
        """A sentence on labels that differ only in case or white space; empty if there are none."""
        return describe_similar_labels({task.name: task.similar_labels for task in self.tasks})

    def as_dict(self) -> dict[str, Any]:
        """The report as plain lists and dictionaries, ready for JSON; `format` is the version of this layout."""
        return {"format": REPORT_FORMAT, **msgspec.json.decode(msgspec.json.encode(self))}


def inspect_bank(path: str | Path) -> BankReport:
    """Report on a folder of tasks, unusable ones included; only a folder that cannot be listed is an error."""
    folder = read_folder(Path(path))
    tasks = tuple(_report(task, folder.roles.get(task.name, META_TRAIN)) for task in folder.tasks)
    counters = {f"{task.name}{COUNTER_ENDING}" for task in tasks} & {*folder.other_files}
    not_tasks = tuple(name for name in folder.other_files if name not in counters)
    return BankReport(str(path), tasks, folder.left_out, not_tasks, tuple(sorted(counters)))


def _report(task: Task, role: str) -> TaskReport:
    forms = [[normal_form(text) for text in part.texts] for part in task.splits]
    n_parts = Counter(form for of_part in forms for form in set(of_part))
    labels = chain(*(part.labels for part in task.splits))
    n_labels = Counter(form for form, _ in set(zip(chain(*forms), labels, strict=True)))
    train, valid, test = map(len, task.splits)
    return TaskReport(
        task.name, role, len(task.labels), train, valid, test,
        largest_share=max(Counter(task.train.labels).values()) / train,
        duplicates=len(forms[0]) - len(set(forms[0])),
        shared=sum(count > 1 for count in n_parts.values()),
        contradictions=sum(count > 1 for count in n_labels.values()),
        similar_labels=similar_labels(*task.splits),
    )  # fmt: skip
