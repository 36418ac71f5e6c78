"""The folder of a Dialogflow agent -> Examples: the training phrases of every intent, their pieces joined.

ES    intents/<intent>.json, and <intent>_usersays_<language>.json with its phrases
CX    intents/<intent>/<intent>.json, and trainingPhrases/<language>.json beside it

Agents exported long ago keep the phrases inside the intent. The phrases of a fallback intent are counter-examples.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manymetrics.collect.opening import files_below, read_json, require_inside
from manymetrics.collect.options import Options
from manymetrics.collect.rows import Rows, kind_of
from manymetrics.collect.tables import COUNTER, NO_LABEL, WHOLE, Found
from manymetrics.errors import TaskFormatError

_PHRASES = re.compile(r"(?P<intent>.+)_usersays_(?P<language>[A-Za-z-]+)\.json")


def dialogflow_files(folder: Path) -> list[Path]:
    """The files of intents and phrases of an agent; none if the folder is no agent."""
    intents = folder / "intents"
    found = files_below(intents) if intents.is_dir() else []
    return [path for path in found if path.suffix == ".json" and _depth_fits(path.relative_to(intents).parts)]


def read_dialogflow(folder: Path, options: Options) -> Iterator[Found]:
    """The training phrases of an agent, in all its languages; intents without phrases have none."""
    for path in dialogflow_files(folder):
        content, home = read_json(require_inside(path, folder)), _home(path)
        about = content if home == path else _intent_at(home, folder)
        fallback = _is_fallback(about)
        intent = NO_LABEL if fallback else _name_of(about, home.stem)
        rows = Rows(path, options.log)
        for number, phrase in enumerate(_phrases(path, content, inside=home == path), start=1):
            rows.add(_join(phrase, where=f"{path}, phrase {number}"), intent, where=f"phrase {number}")
        yield options.task, COUNTER if fallback else WHOLE, rows.examples()


def _depth_fits(parts: tuple[str, ...]) -> bool:
    return len(parts) < 3 or (len(parts) == 3 and parts[1] == "trainingPhrases")


def _home(path: Path) -> Path:
    """The file of the intent that a file of phrases belongs to; the file of an intent belongs to itself."""
    if match := _PHRASES.fullmatch(path.name):
        return path.with_name(f"{match['intent']}.json")
    if path.parent.name == "trainingPhrases":
        return path.parents[1] / f"{path.parents[1].name}.json"
    return path


def _intent_at(home: Path, folder: Path) -> Any:
    return read_json(require_inside(home, folder)) if home.is_file() else None


def _is_fallback(about: Any) -> bool:
    return isinstance(about, dict) and True in (about.get("fallbackIntent"), about.get("isFallback"))


def _name_of(about: Any, otherwise: str) -> str:
    names = [about.get("displayName"), about.get("name")] if isinstance(about, dict) else []
    return next((name for name in names if isinstance(name, str) and name.strip()), otherwise)


def _phrases(path: Path, content: Any, *, inside: bool) -> list[Any]:
    """The phrases of a file; one that describes an intent (`inside`) may have none."""
    phrases = None if inside else content
    if isinstance(content, dict):
        phrases = content.get("trainingPhrases", content.get("userSays", [] if inside else None))
    if not isinstance(phrases, list):
        raise TaskFormatError(f"{path}: this is {kind_of(content)}, expected a list of phrases. Export again.")
    return phrases


def _join(phrase: Any, *, where: str) -> str:
    pieces = phrase.get("data", phrase.get("parts")) if isinstance(phrase, dict) else None
    texts = [piece.get("text") for piece in pieces if isinstance(piece, dict)] if isinstance(pieces, list) else []
    spoken = [text for text in texts if isinstance(text, str)]
    if not isinstance(pieces, list) or len(spoken) < len(pieces):
        raise TaskFormatError(
            f"{where}: it has no list 'data' or 'parts' of pieces with a text. Export the agent again."
        )
    return "".join(spoken).strip()
