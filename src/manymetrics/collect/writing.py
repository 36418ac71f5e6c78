"""TaskBank -> files: a bank folder, tasks added to one, or a stream of JSON lines."""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from manymetrics.collect.folder import LONGEST_SOURCE, MANIFEST, is_source, survey_folder
from manymetrics.collect.formats import LABEL_NAMES, TEXT_NAMES
from manymetrics.errors import DataError, EnvironmentProblem, InputError
from manymetrics.values import Examples, Task, TaskBank

HEADERS = frozenset((text, label) for text in TEXT_NAMES for label in LABEL_NAMES)  # first lines that are no example
SPLITS = ("train", "valid", "test")
LONGEST_NAME = 200  # bytes of a task's name: with what is added to it while a file is written, a name may have 255

_UNFINISHED = re.compile(r"\.(?P<name>.+)\.\d+\.tmp", re.DOTALL)
_FILE_NAME = re.compile(r"[^./\\][^/\\]*")


def write_bank(bank: TaskBank, folder: str | Path, *, families: Mapping[str, str] | None = None) -> None:
    """Write a bank as a folder that `load_tasks` reads back: one TSV file per split; roles and sources in a manifest.

    A split without examples has no file. A tab or a line break inside a text would come back as something else, so it
    is refused before anything is written. `families` names the family of tasks, for whoever looks at what was learned.
    """
    files = {
        f"{_file_name(task)}.{split}.tsv": _tsv(task.name, split, examples)
        for task in bank
        for split, examples in _splits(task)
    }
    named = {name: {"family": family} for name, family in (families or {}).items()}
    manifest = {"tasks": [{**_entry(task, bank.role(task.name)), **named.get(task.name, {})} for task in bank]}
    _write(Path(folder), {**files, MANIFEST: json.dumps(manifest, indent=1) + "\n"})


def add_to_bank(
    bank: TaskBank, folder: str | Path, *, counter_examples: Mapping[str, Sequence[str]] | None = None
) -> tuple[Path, ...]:
    """Write tasks as JSONL files into a folder that is a bank already, or becomes one; gives the files written.

    A task whose name the folder has already is refused before anything is written, unless it is this one, left there by
    a call that was killed: then the rest is written. Roles and sources are not written.
    Texts that belong to no label of a task go into <task>.counter.jsonl, which is no part of the bank.
    """
    folder = Path(folder)
    files = {
        f"{_file_name(task)}.{split}.jsonl": "".join(_json_lines(examples, {}))
        for task in bank
        for split, examples in _splits(task)
    }
    for name, texts in (counter_examples or {}).items():
        lines = (json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts)
        files[f"{_file_name(bank[name])}.counter.jsonl"] = "".join(lines)
    try:
        unfinished = _left_overs(folder, files)
        done = _done_already(folder, files, unfinished)
        written = _write(folder, {name: content for name, content in files.items() if name not in done})
        _remove(unfinished)
    except OSError as problem:
        raise EnvironmentProblem(
            f"Could not read {folder}: {problem.strerror or problem}. Mend it, or give another folder."
        ) from problem
    return written


def _done_already(folder: Path, files: Mapping[str, str], unfinished: Sequence[Path]) -> set[str]:
    """The files that an import of the same has written before it was killed; else what is in their place is refused."""
    found = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    found -= {path.name for path in unfinished}
    same = {name for name, content in files.items() if name in found and _holds(folder / name, content)}
    if len(same) == len(files):  # it was killed when all was written
        _remove(unfinished)
    done = same if unfinished and len(same) < len(files) else set()
    if folder.is_dir() and found <= done:
        return done
    tasks = survey_folder(folder).files if folder.exists() else {}
    if folder.exists() and not tasks:
        raise InputError(f"{folder} is there already and is not a bank. Give a new folder.")
    there = {name.casefold(): {path.name for paths in parts.values() for path in paths}
             for name, parts in tasks.items()}  # fmt: skip
    for name in dict.fromkeys(name.rsplit(".", 2)[0] for name in files):
        if not there.get(name.casefold(), set()) <= done:
            raise InputError(f"{folder} has a task {name!r} already. Give the task another name, or another folder.")
    if both := [name for name in files if name not in done and (folder / name).exists()]:
        raise InputError(f"{folder} has a file {both[0]!r} already. Move it away, or give another folder.")
    return done


