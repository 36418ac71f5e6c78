"""Folders of tasks -> banks: joined, made smaller, and with the family that every task is known to be of."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from manymetrics.collect.bank.folder import MANIFEST, read_manifest
from manymetrics.errors import InputError
from manymetrics.learn import past_tasks
from manymetrics.values import Examples, TaskBank


def read_banks(folders: Sequence[Path], *, train: int, valid: int) -> list[TaskBank]:
    """The past tasks of each folder, with so many texts of each at most."""
    if len({folder.resolve().name for folder in folders}) < len(folders):
        raise InputError("Two of the folders have one name, which their tasks would begin with. Rename one.")
    banks = [past_tasks(folder) for folder in folders]
    return [cap_tasks(bank, tasks=len(bank), train=train, valid=valid) for bank in banks]


def join_banks(folders: Sequence[Path], banks: Sequence[TaskBank]) -> TaskBank:
    """The tasks of all folders, with the same texts; of several folders, under the folders' names."""
    tasks = [
        replace(task, name=_joined_name(folder, task.name, folders))
        for folder, bank in zip(folders, banks, strict=True)
        for task in bank
    ]
    return TaskBank(tuple(sorted(tasks, key=lambda task: task.name)))


def known_families(folders: Sequence[Path], banks: Sequence[TaskBank], by: str) -> dict[str, str]:
    """The family of every task of the joined bank: what its manifest's entry `by` says.

    Where manifests have no such entry, the folder is a family of several folders; the tasks of a single one are grouped
    by what stands behind the last dot of their names, as Amazon's are by the stars that a review must have.
    """
    found: dict[str, str] = {}
    for folder, bank in zip(folders, banks, strict=True):
        named = named_families(folder, by)
        for name in bank.names:
            ending = name.rpartition(".")[2] if "." in name else ""
            family = named.get(name) or (folder.resolve().name if len(folders) > 1 else ending)
            if not family:
                raise InputError(f"{folder} names no {by} of {name!r}. Name one in its manifest.json.")
            found[_joined_name(folder, name, folders)] = family
    return found


def named_families(folder: Path, by: str) -> dict[str, str]:
    """Name -> family of the tasks for which the manifest of a folder names one; there may be none."""
    path = folder / MANIFEST
    entries = read_manifest(path) if path.is_file() else {}
    return {name: entry[by] for name, entry in entries.items() if isinstance(entry.get(by), str) and entry[by]}


def _joined_name(folder: Path, name: str, folders: Sequence[Path]) -> str:
    return f"{folder.resolve().name}-{name}" if len(folders) > 1 else name


def cap_tasks(bank: TaskBank, *, tasks: int, train: int, valid: int) -> TaskBank:
    """A smaller bank: so many tasks at most, drawn by their names, and so many train and valid texts of each.

    Every label keeps its share of a task's texts.
    """
    drawn = sorted(bank.names, key=_digest)[:tasks]
    capped = []
    for task in (task for task in bank if task.name in drawn):
        rng = np.random.default_rng(list(_digest(task.name)))
        few = _thin(task.train, train, 2, rng)  # before the valid texts: they draw from the same generator
        capped.append(replace(task, train=few, valid=_thin(task.valid, valid, 0, rng), test=Examples()))
    return TaskBank(tuple(capped))


def cap_tests(targets: TaskBank, *, test: int) -> TaskBank:
    """The same targets with so many test texts at most; every label keeps its share of them."""
    capped = (
        replace(task, test=_thin(task.test, test, 1, np.random.default_rng(list(_digest(task.name)))))
        for task in targets
    )
    return TaskBank(tuple(capped), targets.roles)


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def _thin(examples: Examples, most: int, least: int, rng: np.random.Generator) -> Examples:
    """A share of every label's examples, at least `least` of each where there are as many; rows keep their order."""
    if len(examples) <= most:
        return examples
    labels = np.array(examples.labels)
    kept: list[int] = []
    for label in sorted(set(examples.labels)):
        rows = rng.permutation(np.flatnonzero(labels == label))
        kept += rows[: max(least, round(most * len(rows) / len(labels)))].tolist()
    return examples.take(sorted(kept))
