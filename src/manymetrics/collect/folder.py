"""A folder -> TaskBank: which files make up which task, what each task is for, and what had to be left out.

    plain     <task>.{train,valid,test}.{tsv,csv,jsonl,parquet}      `dev` is another word for `valid`
    Amazon    <domain>.<t2|t4|t5>.{train,dev,test}                   workspace.filtered.list: the domains that count
                                                                     workspace.target.list: the domains of the targets
    Rasa      <task>.{yml,yaml,md,json}                              split 64 / 16 / 20 by a hash of its content

An optional manifest.json gives roles and sources, and may name families, which a report shows and learning never sees;
the source of an Amazon task is its domain. Names of files come from the listing of the folder and from nowhere else;
links that lead out of it are not followed. <task>.counter.jsonl holds texts that belong to no label of a task: it is
not a task, and is not read here. One bad task among many is left out and reported, and so are bad rows; a folder whose
roles or sources are unclear is refused, because a target learned from by mistake would spoil every result.
"""

import hashlib
import json
import os
import re
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from manymetrics.collect.episodes import split_examples
from manymetrics.collect.formats import read_logged
from manymetrics.collect.opening import leads_out, read_text, require_inside
from manymetrics.collect.rasa import is_rasa, read_rasa
from manymetrics.collect.rows import ReadLog
from manymetrics.errors import DataError, InputError, TaskFormatError, TaskLeftOut
from manymetrics.values import META_TRAIN, ROLES, TARGET, Examples, LeftOut, Task, TaskBank

MANIFEST = "manifest.json"
COUNTED_LIST = "workspace.filtered.list"
TARGET_LIST = "workspace.target.list"
HOW_TO_NAME = "Name the files <task>.train.tsv, <task>.valid.tsv and <task>.test.tsv (or .csv, .jsonl, .parquet)."
COPY = "Copy the file there, or remove the link."
LONGEST_SOURCE = 500  # characters
WHOLE = "whole"  # the part of a task that one file holds undivided

_PLAIN = re.compile(r"(?P<task>.+)\.(?P<part>train|valid|dev|test)\.(?:tsv|csv|jsonl|parquet)", re.DOTALL)
_AMAZON = re.compile(r"(?P<task>(?P<domain>[^.]+)\.t[245])\.(?P<part>train|dev|test)")

TaskFiles = dict[str, list[Path]]  # part (train, valid, test or whole) -> the files that claim to be it


@dataclass(frozen=True)
class Survey:
    """Which files of a folder make up which task, known from their names before any example is read."""

    folder: Path
    files: Mapping[str, TaskFiles]
    roles: Mapping[str, str]
    sources: Mapping[str, str]  # of the tasks that do not stand alone
    left_out: tuple[LeftOut, ...]  # by the folder's own rules
    problems: tuple[LeftOut, ...]  # names that cannot be read, or that no file belongs to
    other_files: tuple[str, ...]  # files that belong to no task


@dataclass(frozen=True)
class Reading:
    """All that was read of a folder; `problems` is the part of `left_out` that its owner should mend."""

    tasks: tuple[Task, ...]
    roles: Mapping[str, str]
    left_out: tuple[LeftOut, ...]
    problems: tuple[LeftOut, ...]
    other_files: tuple[str, ...]


def load_tasks(source: str | Path | Iterable[Task], *, strict: bool = False) -> TaskBank:
    """Read a folder of tasks, or gather tasks already made, into a bank.

    A task that cannot be used is left out, with a warning and an entry in `bank.left_out`, and so are rows with a
    blank text or label; with `strict` it is an error. When no task can be used it is always an error.
    """
    if not isinstance(source, str | os.PathLike):
        return _gather(source)
    reading = read_folder(Path(source), strict=strict)
    if not reading.tasks:
        raise TaskFormatError(_nothing_usable(Path(source), reading))
    for left in reading.problems:
        warnings.warn(f"{left.name!r} is left out. {left.reason}", TaskLeftOut, stacklevel=2)
    return TaskBank(reading.tasks, reading.roles, reading.left_out)


