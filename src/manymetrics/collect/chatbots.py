"""What Azure's chatbot services export -> Examples: the utterances of every intent, labelled with its name.

CLU     a project as JSON: assets.utterances[] with text, intent and dataset (Train or Test)
LUIS    an app as JSON: utterances[] with text and intent
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manymetrics.collect.opening import read_json
from manymetrics.collect.options import Options
from manymetrics.collect.rows import Rows, kind_of
from manymetrics.collect.tables import WHOLE, Found
from manymetrics.errors import TaskFormatError


def read_clu(path: Path, options: Options) -> Iterator[Found]:
    """A project of Azure's conversational language understanding; its division into Train and Test is kept."""
    utterances = clu_utterances(read_json(path))
    if not isinstance(utterances, list):
        raise TaskFormatError(f"{path}: found no list 'assets.utterances'. Export the project again, as JSON.")
    return _utterances(path, options, utterances)


def read_luis(path: Path, options: Options) -> Iterator[Found]:
    """An app of Azure's LUIS, whose utterances have no splits."""
    utterances = luis_utterances(read_json(path))
    if not isinstance(utterances, list):
        raise TaskFormatError(f"{path}: found no list 'utterances'. Export the app again, as JSON.")
    return _utterances(path, options, utterances)


def clu_utterances(content: Any) -> Any:
    """The utterances of a CLU project, or None if the content is not one."""
    assets = content.get("assets") if isinstance(content, dict) else None
    return assets.get("utterances") if isinstance(assets, dict) else None


def luis_utterances(content: Any) -> Any:
    """The utterances of a LUIS app, or None if the content is not one."""
    return content.get("utterances") if isinstance(content, dict) and "intents" in content else None


def _utterances(path: Path, options: Options, utterances: list[Any]) -> Iterator[Found]:
    piles: defaultdict[str, Rows] = defaultdict(lambda: Rows(path, options.log))
    for number, utterance in enumerate(utterances, start=1):
        where = f"utterance {number}"
        about = as_object(utterance, where=f"{path}, {where}")
        part = {"train": "train", "test": "test"}.get(str(about.get("dataset") or "").casefold(), WHOLE)
        piles[part].add(about.get("text"), about.get("intent"), where=where)
    return ((options.task, part, rows.examples()) for part, rows in piles.items())


def as_object(value: Any, *, where: str) -> dict[str, Any]:
    """The value, if it is an object."""
    if not isinstance(value, dict):
        raise TaskFormatError(f"{where}: this is {kind_of(value)}, expected an object. Export again.")
    return value
