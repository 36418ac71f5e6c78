"""What chatbot services export -> Examples: the utterances of every intent, labelled with its name.

Azure CLU     a project as JSON: assets.utterances[] with text, intent and dataset (Train or Test)
Watson        CSV without a header: example,intent
Dialogflow    a folder: intents/<intent>.json, and <intent>_usersays_<language>.json with its phrases in pieces
Rasa          a file of NLU examples, or a folder of them
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manymetrics.collect.formats import Rows, csv_rows, kind_of, read_json
from manymetrics.collect.rasa import is_rasa, read_rasa
from manymetrics.collect.tables import WHOLE, Found
from manymetrics.errors import TaskFormatError

_PHRASES = re.compile(r"(?P<intent>.+)_usersays_(?P<language>[A-Za-z-]+)\.json")


def read_clu(path: Path, *, task: str) -> Iterator[Found]:
    """A project of Azure's conversational language understanding; its division into Train and Test is kept."""
    piles: defaultdict[str, Rows] = defaultdict(lambda: Rows(path))
    utterances = clu_utterances(read_json(path))
    if not isinstance(utterances, list):
        raise TaskFormatError(f"{path}: found no list 'assets.utterances'. Export the project again, as JSON.")
    for number, utterance in enumerate(utterances, start=1):
        where = f"utterance {number}"
        if not isinstance(utterance, dict):
            raise TaskFormatError(f"{path}, {where}: this is {kind_of(utterance)}, expected an object. Export again.")
        part = {"train": "train", "test": "test"}.get(str(utterance.get("dataset") or "").casefold(), WHOLE)
        piles[part].add(utterance.get("text"), utterance.get("intent"), where=where)
    return ((task, part, rows.examples()) for part, rows in piles.items())


def clu_utterances(content: Any) -> Any:
    """The utterances of a project, or None if the content is not one."""
    assets = content.get("assets") if isinstance(content, dict) else None
    return assets.get("utterances") if isinstance(assets, dict) else None


def read_watson(path: Path, *, task: str) -> Iterator[Found]:
    """The intents of a Watson assistant: an example and its intent on each line, no header."""
    rows = Rows(path)
    for line, row in csv_rows(path):
        if len(row) != 2:
            raise TaskFormatError(
                f"{path}, line {line}: found {len(row)} field{'s' if len(row) > 1 else ''}, expected example,intent. "
                "Put texts that hold commas in double quotes."
            )
        rows.add(*row, where=f"line {line}")
    yield task, WHOLE, rows.examples()


def read_dialogflow(folder: Path, *, task: str) -> Iterator[Found]:
    """The training phrases of a Dialogflow agent, in all its languages; intents without phrases have none."""
    for path in sorted((folder / "intents").glob("*.json")):
        rows = Rows(path)
        content = read_json(path)
        if match := _PHRASES.fullmatch(path.name):
            phrases, intent = content, _intent_name(path.with_name(f"{match['intent']}.json"), match["intent"])
        else:  # agents exported long ago keep the phrases inside the intent
            phrases = content.get("userSays", []) if isinstance(content, dict) else None
            intent = _intent_name(path, path.stem)
        if not isinstance(phrases, list):
            raise TaskFormatError(f"{path}: this is {kind_of(content)}, expected a list of phrases. Export again.")
        for number, phrase in enumerate(phrases, start=1):
            rows.add(_join(phrase, where=f"{path}, phrase {number}"), intent, where=f"phrase {number}")
        yield task, WHOLE, rows.examples()


def read_rasa_source(source: Path, *, task: str) -> Iterator[Found]:
    """The examples of one Rasa NLU file, or of all such files below a folder."""
    for path in [source] if source.is_file() else rasa_files(source):
        yield task, WHOLE, read_rasa(path)


def rasa_files(folder: Path) -> list[Path]:
    """The files below a folder that hold Rasa NLU examples."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and is_rasa(path))


def _intent_name(path: Path, otherwise: str) -> str:
    content = read_json(path) if path.is_file() else None
    name = content.get("name") if isinstance(content, dict) else None
    return name if isinstance(name, str) and name.strip() else otherwise


def _join(phrase: Any, *, where: str) -> str:
    pieces = phrase.get("data") if isinstance(phrase, dict) else None
    texts = [piece.get("text") if isinstance(piece, dict) else None for piece in pieces or ()]
    spoken = [text for text in texts if isinstance(text, str)]
    if not isinstance(pieces, list) or len(spoken) < len(texts):
        raise TaskFormatError(f"{where}: it has no list 'data' of pieces with a text. Export the agent again.")
    return "".join(spoken).strip()