def read_folder(folder: Path, *, strict: bool = False) -> Reading:
    """Read every task of a folder that can be read, and keep account of the others."""
    survey = survey_folder(folder)
    if strict and survey.problems:
        raise TaskFormatError(survey.problems[0].reason)
    tasks, problems = [], list(survey.problems)
    for name, files in sorted(survey.files.items()):
        log = ReadLog()
        try:
            task = _read_task(name, files, survey.sources.get(name, ""), log)
            if strict and log.rows_left_out:
                raise TaskFormatError(" ".join(log.sentences()))
            tasks.append(task)
        except InputError as error:
            if strict:
                raise
            problems.append(LeftOut(name, str(error)))
        if log.rows_left_out:
            problems.append(LeftOut(f"{name} ({_rows(log.rows_left_out)})", " ".join(log.sentences())))
    names = {task.name for task in tasks}
    roles = {name: role for name, role in survey.roles.items() if name in names}
    return Reading(tuple(tasks), roles, survey.left_out + tuple(problems), tuple(problems), survey.other_files)


def survey_folder(folder: Path) -> Survey:
    """Sort the files of a folder into tasks, lists, manifest and other files."""
    paths = _listing(folder)
    files: dict[str, TaskFiles] = defaultdict(lambda: defaultdict(list))
    domains: dict[str, str] = {}  # Amazon task -> its domain
    other_files, problems = [], []
    for path in paths:
        if path.name in (MANIFEST, COUNTED_LIST, TARGET_LIST) and path.is_file():
            continue
        elsewhere = path.is_symlink() and leads_out(path, folder)
        task, part = _place(path, closed=elsewhere)
        if part is None:
            other_files.append(_printable(path.name) + ("/" if path.is_dir() else ""))
        elif task != (shown := _printable(task)):
            problems.append(LeftOut(shown, f"{folder}: the file name {shown!r} is not UTF-8. Rename the file."))
        elif elsewhere:
            problems.append(LeftOut(task, f"{path}: this link leads out of the folder and is not followed. {COPY}"))
        else:
            files[task][part].append(path)
            if amazon := _AMAZON.fullmatch(unicodedata.normalize("NFC", path.name)):
                domains[task] = amazon["domain"]
    survey = Survey(folder, files, {}, domains, (), tuple(problems), tuple(other_files))
    if domains:
        survey = _apply_lists(survey, domains)
    return _apply_manifest(survey) if (folder / MANIFEST).is_file() else survey


def _listing(folder: Path) -> list[Path]:
    try:
        if folder.is_file():
            raise TaskFormatError(f"{folder}: this is a file, expected a folder of tasks. Give {str(folder.parent)!r}.")
        paths = sorted(folder.iterdir())
    except FileNotFoundError:
        raise TaskFormatError(f"{folder}: there is no such folder. Check the path; you are in {Path.cwd()}.") from None
    except (OSError, ValueError) as error:
        raise TaskFormatError(f"{_printable(str(folder))}: cannot be listed ({error}). Check the path.") from None
    if not paths:
        raise TaskFormatError(f"{folder}: the folder is empty. {HOW_TO_NAME}")
    return paths


def _place(path: Path, *, closed: bool) -> tuple[str, str | None]:
    """The task a file belongs to, and which part of it the file is; None for another file.

    A closed file is known by its name alone.
    """
    name = unicodedata.normalize("NFC", path.name)
    if not path.is_file():
        return name, None
    if match := _PLAIN.fullmatch(name) or _AMAZON.fullmatch(name):
        return match["task"], "valid" if match["part"] == "dev" else match["part"]
    return (Path(name).stem, WHOLE) if not closed and is_rasa(path) else (name, None)


