"""What the tests of `collect` share: writing files, and examples as pairs of text and label."""

import json

import pytest

TRACK = ["where is my parcel", "has it shipped, or not", "track my order"]
REFUND = ["i want my money back", "refund please", 'they said "no refund"']
PAIRS = [(text, "track") for text in TRACK] + [(text, "refund") for text in REFUND]


@pytest.fixture
def make(tmp_path):
    """Write text, bytes, or anything else as JSON to a file below the temporary folder, and return its path."""

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, str | bytes):
            content = json.dumps(content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def folder(make, tmp_path):
    """Write files into the folder `bank`, and return its path."""

    def fill(files):
        for name, content in files.items():
            make(f"bank/{name}", content)
        return tmp_path / "bank"

    return fill


def as_jsonl(rows) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def entries(pairs, text="text", label="label", **more) -> list[dict]:
    return [{text: first, label: second, **more} for first, second in pairs]


def pairs(examples) -> list[tuple[str, str]]:
    return list(zip(examples.texts, examples.labels, strict=True))


def pairs_of(task) -> list[tuple[str, str]]:
    """The pairs of all splits of a task, sorted."""
    return sorted(pairs(task.train) + pairs(task.valid) + pairs(task.test))
