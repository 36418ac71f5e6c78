"""manifest.json of a bank: the role, the source and the family of each task; all are optional.

A family is shown in reports and never used in learning. A manifest that is unclear is refused, because a target that is
learned from by mistake would invalidate all results.
"""

import unicodedata
from pathlib import Path
from typing import Any

from manymetrics.collect.readers.open import read_json, require_inside
from manymetrics.errors import TaskFormatError
from manymetrics.values import ROLES

MANIFEST = "manifest.json"
MAX_SOURCE_LENGTH = 500  # characters


def read_manifest(path: Path) -> dict[str, dict[str, Any]]:
    """Name of each task -> its entry, in which role and source are known to be usable."""
    content = read_json(require_inside(path, path.parent))
    entries = content.get("tasks") if isinstance(content, dict) else content
    if not isinstance(entries, list):
        raise TaskFormatError(f'{path}: found no list of tasks. Write {{"tasks": [{{"name": "a"}}]}}.')
    tasks: dict[str, dict[str, Any]] = {}
    for number, entry in enumerate(entries, start=1):
        name = _check_entry(entry, where=f"{path}, task {number}")
        if name in tasks:
            raise TaskFormatError(f"{path}, task {number}: {name!r} is listed twice. Remove one of the entries.")
        tasks[name] = entry
    return tasks


def read_families(folder: str | Path, *, by: str = "family") -> dict[str, str]:
    """Name -> family of the tasks for which the manifest of a folder names one."""
    path = Path(folder) / MANIFEST
    if not path.is_file():
        raise TaskFormatError(f"{folder}: found no {MANIFEST}, where the {by} of tasks is named. Add one.")
    entries = read_manifest(path)
    families = {name: entry[by] for name, entry in entries.items() if isinstance(entry.get(by), str) and entry[by]}
    if not families:
        raise TaskFormatError(f'{path}: names the {by} of no task. Give entries a "{by}".')
    return families


def is_source(value: object) -> bool:
    """Whether a manifest can give this as the source of a task."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_SOURCE_LENGTH:
        return False
    return value.encode("utf-8", "replace").decode() == value  # a lone surrogate is not a character


def _check_entry(entry: Any, *, where: str) -> str:
    """The name in an entry."""
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        raise TaskFormatError(f'{where}: the entry has no name. Give each entry a "name".')
    role, source = entry.get("role"), entry.get("source")
    if role is not None and role not in ROLES:
        raise TaskFormatError(f"{where}: {name!r} has the role {role!r}. Use one of {', '.join(ROLES)}.")
    if source is not None and not is_source(source):
        raise TaskFormatError(f"{where}: the source of {name!r} must be a text of 1 to {MAX_SOURCE_LENGTH} characters.")
    return unicodedata.normalize("NFC", name)