def belongs_to_a_bank(path: Path) -> bool:
    """Whether a file is named as the files of banks are: <task>.train.tsv, or the Amazon way."""
    return path.is_file() and any(pattern.fullmatch(path.name) for pattern in (_PLAIN, _AMAZON))


def _apply_lists(survey: Survey, domains: Mapping[str, str]) -> Survey:
    """Keep the Amazon domains that count, give the roles, and let `test` stand in for a missing `train`."""
    counted, targets = (_read_list(survey.folder, name) for name in (COUNTED_LIST, TARGET_LIST))
    files, roles, left_out = dict(survey.files), {}, []
    for task, domain in sorted(domains.items()):
        if domain not in counted:
            del files[task]
            left_out.append(LeftOut(task, f"The domain {domain!r} is not in {COUNTED_LIST}."))
            continue
        roles[task] = TARGET if domain in targets else META_TRAIN
        parts = files[task]
        if roles[task] == META_TRAIN and "train" not in parts and "test" in parts:
            files[task] = {"train": parts["test"], **{part: parts[part] for part in ("valid", WHOLE) if part in parts}}
            reason = f"{task}.train is missing; {task}.test serves as train, so the task has no test."
            left_out.append(LeftOut(f"{task} (train)", reason))
    problems = [
        LeftOut(domain, f"{survey.folder / COUNTED_LIST}: no file belongs to {domain!r}. Add its files, or remove it.")
        for domain in sorted(counted - set(domains.values()))
    ]
    return replace(
        survey, files=files, roles=roles, left_out=tuple(left_out), problems=survey.problems + tuple(problems)
    )


def _read_list(folder: Path, name: str) -> set[str]:
    if not (folder / name).is_file():
        raise TaskFormatError(
            f"{folder}: found files of the Amazon layout but no {name}, which says what counts. "
            "Add it, or name the files <task>.train.tsv."
        )
    return {line.strip() for line in read_text(require_inside(folder / name, folder)).split("\n")} - {""}


def _apply_manifest(survey: Survey) -> Survey:
    path = survey.folder / MANIFEST
    wanted = _read_manifest(path)
    known = set(survey.files) | {left.name for left in survey.left_out}
    problems = [
        LeftOut(name, f"{path}: no file belongs to the task {name!r}. Add its files, or remove the entry.")
        for name in wanted
        if name not in known
    ]
    roles = {name: entry["role"] for name, entry in wanted.items() if "role" in entry}
    sources = {name: entry["source"] for name, entry in wanted.items() if "source" in entry}
    return replace(
        survey,
        roles={**survey.roles, **roles},
        sources={**survey.sources, **sources},
        problems=survey.problems + tuple(problems),
    )


def read_families(folder: str | Path, *, by: str = "family") -> dict[str, str]:
    """Name -> family, of the tasks for which the manifest of a folder names one; learning never looks at it."""
    path = Path(folder) / MANIFEST
    if not path.is_file():
        raise TaskFormatError(f"{folder}: found no {MANIFEST}, where the {by} of tasks is named. Add one.")
    entries = [(_read_entry(entry, where=f"{path}, task {number}")[0], entry.get(by))
               for number, entry in enumerate(_manifest_entries(path), start=1)]  # fmt: skip
    found = {name: family for name, family in entries if isinstance(family, str) and family}
    if not found:
        raise TaskFormatError(f'{path}: names the {by} of no task. Give entries a "{by}".')
    return found


def _read_manifest(path: Path) -> dict[str, dict[str, str]]:
    """Name -> what the manifest gives of the task: its role, its source, both or neither."""
    found: dict[str, dict[str, str]] = {}
    for number, entry in enumerate(_manifest_entries(path), start=1):
        name, given = _read_entry(entry, where=f"{path}, task {number}")
        if name in found:
            raise TaskFormatError(f"{path}, task {number}: {name!r} is listed twice. Remove one of the entries.")
        found[name] = given
    return found


