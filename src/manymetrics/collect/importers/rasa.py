"""Rasa NLU files and projects -> records: the utterances of every intent, without their entity markup.

    nlu:
    - intent: order_pizza
      examples: |
        - a [large](size) pizza         gives "a large pizza", labelled order_pizza

Synonyms, lookup tables and regular expressions are ignored. A retrieval intent keeps its full name (`faq/ask_price`).
All files of a project are one task. `rasa data split nlu` writes a copy of the examples into `train_test_split`; if it
is there, it gives train and test, and the other files are not read. The Markdown and JSON of Rasa 1 are not read; `rasa
data convert nlu` makes YAML of them.

YAML is composed but not constructed: no tag of a file can create an object, and a name such as `yes` stays a string.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from yaml.events import CollectionEndEvent, CollectionStartEvent, Event
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from manymetrics.collect.importers.tables import ImportOptions
from manymetrics.collect.readers.open import files_below, open_regular, read_document, require_at_most, require_inside
from manymetrics.collect.readers.records import UNSPLIT, Record
from manymetrics.errors import TaskFormatError

SPLIT_FOLDER = "train_test_split"
PART_OF = {"training_data": "train", "test_data": "test"}  # names of files in that folder
RASA_ENDINGS = (".yml", ".yaml")
HEAD_BYTES = 1_000_000  # read to recognise a file
MAX_DEPTH = 50
MAX_VALUES = 1_000_000  # in one file; a value takes far more memory than its characters

_KEY = re.compile(rb"^(?:\xef\xbb\xbf)?[ \t{]*[\"']?nlu[\"']?[ \t]*:", re.MULTILINE)
_ENTITY = re.compile(r"\[([^\[\]]*)\](?:\([^()]*\)|\{[^{}]*\}|\[\s*\{[^\[\]]*\}\s*\])")


def read_rasa(source: Path, options: ImportOptions) -> Iterator[Record]:
    """The records of one Rasa NLU file, or of all such files below a folder."""
    files = [source] if source.is_file() else rasa_files(source)
    halves = [path for path in files if path.absolute().parent.name == SPLIT_FOLDER and path.stem in PART_OF]
    parts = {path: PART_OF[path.stem] for path in halves if source.is_dir()}
    others = [path for path in files if path not in parts]
    if set(parts.values()) == set(PART_OF.values()):
        ignored = f"; {len(others)} other files, of which it is a copy, are not read." if others else "."
        options.log.notes.append(f"{next(iter(parts)).parent}: used as the split in train and test{ignored}")
        others = []
    else:  # half a split is a copy of other files
        others, parts = others or files, {}
    for path in [*others, *parts]:
        yield from _records(path, options.task, parts.get(path, UNSPLIT))


def rasa_files(folder: Path) -> list[Path]:
    """The files below a folder that hold Rasa NLU examples: those with the key `nlu` in their first bytes."""
    paths = []
    for path in files_below(folder):
        if path.suffix in RASA_ENDINGS:
            with open_regular(require_inside(path, folder), max_bytes=None) as file:
                paths += [path] if _KEY.search(file.read(HEAD_BYTES)) else []
    return paths


def _records(path: Path, task: str, part: str) -> Iterator[Record]:
    sections = _fields(_compose(path)).get("nlu")
    if not isinstance(sections, SequenceNode):
        raise TaskFormatError(f"{path}: 'nlu' is not a list. Write '- intent: name' and 'examples: |' under 'nlu:'.")
    for section in map(_fields, sections.value):
        intent = section.get("intent")
        if intent is None:
            continue
        if not isinstance(intent, ScalarNode):
            raise TaskFormatError(f"{path}, line {_line(intent)}: the intent is not a name. Write 'intent: name'.")
        for line, utterance in _utterances(path, section.get("examples")):
            if text := " ".join(_ENTITY.sub(r"\1", utterance).split()):
                yield Record(path, f"line {line}", text, intent.value, task, part)


def _utterances(path: Path, examples: Node | None) -> Iterator[tuple[int, str]]:
    if isinstance(examples, SequenceNode):
        for item in examples.value:
            text = _fields(item).get("text", item)
            if not isinstance(text, ScalarNode):
                raise TaskFormatError(f"{path}, line {_line(item)}: an example has no text. Write '- text: ...'.")
            yield _line(text), text.value
    elif isinstance(examples, ScalarNode):
        yield from _split_at_dashes(path, examples)
    elif examples is not None:
        raise TaskFormatError(f"{path}, line {_line(examples)}: the examples are not a list. Write 'examples: |'.")


def _split_at_dashes(path: Path, block: ScalarNode) -> Iterator[tuple[int, str]]:
    """The examples of a block of text; a line without a dash belongs to the example before it."""
    first = _line(block) + (block.style in ("|", ">"))
    examples: dict[int, str] = {}  # by the line in which they begin
    for number, line in enumerate(map(str.strip, block.value.split("\n")), start=first):
        if line.startswith("-"):
            examples[number] = line.removeprefix("-")
        elif line and not line.startswith("#"):
            if not examples:
                raise TaskFormatError(f"{path}, line {number}: an example begins without a dash. Write '- ' before it.")
            examples[next(reversed(examples))] += f" {line}"
    yield from examples.items()


def _compose(path: Path) -> Node | None:
    """The root node of a file, unless it has too many values, or so deep ones that the C stack would overflow."""
    text, loader = read_document(path), getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    try:
        for number, event in enumerate(yaml.parse(text, Loader=loader)):
            require_at_most(MAX_VALUES, number, "values", path)
            depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise TaskFormatError(f"{path}, line {_line(event)}: nested more than {MAX_DEPTH} deep. Correct it.")
        root: Node | None = yaml.compose(text, Loader=loader)
        return root
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise TaskFormatError(f"{path}{line}: this is not YAML ({reason}). Check the indentation and quotes.") from None


def _fields(node: Node | None) -> dict[str, Node]:
    """The fields of a mapping by name; empty for any other node."""
    if not isinstance(node, MappingNode):
        return {}
    return {key.value: value for key, value in node.value if isinstance(key, ScalarNode)}


def _line(node: Node | Event) -> int:
    return node.start_mark.line + 1 if node.start_mark else 1
