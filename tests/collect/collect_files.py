"""What the tests of `collect` share: writing files, and examples as pairs of text and label."""

import json
from pathlib import Path


def write(path: Path, content) -> Path:
    """Write text, bytes, or anything else as JSON; create the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(content, str | bytes):
        content = json.dumps(content)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def as_jsonl(rows) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def pairs(examples) -> list[tuple[str, str]]:
    return list(zip(examples.texts, examples.labels, strict=True))


def pairs_of(task) -> list[tuple[str, str]]:
    """The pairs of all splits of a task, sorted."""
    return sorted(pairs(task.train) + pairs(task.valid) + pairs(task.test))