def _manifest_entries(path: Path) -> list[Any]:
    text = read_text(require_inside(path, path.parent))
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TaskFormatError(f"{path}: this is not JSON ({error}). Mend it, or remove it.") from None
    entries = content.get("tasks") if isinstance(content, dict) else content
    if not isinstance(entries, list):
        raise TaskFormatError(
            f'{path}: found no list of tasks. Write {{"tasks": [{{"name": "a", "role": "target"}}]}}.'
        )
    return entries


def _read_entry(entry: Any, *, where: str) -> tuple[str, dict[str, str]]:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        raise TaskFormatError(f'{where}: the entry has no name. Give each entry a "name".')
    role, source = entry.get("role"), entry.get("source")
    if role is not None and role not in ROLES:
        raise TaskFormatError(f"{where}: {name!r} has the role {role!r}. Use one of {', '.join(ROLES)}.")
    if source is not None and not is_source(source):
        raise TaskFormatError(
            f"{where}: the source of {name!r} is not a text of 1 to {LONGEST_SOURCE} characters. "
            "Write one, the same for all tasks that come from one place, or remove it."
        )
    given = {"role": role, "source": source and unicodedata.normalize("NFC", source)}
    return unicodedata.normalize("NFC", name), {key: value for key, value in given.items() if value is not None}


def is_source(value: object) -> bool:
    """Whether a manifest can give this as the source of a task."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_SOURCE:
        return False
    return value.encode("utf-8", "replace").decode() == value  # a lone surrogate is no character


def _read_task(name: str, files: TaskFiles, source: str, log: ReadLog) -> Task:
    claims = [paths for part, paths in files.items() if part != WHOLE]
    both = next((paths for paths in files.values() if len(paths) > 1), None)
    if both is None and WHOLE in files and claims:
        both = files[WHOLE] + claims[0]
    if both:
        raise TaskFormatError(f"{both[0]} and {both[1]} both claim to be task {name!r}. Remove or rename one of them.")
    if WHOLE in files:
        return split_whole(name, read_rasa(files[WHOLE][0], log), source=source)
    if "train" not in files:
        found = claims[0][0]
        raise TaskFormatError(f"{found}: task {name!r} has no train file beside it. Add one, or remove this file.")
    parts = {part: read_logged(paths[0], log) for part, paths in files.items()}
    return Task(name, **parts, source=source)


def split_whole(name: str, whole: Examples, *, source: str = "") -> Task:
    """A task from examples without splits: 64 / 16 / 20, drawn by a hash of their content."""
    if not len(whole):
        return Task(name, whole, source=source)
    content = hashlib.sha256("\0".join([*whole.texts, "", *whole.labels]).encode())
    split = split_examples(whole, rng=np.random.default_rng(int.from_bytes(content.digest())))
    return Task(name, split.train, split.valid, split.test, source)


def _gather(source: Iterable[Task]) -> TaskBank:
    if isinstance(source, TaskBank):
        return source
    try:
        tasks = tuple(source)
    except TypeError:
        raise DataError(f"Found {type(source).__name__}, expected a folder or a list of tasks. Give one.") from None
    if wrong := [task for task in tasks if not isinstance(task, Task)]:
        raise DataError(f"Found {type(wrong[0]).__name__} in a list of tasks. Make each a Task(name, train).")
    if not tasks:
        raise DataError("Found an empty list of tasks. Give at least one Task(name, train).")
    return TaskBank(tasks)


def _nothing_usable(folder: Path, reading: Reading) -> str:
    if not reading.left_out:
        shown = ", ".join(reading.other_files[:3]) + (", ..." if len(reading.other_files) > 3 else "")
        return f"{folder}: found no task file, only {shown or MANIFEST}. {HOW_TO_NAME}"
    reasons = (reading.problems or reading.left_out)[:3]
    more = len(reading.problems or reading.left_out) - len(reasons)
    listed = " ".join(left.reason for left in reasons)
    return f"{folder}: none of its tasks can be used. {listed}" + (f" And {more} more." if more else "")


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _printable(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
