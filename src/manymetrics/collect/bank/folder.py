"""A folder -> TaskBank: which files make up which task, what each task is for, and what had to be left out.

    plain     <task>.{train,valid,test}.{tsv,csv,jsonl,parquet}      `dev` is a synonym of `valid`
    Amazon    <domain>.<t2|t4|t5>.{train,dev,test}                   workspace.filtered.list: the domains that count
                                                                     workspace.target.list: the domains of the targets

An optional manifest.json gives the role, the source and the family of tasks; the source of an Amazon task is its
domain. Learning never uses a family. A manifest that is unclear is refused, because a target that is learned from by
mistake would invalidate all results.

Only files of the folder itself are read, and links that lead out of it are not followed. <task>.counter.jsonl holds
texts that belong to no label of a task; it is not read here. A task that cannot be used is left out and reported, and
so are unusable rows.
"""

import re
import unicodedata
import warnings
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manymetrics.collect.readers.open import leads_out, lookup, read_document, read_json, require_inside
from manymetrics.collect.readers.records import ReadLog
from manymetrics.collect.readers.tables import read_file
from manymetrics.errors import InputError, TaskFormatError, TaskSkipped, list_first
from manymetrics.values import META_TRAIN, ROLES, TARGET, SkippedTask, Task, TaskBank

MANIFEST = "manifest.json"
COUNTED_LIST = "workspace.filtered.list"
TARGET_LIST = "workspace.target.list"
COUNTER_ENDING = ".counter.jsonl"
HOW_TO_NAME = "Name the files <task>.train.tsv, <task>.valid.tsv and <task>.test.tsv (or .csv, .jsonl, .parquet)."
REASONS_LISTED = 3  # in the message that nothing can be used

_PLAIN = re.compile(r"(?P<task>.+)\.(?P<part>train|valid|dev|test)\.(?:tsv|csv|jsonl|parquet)", re.DOTALL)
_AMAZON = re.compile(r"(?P<task>(?P<domain>[^.]+)\.t[245])\.(?P<part>train|dev|test)")

TaskFiles = dict[str, list[Path]]  # part (train, valid or test) -> the files named as that part


@dataclass
class BankFolder:
    """A folder: which files make up which task, known from their names, and the tasks once they are read."""

    path: Path
    files: dict[str, TaskFiles] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    roles: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)  # of the tasks that share one
    other_files: list[str] = field(default_factory=list)  # files that belong to no task
    excluded: list[SkippedTask] = field(default_factory=list)  # by the rules of the Amazon layout
    problems: list[SkippedTask] = field(default_factory=list)  # what the owner of the folder should correct
    tasks: list[Task] = field(default_factory=list)

    @property
    def left_out(self) -> tuple[SkippedTask, ...]:
        """All that is not used."""
        return (*self.excluded, *self.problems)


def load_tasks(path: str | Path, *, strict: bool = False) -> TaskBank:
    """Read a folder of tasks into a bank.

    A task that cannot be used is left out, with a warning and an entry in `bank.left_out`, and so are rows with a
    blank text or label; with `strict` it is an error. If no task can be used it is always an error.
    """
    folder = read_folder(Path(path))
    if strict and folder.problems:
        raise TaskFormatError(folder.problems[0].reason)
    if not folder.tasks:
        raise TaskFormatError(_nothing_usable(folder))
    for problem in folder.problems:
        warnings.warn(f"{problem.name!r} is left out. {problem.reason}", TaskSkipped, stacklevel=2)
    return TaskBank(tuple(folder.tasks), folder.roles, folder.left_out)


def read_folder(path: Path) -> BankFolder:
    """Read all tasks of a folder that can be read; the others are listed in its `problems`."""
    folder = list_folder(path)
    for name, files in sorted(folder.files.items()):
        log = ReadLog()
        try:
            folder.tasks.append(_read_task(name, files, folder.sources.get(name, ""), log))
        except InputError as error:
            folder.problems.append(SkippedTask(name, str(error)))
        if log.skipped:
            folder.problems.append(SkippedTask(f"{name} ({log.rows})", log.message()))
    names = {task.name for task in folder.tasks}
    folder.roles = {name: role for name, role in folder.roles.items() if name in names}
    return folder


def list_folder(path: Path) -> BankFolder:
    """Sort the files of a folder into tasks and other files; no example is read."""
    folder = BankFolder(path)
    for file in _list_files(path):
        name = unicodedata.normalize("NFC", file.name)
        if file.is_file() and (match := _PLAIN.fullmatch(name) or _AMAZON.fullmatch(name)):
            _add_file(folder, file, match)
        elif name not in (MANIFEST, COUNTED_LIST, TARGET_LIST):
            folder.other_files.append(_printable(name) + ("/" if file.is_dir() else ""))
    if folder.sources:
        _apply_amazon_lists(folder)
    if (path / MANIFEST).is_file():
        _apply_manifest(folder)
    return folder


def belongs_to_a_bank(path: Path) -> bool:
    """Whether a file has a name as in a bank: <task>.train.tsv, or that of the Amazon layout."""
    return path.is_file() and any(pattern.fullmatch(path.name) for pattern in (_PLAIN, _AMAZON))


