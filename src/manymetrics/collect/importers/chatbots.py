"""Exports of chatbot services -> records: the utterances of every intent, labelled with its name.

CLU         a project of Azure as JSON: assets.utterances[] with text, intent and dataset (Train or Test)
LUIS        an app of Azure as JSON: utterances[] with text and intent
Dialogflow  the folder of an agent. ES: intents/<intent>.json, and <intent>_usersays_<language>.json with its phrases.
            CX: intents/<intent>/<intent>.json, and trainingPhrases/<language>.json beside it. Older agents have the
            phrases inside the intent. The pieces of a phrase are joined.

Phrases of a fallback intent of Dialogflow belong to no intent.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manymetrics.collect.importers.tables import ImportOptions
from manymetrics.collect.readers.open import files_below, lookup, read_json, require_inside
from manymetrics.collect.readers.records import COUNTER, NO_LABEL, UNSPLIT, Record, kind_of
from manymetrics.errors import TaskFormatError

_PHRASES = re.compile(r"(?P<intent>.+)_usersays_[A-Za-z-]+\.json")


def azure_utterances(content: Any, format: str) -> Any:
    """The utterances of a CLU project or of a LUIS app; None if the content is not one."""
    if format == "clu":
        return lookup(content, "assets", "utterances")
    return lookup(content, "utterances") if isinstance(content, dict) and "intents" in content else None


def read_azure(path: Path, options: ImportOptions) -> Iterator[Record]:
    """The utterances of a project; the split of CLU into Train and Test is used."""
    utterances = azure_utterances(read_json(path), options.format)
    if not isinstance(utterances, list):
        raise TaskFormatError(f"{path}, utterances: this is {kind_of(utterances)}, expected a list. Export again.")
    for number, utterance in enumerate(utterances, start=1):
        text, intent, dataset = (lookup(utterance, key) for key in ("text", "intent", "dataset"))
        part = str(dataset).casefold() if str(dataset).casefold() in ("train", "test") else UNSPLIT
        yield Record(path, f"utterance {number}", text, intent, options.task, part)


def dialogflow_files(folder: Path) -> list[Path]:
    """The files of intents and phrases of an agent; none if the folder is not an agent."""
    intents = folder / "intents"
    paths = files_below(intents) if intents.is_dir() else []
    depths = [(path, path.relative_to(intents).parts) for path in paths if path.suffix == ".json"]
    return [path for path, parts in depths if len(parts) < 3 or (len(parts) == 3 and parts[1] == "trainingPhrases")]


def read_dialogflow(folder: Path, options: ImportOptions) -> Iterator[Record]:
    """The training phrases of an agent in all its languages."""
    for path in dialogflow_files(folder):
        intent = content = read_json(require_inside(path, folder))
        intent_path = _intent_path(path)
        if intent_path != path:
            intent = read_json(require_inside(intent_path, folder)) if intent_path.is_file() else None
        names = (lookup(intent, "displayName"), lookup(intent, "name"), intent_path.stem)
        label, part = next(name for name in names if isinstance(name, str) and name.strip()), UNSPLIT
        if True in (lookup(intent, "fallbackIntent"), lookup(intent, "isFallback")):
            label, part = NO_LABEL, COUNTER
        for number, phrase in enumerate(_phrases(path, content, in_intent=intent_path == path), start=1):
            text = _join_pieces(phrase, f"{path}, phrase {number}")
            yield Record(path, f"phrase {number}", text, label, options.task, part)


def _intent_path(path: Path) -> Path:
    """The file of the intent to which a file of phrases belongs; the path itself if it is the file of an intent."""
    if match := _PHRASES.fullmatch(path.name):
        return path.with_name(f"{match['intent']}.json")
    if path.parent.name == "trainingPhrases":
        return path.parents[1] / f"{path.parents[1].name}.json"
    return path


def _phrases(path: Path, content: Any, *, in_intent: bool) -> list[Any]:
    """The phrases of a file; the file of an intent may have none."""
    phrases = None if in_intent else content
    if isinstance(content, dict):
        phrases = content.get("trainingPhrases", content.get("userSays", [] if in_intent else None))
    if not isinstance(phrases, list):
        raise TaskFormatError(f"{path}: this is {kind_of(content)}, expected a list of phrases. Export again.")
    return phrases


def _join_pieces(phrase: Any, where: str) -> str:
    pieces = phrase.get("data", phrase.get("parts")) if isinstance(phrase, dict) else None
    texts = [lookup(piece, "text") for piece in pieces] if isinstance(pieces, list) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise TaskFormatError(f"{where}: it has no list 'data' or 'parts' of pieces with a text. Export again.")
    return "".join(map(str, texts)).strip()
