"""What chatbot services export as one file -> Examples: the utterances of every intent, labelled with its name.

Azure CLU     a project as JSON: assets.utterances[] with text, intent and dataset (Train or Test)
LUIS          an app as JSON: utterances[] with text and intent
Watson        CSV without a header: example,intent; or a skill as JSON: intents[] with intent and examples[].text

What a service keeps as texts of no intent comes as counter-examples.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manymetrics.collect.delimited import csv_rows, find_delimiter
from manymetrics.collect.formats import read_json
from manymetrics.collect.rows import Rows, kind_of
from manymetrics.collect.tables import COUNTER, WHOLE, Found, Wishes
from manymetrics.errors import TaskFormatError

NO_INTENT = "no intent"  # stands where counter-examples have a label


def read_clu(path: Path, wishes: Wishes) -> Iterator[Found]:
    """A project of Azure's conversational language understanding; its division into Train and Test is kept."""
    utterances = clu_utterances(read_json(path))
    if not isinstance(utterances, list):
        raise TaskFormatError(f"{path}: found no list 'assets.utterances'. Export the project again, as JSON.")
    return _utterances(path, wishes, utterances)


def read_luis(path: Path, wishes: Wishes) -> Iterator[Found]:
    """An app of Azure's LUIS, whose utterances have no splits."""
    utterances = luis_utterances(read_json(path))
    if not isinstance(utterances, list):
        raise TaskFormatError(f"{path}: found no list 'utterances'. Export the app again, as JSON.")
    return _utterances(path, wishes, utterances)


def read_watson(path: Path, wishes: Wishes) -> Iterator[Found]:
    """The intents of a Watson assistant, as CSV or within a skill."""
    return _watson_skill(path, wishes) if path.suffix.casefold() == ".json" else _watson_csv(path, wishes)


def clu_utterances(content: Any) -> Any:
    """The utterances of a CLU project, or None if the content is not one."""
    assets = content.get("assets") if isinstance(content, dict) else None
    return assets.get("utterances") if isinstance(assets, dict) else None


def luis_utterances(content: Any) -> Any:
    """The utterances of a LUIS app, or None if the content is not one."""
    return content.get("utterances") if isinstance(content, dict) and "intents" in content else None


def watson_workspaces(content: Any) -> list[dict[str, Any]]:
    """The parts of a Watson export that hold intents: a skill, what it wraps, or the skills of an assistant."""
    skills = content.get("assistant_skills") if isinstance(content, dict) else None
    ones = [content, *(skills if isinstance(skills, list) else [])]
    found = [one for one in ones if isinstance(one, dict)]
    found += [inner for one in found if isinstance(inner := one.get("workspace"), dict)]
    return [one for one in found if _has_intents(one.get("intents"))]


def _has_intents(intents: Any) -> bool:
    return isinstance(intents, list) and any(isinstance(one, dict) and "intent" in one for one in intents)


def _utterances(path: Path, wishes: Wishes, utterances: list[Any]) -> Iterator[Found]:
    piles: defaultdict[str, Rows] = defaultdict(lambda: Rows(path, wishes.log))
    for number, utterance in enumerate(utterances, start=1):
        where = f"utterance {number}"
        about = _object(utterance, where=f"{path}, {where}")
        part = {"train": "train", "test": "test"}.get(str(about.get("dataset") or "").casefold(), WHOLE)
        piles[part].add(about.get("text"), about.get("intent"), where=where)
    return ((wishes.task, part, rows.examples()) for part, rows in piles.items())


def _watson_csv(path: Path, wishes: Wishes) -> Iterator[Found]:
    rows = Rows(path, wishes.log)
    for line, row in csv_rows(path, find_delimiter(path, wishes.dialect, lambda first: len(first) == 2)):
        if len(row) != 2:
            raise TaskFormatError(
                f"{path}, line {line}: found {len(row)} field{'s' if len(row) > 1 else ''}, expected example,intent. "
                "Put texts that hold commas in double quotes."
            )
        rows.add(*row, where=f"line {line}")
    yield wishes.task, WHOLE, rows.examples()


def _watson_skill(path: Path, wishes: Wishes) -> Iterator[Found]:
    workspaces = watson_workspaces(read_json(path))
    if not workspaces:
        raise TaskFormatError(f"{path}: found no list 'intents' with an 'intent' each. Export the skill again.")
    rows, counter = Rows(path, wishes.log), Rows(path, wishes.log)
    for workspace in workspaces:
        for number, one in enumerate(workspace["intents"], start=1):
            intent = _object(one, where=f"{path}, intent {number}")
            for where, text in _texts(path, intent.get("examples"), f"intent {number}, example"):
                rows.add(text, intent.get("intent"), where=where)
        for where, text in _texts(path, workspace.get("counterexamples"), "counterexample"):
            counter.add(text, NO_INTENT, where=where)
    yield wishes.task, WHOLE, rows.examples()
    yield wishes.task, COUNTER, counter.examples()


def _texts(path: Path, examples: Any, what: str) -> Iterator[tuple[str, Any]]:
    if examples is not None and not isinstance(examples, list):
        raise TaskFormatError(f"{path}, {what}s: this is {kind_of(examples)}, expected a list. Export again.")
    for number, example in enumerate(examples or (), start=1):
        where = f"{what} {number}"
        yield where, _object(example, where=f"{path}, {where}").get("text")


def _object(value: Any, *, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TaskFormatError(f"{where}: this is {kind_of(value)}, expected an object. Export again.")
    return value
