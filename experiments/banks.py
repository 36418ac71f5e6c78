"""Folders of tasks -> one bank, and the family that every task of it is known to be of."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from experiments.bench import cap_tasks
from manymetrics.errors import InputError
from manymetrics.learn import past_tasks
from manymetrics.values import TaskBank


def read_banks(folders: Sequence[Path], *, train: int, valid: int) -> list[TaskBank]:
    """The past tasks of each folder, with so many texts of each at most."""
    if len({folder.resolve().name for folder in folders}) < len(folders):
        raise InputError("Two of the folders have one name, which their tasks would begin with. Rename one.")
    banks = [past_tasks(folder) for folder in folders]
    return [cap_tasks(bank, tasks=len(bank), train=train, valid=valid) for bank in banks]


def join_banks(folders: Sequence[Path], banks: Sequence[TaskBank]) -> TaskBank:
    """The tasks of all folders, with the same texts; of several folders, under the folders' names."""
    tasks = [
        replace(task, name=_called(folder, task.name)) if len(folders) > 1 else task
        for folder, bank in zip(folders, banks, strict=True)
        for task in bank
    ]
    return TaskBank(tuple(sorted(tasks, key=lambda task: task.name)))


def known_families(folders: Sequence[Path], bank: TaskBank, by: str) -> dict[str, str]:
    """The family of every task: what its manifest's entry `by` says.

    Where manifests have no such entry, the folder is a family of several folders; the tasks of a single one are parted
    by what stands behind the last dot of their names, as Amazon's are by the stars that a review must have.
    """
    found: dict[str, str] = {}
    for folder in folders:
        path = folder / "manifest.json"
        manifest = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
        entries = manifest["tasks"] if isinstance(manifest, dict) else manifest
        told = {entry["name"]: str(entry[by]) for entry in entries if by in entry}
        for task in past_tasks(folder):
            name = _called(folder, task.name) if len(folders) > 1 else task.name
            family = told.get(task.name) or (folder.resolve().name if len(folders) > 1 else _ending(task.name))
            if not family:
                raise InputError(f"{folder} names no {by} of {task.name!r}. Name one in its manifest.json.")
            found[name] = family
    return {name: found[name] for name in bank.names}


def _called(folder: Path, name: str) -> str:
    return f"{folder.resolve().name}-{name}"


def _ending(name: str) -> str:
    return name.rpartition(".")[2] if "." in name else ""
