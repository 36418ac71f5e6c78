"""One Rasa NLU file -> Examples: the example utterances of every intent, without their entity markup.

    YAML       nlu:                            Markdown      ## intent:order_pizza
               - intent: order_pizza                         - a [large](size) pizza
                 examples: |
                   - a [large](size) pizza     both give     "a large pizza", labelled order_pizza
    JSON       {"rasa_nlu_data": {"common_examples": [{"text": "a large pizza", "intent": "order_pizza"}]}}

Sections on synonyms, lookup tables and regular expressions are left out. A retrieval intent keeps its full name
(`faq/ask_price`).
"""

import re
from collections.abc import Iterator
from pathlib import Path

from yaml.nodes import Node, ScalarNode, SequenceNode

from manymetrics.collect.opening import read_head, read_json, read_text
from manymetrics.collect.rows import ReadLog, Rows, kind_of
from manymetrics.collect.yaml_tree import compose, fields_of, line_of
from manymetrics.errors import TaskFormatError
from manymetrics.values import Examples

YAML_ENDINGS = (".yml", ".yaml")
MARKDOWN_ENDINGS = (".md",)
JSON_ENDINGS = (".json",)

_NLU_KEY = re.compile(rb"^(?:\xef\xbb\xbf)?[ \t{]*[\"']?nlu[\"']?[ \t]*:", re.MULTILINE)
_INTENT_HEADER = re.compile(rb"^(?:\xef\xbb\xbf)?##[ \t]*intent:", re.MULTILINE)
_JSON_KEY = re.compile(rb"\"rasa_nlu_data\"\s*:")
_ENTITY = re.compile(r"\[([^\[\]]*)\](?:\([^()]*\)|\{[^{}]*\}|\[\s*\{[^\[\]]*\}\s*\])")
_BULLET = re.compile(r"\s*[-*+]\s*(.*)")


def is_rasa(path: Path) -> bool:
    """Whether a file holds Rasa NLU examples, known by its ending and the words that begin them, near its start.

    A README is never a task, even where it quotes one. A file that cannot be opened may be one: reading it will show.
    """
    signs = {YAML_ENDINGS: _NLU_KEY, MARKDOWN_ENDINGS: _INTENT_HEADER, JSON_ENDINGS: _JSON_KEY}
    pattern = next((sign for endings, sign in signs.items() if path.suffix in endings), None)
    if pattern is None or path.stem.casefold() == "readme":
        return False
    try:
        return pattern.search(read_head(path)) is not None
    except TaskFormatError:
        return True


def read_rasa(path: Path, log: ReadLog | None = None) -> Examples:
    """Read the examples of all intents of one file, in the order of the file; the log gets what is left out."""
    log = ReadLog() if log is None else log
    if path.suffix in JSON_ENDINGS:
        return _from_json(path, log)
    rows = Rows(path, log)
    pairs = _from_markdown(path) if path.suffix in MARKDOWN_ENDINGS else _from_yaml(path)
    for line, intent, utterance in pairs:
        if text := " ".join(_ENTITY.sub(r"\1", utterance).split()):
            rows.add(text, intent, where=f"line {line}")
    return rows.examples()


def _from_json(path: Path, log: ReadLog) -> Examples:
    """Here texts carry no markup, as entities are given beside them; what has no intent is no example of one."""
    content = read_json(path)
    data = content.get("rasa_nlu_data") if isinstance(content, dict) else None
    if not isinstance(data, dict):
        raise TaskFormatError(f"{path}: found no 'rasa_nlu_data'. Export the training data again, or as YAML.")
    rows = Rows(path, log)
    for kind in ("common_examples", "intent_examples"):
        examples = data.get(kind, [])
        if not isinstance(examples, list):
            raise TaskFormatError(f"{path}: {kind!r} is {kind_of(examples)}, expected a list. Export the file again.")
        for number, example in enumerate(examples, start=1):
            where = f"{kind} {number}"
            if not isinstance(example, dict):
                raise TaskFormatError(f"{path}, {where}: this is {kind_of(example)}, expected an object. Mend it.")
            if example.get("intent"):
                rows.add(example.get("text"), example["intent"], where=where)
    return rows.examples()


def _from_markdown(path: Path) -> Iterator[tuple[int, str, str]]:
    text = _without_comments(read_text(path))
    intent = None
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("#"):
            kind, colon, name = line.lstrip("#").strip().partition(":")
            intent = name.strip() if colon and kind == "intent" else None
        elif intent is not None and (bullet := _BULLET.match(line)):
            yield number, intent, bullet.group(1)


def _without_comments(text: str) -> str:
    """Take `<!-- ... -->` out, line ends kept; by searching, since a pattern would take quadratic time on bad files."""
    kept, place = [], 0
    while (start := text.find("<!--", place)) >= 0 and (end := text.find("-->", start)) >= 0:
        kept += [text[place:start], "\n" * text.count("\n", start, end)]
        place = end + len("-->")
    return "".join(kept) + text[place:]


def _from_yaml(path: Path) -> Iterator[tuple[int, str, str]]:
    sections = fields_of(compose(read_text(path), path)).get("nlu")
    if not isinstance(sections, SequenceNode):
        raise TaskFormatError(f"{path}: 'nlu' is not a list. Write '- intent: name' and 'examples: |' under 'nlu:'.")
    for section in sections.value:
        fields = fields_of(section)
        if "intent" not in fields:
            continue
        intent, examples = fields["intent"], fields.get("examples")
        if not isinstance(intent, ScalarNode):
            raise TaskFormatError(f"{path}, line {line_of(intent)}: the intent is not a name. Write 'intent: name'.")
        for line, utterance in _utterances(path, examples):
            yield line, intent.value, utterance


def _utterances(path: Path, examples: Node | None) -> Iterator[tuple[int, str]]:
    if isinstance(examples, SequenceNode):
        for item in examples.value:
            text = fields_of(item).get("text", item)
            if not isinstance(text, ScalarNode):
                raise TaskFormatError(f"{path}, line {line_of(item)}: an example has no text. Write '- text: ...'.")
            yield line_of(text), text.value
    elif isinstance(examples, ScalarNode):
        yield from _bullets(path, examples)
    elif examples is not None:
        raise TaskFormatError(
            f"{path}, line {line_of(examples)}: the examples are not a list. Write 'examples: |' and one '- ' a line."
        )


def _bullets(path: Path, block: ScalarNode) -> Iterator[tuple[int, str]]:
    """Split a block of text at its dashes; a line without one goes on with the example before it."""
    first = line_of(block) + (1 if block.style in ("|", ">") else 0)
    place, parts = first, list[str]()
    for number, line in enumerate(map(str.strip, block.value.split("\n")), start=first):
        if not line or line.startswith("#"):
            continue
        if line.startswith("-"):
            if parts:
                yield place, " ".join(parts)
            place, parts = number, [line.removeprefix("-")]
        elif parts:
            parts.append(line)
        else:
            raise TaskFormatError(
                f"{path}, line {number}: an example begins without a dash. Write '- ' before each example."
            )
    if parts:
        yield place, " ".join(parts)
