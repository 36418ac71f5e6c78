"""Rasa NLU files and projects -> records: the utterances of every intent, without their entity markup.

    nlu:
    - intent: order_pizza
      examples: |
        - a [large](size) pizza         gives "a large pizza", labelled order_pizza

Synonyms, lookup tables and regular expressions are ignored. A retrieval intent keeps its full name (`faq/ask_price`).
All files of a project are one task. `rasa data split nlu` writes a copy of the examples into `train_test_split`; if it
is there, it gives train and test, and the other files are not read. The Markdown and JSON of Rasa 1 are not read; `rasa
data convert nlu` makes YAML of them.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from yaml.nodes import Node, ScalarNode, SequenceNode

from manymetrics.collect.importers.tables import ImportOptions
from manymetrics.collect.readers.open import files_below, open_regular, read_document, require_inside
from manymetrics.collect.readers.records import UNSPLIT, Record
from manymetrics.collect.readers.yaml import compose, fields_of, line_of
from manymetrics.errors import TaskFormatError

SPLIT_FOLDER = "train_test_split"
PART_OF = {"training_data": "train", "test_data": "test"}  # names of files in that folder
ENDINGS = (".yml", ".yaml")
HEAD_BYTES = 1_000_000  # read to recognise a file

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
    """The files below a folder that hold Rasa NLU examples."""
    paths = [path for path in files_below(folder) if path.suffix in ENDINGS]
    return [path for path in paths if _has_examples(require_inside(path, folder))]


def _has_examples(path: Path) -> bool:
    """Whether a file has the key `nlu`, judged by its first bytes."""
    with open_regular(path, max_bytes=None) as file:
        return _KEY.search(file.read(HEAD_BYTES)) is not None


def _records(path: Path, task: str, part: str) -> Iterator[Record]:
    """The records of one file, in its order."""
    sections = fields_of(compose(read_document(path), path)).get("nlu")
    if not isinstance(sections, SequenceNode):
        raise TaskFormatError(f"{path}: 'nlu' is not a list. Write '- intent: name' and 'examples: |' under 'nlu:'.")
    for section in map(fields_of, sections.value):
        intent = section.get("intent")
        if intent is None:
            continue
        if not isinstance(intent, ScalarNode):
            raise TaskFormatError(f"{path}, line {line_of(intent)}: the intent is not a name. Write 'intent: name'.")
        for line, utterance in _utterances(path, section.get("examples")):
            if text := " ".join(_ENTITY.sub(r"\1", utterance).split()):
                yield Record(path, f"line {line}", text, intent.value, task, part)


def _utterances(path: Path, examples: Node | None) -> Iterator[tuple[int, str]]:
    """The examples of an intent with their lines."""
    if isinstance(examples, SequenceNode):
        for item in examples.value:
            text = fields_of(item).get("text", item)
            if not isinstance(text, ScalarNode):
                raise TaskFormatError(f"{path}, line {line_of(item)}: an example has no text. Write '- text: ...'.")
            yield line_of(text), text.value
    elif isinstance(examples, ScalarNode):
        yield from _split_at_dashes(path, examples)
    elif examples is not None:
        raise TaskFormatError(f"{path}, line {line_of(examples)}: the examples are not a list. Write 'examples: |'.")


def _split_at_dashes(path: Path, block: ScalarNode) -> Iterator[tuple[int, str]]:
    """The examples of a block of text; a line without a dash belongs to the example before it."""
    first = line_of(block) + (1 if block.style in ("|", ">") else 0)
    examples: dict[int, str] = {}  # by the line in which they begin
    for number, line in enumerate(map(str.strip, block.value.split("\n")), start=first):
        if line.startswith("-"):
            examples[number] = line.removeprefix("-")
        elif line and not line.startswith("#"):
            if not examples:
                raise TaskFormatError(f"{path}, line {number}: an example begins without a dash. Write '- ' before it.")
            examples[next(reversed(examples))] += f" {line}"
    yield from examples.items()