def _holds(path: Path, content: str) -> bool:
    raw = content.encode()
    return path.is_file() and not path.is_symlink() and path.stat().st_size == len(raw) and path.read_bytes() == raw


def export_lines(bank: TaskBank) -> Iterator[str]:
    """Every example of a bank as a line of JSON with its text, label, task and split; `import_tasks` reads it back."""
    for task in bank:
        for split, examples in _splits(task):
            yield from _json_lines(examples, {"task": task.name, "split": split})


def as_file_name(name: str) -> str:
    """A task's name with all that file names should not hold replaced by dashes; may be empty.

    Of a name that is too long for a file the beginning stays, and a hash that tells it from others which begin alike.
    """
    plain = re.sub(r"[^\w.+@-]+", "-", name).strip("-._+@")
    if len(plain.encode("utf-8", "replace")) <= LONGEST_NAME:
        return plain
    digest = hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()[:8]
    return plain.encode("utf-8", "replace")[: LONGEST_NAME - 9].decode("utf-8", "ignore").rstrip("-._+@") + f"-{digest}"


def _entry(task: Task, role: str) -> dict[str, str]:
    entry = {"name": task.name, "role": role}
    if task.source == task.name:
        return entry
    if not is_source(task.source):
        raise DataError(
            f"The source of task {task.name!r} is not a text of 1 to {LONGEST_SOURCE} characters. Shorten it."
        )
    return {**entry, "source": task.source}


def _splits(task: Task) -> Iterator[tuple[str, Examples]]:
    return ((split, examples) for split in SPLITS if len(examples := getattr(task, split)))


def _file_name(task: Task) -> str:
    if not (_FILE_NAME.fullmatch(task.name) and task.name.isprintable()):
        raise DataError(f"The task's name {task.name!r} cannot be the name of a file. Use letters, digits and dashes.")
    if len(os.fsencode(task.name)) > LONGEST_NAME:
        raise DataError(f"The task's name {task.name[:40]!r}... has more than {LONGEST_NAME} bytes. Shorten it.")
    return task.name


def _tsv(name: str, split: str, examples: Examples) -> str:
    if (examples.texts[0].strip().casefold(), examples.labels[0].strip().casefold()) in HEADERS:
        raise DataError(
            f"Task {name!r} has the text {examples.texts[0]!r} with the label {examples.labels[0]!r} first in {split}, "
            "which would be read as a header. Let another example come first."
        )
    for row, (text, label) in enumerate(zip(examples.texts, examples.labels, strict=True)):
        if any("\t" in part or len(part.splitlines()) > 1 or part.endswith(("\n", "\r")) for part in (text, label)):
            raise DataError(
                f"Task {name!r} has a tab or a line break in example {row} of {split}. Replace it by a space: "
                f"a TSV file cannot hold it."
            )
    return "".join(f"{text}\t{label}\n" for text, label in zip(examples.texts, examples.labels, strict=True))


def _json_lines(examples: Examples, more: dict[str, str]) -> Iterator[str]:
    for text, label in zip(examples.texts, examples.labels, strict=True):
        yield json.dumps({"text": text, "label": label, **more}, ensure_ascii=False) + "\n"


def _write(folder: Path, files: dict[str, str]) -> tuple[Path, ...]:
    """Write all files beside their places, then give them their names: a full disk leaves the folder as it was.

    The manifest comes first and a task's train file last: a task without one is not read, and none without its role.
    """
    beside = {folder / name: folder / f".{name}.{os.getpid()}.tmp" for name in files}
    placed: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for unfinished, content in zip(beside.values(), files.values(), strict=True):
            unfinished.write_text(content, encoding="utf-8", newline="\n")
        for path in sorted(beside, key=lambda path: (path.name != MANIFEST, ".train." in path.name)):
            new = not path.exists()
            beside[path].replace(path)
            placed += [path] if new else []
    except BaseException as problem:
        _remove(placed)
        if not isinstance(problem, OSError):
            raise
        raise EnvironmentProblem(
            f"Could not write to {folder}: {problem.strerror or problem}. Make room or choose another folder."
        ) from problem
    finally:
        _remove(beside.values())
    return tuple(beside)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _left_overs(folder: Path, files: Iterable[str]) -> list[Path]:
    """What a process that was killed while it wrote these files has left beside them."""
    names = set(files)
    paths = [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    found = {path: _UNFINISHED.fullmatch(path.name) for path in paths}
    return [path for path, match in found.items() if match is not None and match["name"] in names]
