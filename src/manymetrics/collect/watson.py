"""The intents of a Watson assistant -> Examples.

CSV     without a header: example,intent
JSON    a skill: intents[] with intent and examples[].text; its counterexamples are texts of no intent
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manymetrics.collect.chatbots import as_object
from manymetrics.collect.delimited import csv_rows, find_delimiter
from manymetrics.collect.opening import read_json
from manymetrics.collect.options import Options
from manymetrics.collect.rows import Rows, kind_of
from manymetrics.collect.tables import COUNTER, NO_LABEL, WHOLE, Found
from manymetrics.errors import TaskFormatError


def read_watson(path: Path, options: Options) -> Iterator[Found]:
    """The intents of a Watson assistant, as CSV or within a skill."""
    return _watson_skill(path, options) if path.suffix.casefold() == ".json" else _watson_csv(path, options)


def watson_workspaces(content: Any) -> list[dict[str, Any]]:
    """The parts of a Watson export that hold intents: a skill, what it wraps, or the skills of an assistant."""
    skills = content.get("assistant_skills") if isinstance(content, dict) else None
    ones = [content, *(skills if isinstance(skills, list) else [])]
    found = [one for one in ones if isinstance(one, dict)]
    found += [inner for one in found if isinstance(inner := one.get("workspace"), dict)]
    return [one for one in found if _has_intents(one.get("intents"))]


def _has_intents(intents: Any) -> bool:
    return isinstance(intents, list) and any(isinstance(one, dict) and "intent" in one for one in intents)


def _watson_csv(path: Path, options: Options) -> Iterator[Found]:
    rows = Rows(path, options.log)
    for line, row in csv_rows(path, find_delimiter(path, options.dialect, lambda first: len(first) == 2)):
        if len(row) != 2:
            raise TaskFormatError(
                f"{path}, line {line}: found {len(row)} field{'s' if len(row) > 1 else ''}, expected example,intent. "
                "Put texts that hold commas in double quotes."
            )
        rows.add(*row, where=f"line {line}")
    yield options.task, WHOLE, rows.examples()


def _watson_skill(path: Path, options: Options) -> Iterator[Found]:
    workspaces = watson_workspaces(read_json(path))
    if not workspaces:
        raise TaskFormatError(f"{path}: found no list 'intents' with an 'intent' each. Export the skill again.")
    rows, counter = Rows(path, options.log), Rows(path, options.log)
    for workspace in workspaces:
        for number, one in enumerate(workspace["intents"], start=1):
            intent = as_object(one, where=f"{path}, intent {number}")
            for where, text in _texts(path, intent.get("examples"), f"intent {number}, example"):
                rows.add(text, intent.get("intent"), where=where)
        for where, text in _texts(path, workspace.get("counterexamples"), "counterexample"):
            counter.add(text, NO_LABEL, where=where)
    yield options.task, WHOLE, rows.examples()
    yield options.task, COUNTER, counter.examples()


def _texts(path: Path, examples: Any, what: str) -> Iterator[tuple[str, Any]]:
    if examples is not None and not isinstance(examples, list):
        raise TaskFormatError(f"{path}, {what}s: this is {kind_of(examples)}, expected a list. Export again.")
    for number, example in enumerate(examples or (), start=1):
        where = f"{what} {number}"
        yield where, as_object(example, where=f"{path}, {where}").get("text")
