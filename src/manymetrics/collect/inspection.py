"""A folder -> BankReport: what is in it, what is odd about it, and what cannot be used, before anything is learned.

Texts that are the same but for case, spaces and punctuation at the ends count as the same.
"""

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from manymetrics.collect.diversity import Diversity, measure_diversity
from manymetrics.collect.duplicates import normal_form
from manymetrics.collect.folder import read_folder
from manymetrics.values import META_TRAIN, LeftOut, Task

REPORT_FORMAT = 1


@dataclass(frozen=True)
class TaskReport:
    """One task in numbers."""

    name: str
    role: str
    labels: int
    train: int
    valid: int
    test: int
    largest_share: float  # of the commonest label in train
    duplicates: int  # rows of train whose text an earlier row of train has already
    shared: int  # texts found in more than one of train, valid and test
    contradictions: int  # texts found under more than one label


@dataclass(frozen=True)
class BankReport:
    """A folder in numbers, task by task, with all that is not used of it."""

    path: str
    tasks: tuple[TaskReport, ...]
    left_out: tuple[LeftOut, ...]
    not_tasks: tuple[str, ...]  # files that are not task files
    diversity: Diversity | None = None  # of the tasks to learn from, if there are any

    def as_dict(self) -> dict[str, Any]:
        """The report as plain lists and dictionaries, ready for JSON; `format` is the version of its shape."""
        return {
            "format": REPORT_FORMAT,
            "path": self.path,
            "tasks": [asdict(task) for task in self.tasks],
            "left_out": [asdict(left) for left in self.left_out],
            "not_tasks": list(self.not_tasks),
            "diversity": None if self.diversity is None else self.diversity.as_dict(),
        }


def inspect_bank(path: str | Path) -> BankReport:
    """Report on a folder of tasks; bad tasks are reported too, and only a folder that cannot be listed is an error."""
    reading = read_folder(Path(path))
    tasks = tuple(_report(task, reading.roles.get(task.name, META_TRAIN)) for task in reading.tasks)
    past = [task for task in reading.tasks if reading.roles.get(task.name, META_TRAIN) == META_TRAIN]
    diversity = measure_diversity(past) if past else None
    return BankReport(str(path), tasks, reading.left_out, reading.other_files, diversity)


def _report(task: Task, role: str) -> TaskReport:
    parts = (task.train, task.valid, task.test)
    forms = [[normal_form(text) for text in part.texts] for part in parts]
    found_in: Counter[str] = Counter(form for of_part in forms for form in set(of_part))
    labels_of: defaultdict[str, set[str]] = defaultdict(set)
    for part, of_part in zip(parts, forms, strict=True):
        for form, label in zip(of_part, part.labels, strict=True):
            labels_of[form].add(label)
    return TaskReport(
        name=task.name,
        role=role,
        labels=len(task.labels),
        train=len(task.train),
        valid=len(task.valid),
        test=len(task.test),
        largest_share=max(Counter(task.train.labels).values()) / len(task.train),
        duplicates=len(forms[0]) - len(set(forms[0])),
        shared=sum(parts_holding > 1 for parts_holding in found_in.values()),
        contradictions=sum(len(labels) > 1 for labels in labels_of.values()),
    )
