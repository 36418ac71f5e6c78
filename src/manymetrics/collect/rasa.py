"""One Rasa NLU file -> Examples: the example utterances of every intent, without their entity markup.

    YAML       nlu:                            Markdown      ## intent:order_pizza
               - intent: order_pizza                         - a [large](size) pizza
                 examples: |
                   - a [large](size) pizza     both give     "a large pizza", labelled order_pizza

Sections on synonyms, lookup tables and regular expressions are left out. A retrieval intent keeps its full name
(`faq/ask_price`). YAML is only composed, never constructed: no tag of a foreign file can make an object, an intent
named `yes` stays a word, and every node knows its line.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

import yaml
from yaml.events import CollectionEndEvent, CollectionStartEvent, Event
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from manymetrics.collect.formats import Rows, read_lines
from manymetrics.errors import TaskFormatError
from manymetrics.values import Examples

YAML_ENDINGS = (".yml", ".yaml")
MARKDOWN_ENDINGS = (".md",)
MAX_DEPTH = 50

_NLU_KEY = re.compile(rb"^(?:\xef\xbb\xbf)?[ \t{]*[\"']?nlu[\"']?[ \t]*:", re.MULTILINE)
_INTENT_HEADER = re.compile(rb"^(?:\xef\xbb\xbf)?##[ \t]*intent:", re.MULTILINE)
_ENTITY = re.compile(r"\[([^\[\]]*)\](?:\([^()]*\)|\{[^{}]*\}|\[\s*\{[^\[\]]*\}\s*\])")
_BULLET = re.compile(r"\s*[-*+]\s*(.*)")


def is_rasa(path: Path) -> bool:
    """Whether a file holds Rasa NLU examples, told from its ending and a look for `nlu:` or `## intent:`.

    A README is never a task, even where it quotes one. A file that cannot be opened may be one: reading it will tell.
    """
    pattern = _NLU_KEY if path.suffix in YAML_ENDINGS else _INTENT_HEADER if path.suffix in MARKDOWN_ENDINGS else None
    if pattern is None or path.stem.casefold() == "readme":
        return False
    try:
        return pattern.search(path.read_bytes()) is not None
    except OSError:
        return True


def read_rasa(path: Path) -> Examples:
    """Read the examples of all intents of one file, in the order of the file."""
    rows = Rows(path)
    pairs = _from_markdown(path) if path.suffix in MARKDOWN_ENDINGS else _from_yaml(path)
    for line, intent, utterance in pairs:
        if text := " ".join(_ENTITY.sub(r"\1", utterance).split()):
            rows.add(text, intent, where=f"line {line}")
    return rows.examples()


def _from_markdown(path: Path) -> Iterator[tuple[int, str, str]]:
    text = _without_comments("".join(read_lines(path)))
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
    sections = _fields(_compose(path)).get("nlu")
    if not isinstance(sections, SequenceNode):
        raise TaskFormatError(f"{path}: 'nlu' is not a list. Write '- intent: name' and 'examples: |' under 'nlu:'.")
    for section in sections.value:
        fields = _fields(section)
        if "intent" not in fields:
            continue
        intent, examples = fields["intent"], fields.get("examples")
        if not isinstance(intent, ScalarNode):
            raise TaskFormatError(f"{path}, line {_line(intent)}: the intent is not a name. Write 'intent: name'.")
        for line, utterance in _utterances(path, examples):
            yield line, intent.value, utterance


def _compose(path: Path) -> Node | None:
    text = "".join(read_lines(path))
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _refuse_depth(path, yaml.parse(text, Loader=loader))
        return cast(Node | None, yaml.compose(text, Loader=loader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise TaskFormatError(
            f"{path}{where}: this is not YAML ({reason}). Check the indentation and quotes."
        ) from None


def _refuse_depth(path: Path, events: Iterable[Event]) -> None:
    """Refuse a file nested deeper than any NLU file is: composing it would overflow the C stack."""
    depth = 0
    for event in events:
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise TaskFormatError(
                f"{path}, line {_line(event)}: lists and mappings are nested more than {MAX_DEPTH} deep, "
                "which no NLU file is. Check the brackets and the indentation."
            )


def _utterances(path: Path, examples: Node | None) -> Iterator[tuple[int, str]]:
    if isinstance(examples, SequenceNode):
        for item in examples.value:
            text = _fields(item).get("text", item)
            if not isinstance(text, ScalarNode):
                raise TaskFormatError(f"{path}, line {_line(item)}: an example has no text. Write '- text: ...'.")
            yield _line(text), text.value
    elif isinstance(examples, ScalarNode):
        yield from _bullets(path, examples)
    elif examples is not None:
        raise TaskFormatError(
            f"{path}, line {_line(examples)}: the examples are not a list. Write 'examples: |' and one '- ' a line."
        )


def _bullets(path: Path, block: ScalarNode) -> Iterator[tuple[int, str]]:
    """Part a block of text at its dashes; a line without one goes on with the example before it."""
    first = _line(block) + (1 if block.style in ("|", ">") else 0)
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


def _fields(node: Node | None) -> dict[str, Node]:
    if not isinstance(node, MappingNode):
        return {}
    return {key.value: value for key, value in node.value if isinstance(key, ScalarNode)}


def _line(node: Node | Event) -> int:
    return node.start_mark.line + 1 if node.start_mark else 1