def read_manifest(path: Path) -> dict[str, dict[str, Any]]:
    """Name of each task -> its entry, in which role and source are known to be usable."""
    content = read_json(require_inside(path, path.parent))
    entries = content if isinstance(content, list) else lookup(content, "tasks")
    if not isinstance(entries, list):
        raise TaskFormatError(f'{path}: found no list of tasks. Write {{"tasks": [{{"name": "a"}}]}}.')
    tasks: dict[str, dict[str, Any]] = {}
    for number, entry in enumerate(entries, start=1):
        name = lookup(entry, "name")
        name = unicodedata.normalize("NFC", name) if isinstance(name, str) else ""
        if problem := _problem_of_entry(name, entry, tasks):
            raise TaskFormatError(f"{path}, task {number}: {problem}")
        tasks[name] = entry
    return tasks


def _list_files(folder: Path) -> list[Path]:
    try:
        paths = sorted(folder.iterdir())
    except (OSError, ValueError) as error:
        reason, cure = getattr(error, "strerror", None) or error, f"Give a folder of tasks; you are in {Path.cwd()}."
        raise TaskFormatError(f"{_printable(str(folder))}: cannot be listed ({reason}). {cure}") from None
    if not paths:
        raise TaskFormatError(f"{folder}: the folder is empty. {HOW_TO_NAME}")
    return paths


def _add_file(folder: BankFolder, file: Path, match: re.Match[str]) -> None:
    """Add a file to its task, unless its name or a link forbids it."""
    task, shown = match["task"], _printable(match["task"])
    if task != shown:
        reason = f"{folder.path}: the file name {shown!r} is not UTF-8. Rename the file."
        folder.problems.append(SkippedTask(shown, reason))
    elif leads_out(file, folder.path):
        reason = "this link leads out of the folder and is not followed. Copy the file there, or remove the link."
        folder.problems.append(SkippedTask(task, f"{file}: {reason}"))
    else:
        folder.files[task]["valid" if match["part"] == "dev" else match["part"]].append(file)
        if domain := match.groupdict().get("domain"):
            folder.sources[task] = domain


def _apply_amazon_lists(folder: BankFolder) -> None:
    """Exclude domains that do not count, set roles, and use `test` where `train` is missing."""
    counted, targets = (_read_list(folder.path, name) for name in (COUNTED_LIST, TARGET_LIST))
    for task, domain in sorted(folder.sources.items()):
        if domain not in counted:
            del folder.files[task]
            folder.excluded.append(SkippedTask(task, f"The domain {domain!r} is not in {COUNTED_LIST}."))
            continue
        folder.roles[task] = TARGET if domain in targets else META_TRAIN
        files = folder.files[task]
        if domain not in targets and "train" not in files and "test" in files:
            files["train"] = files.pop("test")
            reason = f"{task}.train is missing; {task}.test is used as train, so the task has no test."
            folder.excluded.append(SkippedTask(f"{task} (train)", reason))


def _read_list(folder: Path, name: str) -> set[str]:
    if not (folder / name).is_file():
        raise TaskFormatError(f"{folder}: files of the Amazon layout need {name}. Add it, or rename the files.")
    return {line.strip() for line in read_document(require_inside(folder / name, folder)).split("\n")} - {""}


def _apply_manifest(folder: BankFolder) -> None:
    path = folder.path / MANIFEST
    known = set(folder.files) | {left_out.name for left_out in folder.excluded}
    for name, entry in read_manifest(path).items():
        if name not in known:
            reason = f"{path}: no file belongs to the task {name!r}. Add its files, or remove the entry."
            folder.problems.append(SkippedTask(name, reason))
        if entry.get("role") is not None:
            folder.roles[name] = entry["role"]
        if entry.get("source") is not None:
            folder.sources[name] = unicodedata.normalize("NFC", entry["source"])


def _problem_of_entry(name: str, entry: Any, tasks: dict[str, Any]) -> str | None:
    role, source = lookup(entry, "role"), lookup(entry, "source")
    if not name:
        return 'the entry has no name. Give each entry a "name".'
    if role is not None and role not in ROLES:
        return f"{name!r} has the role {role!r}. Use one of {', '.join(ROLES)}."
    if source is not None and (not isinstance(source, str) or source != source.encode("utf-8", "replace").decode()):
        return f"the source of {name!r} is not a text. Write it as a text."
    return f"{name!r} is listed twice. Remove one of the entries." if name in tasks else None


def _read_task(name: str, files: TaskFiles, source: str, log: ReadLog) -> Task:
    for first, *others in files.values():
        if others:
            raise TaskFormatError(f"{first} and {others[0]} both claim to be task {name!r}. Rename one of them.")
    if "train" not in files:
        first = next(iter(files.values()))[0]
        raise TaskFormatError(f"{first}: task {name!r} has no train file. Add one, or remove this file.")
    return Task(name, **{part: read_file(paths[0], log) for part, paths in files.items()}, source=source)


def _nothing_usable(folder: BankFolder) -> str:
    if not folder.left_out:
        names = list_first(folder.other_files, more=", ...", limit=REASONS_LISTED) or MANIFEST
        return f"{folder.path}: found no task file, only {names}. {HOW_TO_NAME}"
    reasons = [left_out.reason for left_out in folder.problems or folder.excluded]
    listed = list_first(reasons, " ", " And {:,} more.", limit=REASONS_LISTED)
    return f"{folder.path}: none of its tasks can be used. {listed}"


def _printable(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
