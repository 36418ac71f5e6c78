"""TaskBank -> files: a bank folder, tasks added to one, or a stream of JSON lines."""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from glob import escape
from itertools import chain
from pathlib import Path

from manymetrics.collect.bank.folder import COUNTER_ENDING, MANIFEST, list_folder
from manymetrics.errors import DataError, InputError
from manymetrics.store.files import raise_os_error
from manymetrics.values import Examples, Task, TaskBank

MAX_NAME_BYTES = 200  # of a task: with what is added to it while a file is written, a file name may have 255

_FILE_NAME = re.compile(r"[^./\\][^/\\]*")


def write_bank(bank: TaskBank, folder: str | Path) -> None:
    """Write a bank as a folder that `load_tasks` reads back: one JSONL file per split; roles and sources in a manifest.

    A split without examples has no file.
    """
    entries = [{"name": task.name, "role": bank.role(task.name), "source": task.source} for task in bank]
    _write(Path(folder), {**_files_of(bank), MANIFEST: json.dumps({"tasks": entries}, indent=1) + "\n"})


def add_to_bank(
    bank: TaskBank,
    folder: str | Path,
    *,
    counter_examples: Mapping[str, Sequence[str]] | None = None,
    replace: bool = False,
) -> tuple[Path, ...]:
    """Write tasks as JSONL files into a bank, or into a new folder; returns the files written.

    A task whose name the folder already has is refused before anything is written, unless its files are the same: then
    those that are missing are written. With `replace`, all files of such a task are replaced. Roles and sources are not
    written. Texts that belong to no label of a task go into <task>.counter.jsonl, which is no part of the bank.
    """
    folder, files = Path(folder), _files_of(bank)
    for name, texts in (counter_examples or {}).items():
        files[f"{_file_name(bank[name])}{COUNTER_ENDING}"] = "".join(_json_line(text=text) for text in texts)
    with raise_os_error("read", folder, "Give another folder."):
        for name in files:
            _remove(folder.glob(f".{escape(name)}.*.tmp"))  # of a process that was killed
        existing = _tasks_in(folder, files)
        if not replace:
            return _write(folder, _missing_files(folder, files, existing))
        counters = [path for name in existing if (path := folder / f"{name}{COUNTER_ENDING}").is_file()]
        return _write(folder, files, replaced=[*chain(*existing.values()), *counters])


def export_lines(bank: TaskBank) -> Iterator[str]:
    """Every example of a bank as a line of JSON with its text, label, task and split; `import_tasks` reads it back."""
    for task, split, examples in _splits(bank):
        yield from _json_lines(examples, task=task.name, split=split)


def as_file_name(name: str) -> str:
    """A task's name with characters that file names should not hold replaced by dashes; may be empty.

    A name that is too long for a file is cut, and a hash is added.
    """
    plain = re.sub(r"[^\w.+@-]+", "-", name).strip("-._+@")
    encoded = plain.encode("utf-8", "replace")
    if len(encoded) <= MAX_NAME_BYTES:
        return plain
    digest = hashlib.sha256(encoded).hexdigest()[:8]
    return encoded[: MAX_NAME_BYTES - 9].decode("utf-8", "ignore").rstrip("-._+@") + f"-{digest}"


def _missing_files(folder: Path, files: Mapping[str, str], existing: Mapping[str, list[Path]]) -> dict[str, str]:
    """The files that the folder does not have; others in their place are refused.

    Files with the same content are those of an import that was interrupted.
    """
    present = {name for name in files if (path := folder / name).is_file() and not path.is_symlink()}
    same = {name for name in present if (folder / name).read_bytes() == files[name].encode()}
    for name, paths in existing.items():
        if not {path.name for path in paths} <= same:
            raise InputError(f"{folder} has a task {name!r} already. Add --replace, or give the task another name.")
    for name in files:
        if name not in same and (folder / name).exists():
            raise InputError(f"{folder} has a file {name!r} already. Move it away, or give another folder.")
    return {name: content for name, content in files.items() if name not in same}


def _tasks_in(folder: Path, files: Iterable[str]) -> dict[str, list[Path]]:
    """The tasks of a folder whose names these files have, train files first; a folder without any task is refused."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return {}
    tasks = list_folder(folder).files
    if not tasks:
        raise InputError(f"{folder} is there already and is not a bank. Give a new folder.")
    names = {name.rsplit(".", 2)[0].casefold() for name in files}
    return {
        name: [path for part in sorted(parts, key=lambda part: part != "train") for path in parts[part]]
        for name, parts in tasks.items()
        if name.casefold() in names
    }


def _splits(bank: TaskBank) -> Iterator[tuple[Task, str, Examples]]:
    splits = ((task, split, getattr(task, split)) for task in bank for split in ("train", "valid", "test"))
    return ((task, split, examples) for task, split, examples in splits if len(examples))


def _files_of(bank: TaskBank) -> dict[str, str]:
    return {
        f"{_file_name(task)}.{split}.jsonl": "".join(_json_lines(examples)) for task, split, examples in _splits(bank)
    }


def _file_name(task: Task) -> str:
    name, cure = task.name, f"Use letters, digits and dashes, at most {MAX_NAME_BYTES} bytes."
    if not (_FILE_NAME.fullmatch(name) and name.isprintable() and len(name.encode()) <= MAX_NAME_BYTES):
        raise DataError(f"The task's name {name[:40]!r} cannot be the name of a file. {cure}")
    return name


def _json_lines(examples: Examples, **more: str) -> Iterator[str]:
    for text, label in zip(examples.texts, examples.labels, strict=True):
        yield _json_line(text=text, label=label, **more)


def _json_line(**fields: str) -> str:
    return json.dumps(fields, ensure_ascii=False) + "\n"


def _write(folder: Path, files: dict[str, str], *, replaced: Iterable[Path] = ()) -> tuple[Path, ...]:
    """Write all files under temporary names, then rename them: a full disk leaves the folder as it was.

    The manifest is renamed first and a task's train file last: a task without one is not read, and none without its
    role. `replaced` files, a task's train file first, are moved aside once all new ones are written.
    """
    temporary = {folder / name: folder / f".{name}.{os.getpid()}.tmp" for name in files}
    aside = {path: folder / f".{path.name}.{os.getpid()}.old" for path in replaced}
    created: list[Path] = []
    with raise_os_error("write to", folder, "Make room there."):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path, content in zip(temporary.values(), files.values(), strict=True):
                path.write_text(content, encoding="utf-8", newline="\n")
            for path, old in aside.items():
                path.replace(old)
            for path in sorted(temporary, key=lambda path: (path.name != MANIFEST, ".train." in path.name)):
                created += [] if path.exists() else [path]
                temporary[path].replace(path)
        except BaseException:
            _remove(created)
            for path, old in aside.items():
                with contextlib.suppress(OSError):  # not moved yet, or it stays where it is
                    old.replace(path)
            raise
        finally:
            _remove(temporary.values())
        _remove(aside.values())
    return tuple(temporary)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
