"""YAML text -> nodes with line numbers.

YAML is composed but not constructed: no tag of a file can create an object, and a name such as `yes` stays a string.
"""

from collections.abc import Iterable
from pathlib import Path

import yaml
from yaml.events import CollectionEndEvent, CollectionStartEvent, Event
from yaml.nodes import MappingNode, Node, ScalarNode

from manymetrics.collect.readers.open import require_at_most
from manymetrics.errors import TaskFormatError

MAX_DEPTH = 50
MAX_VALUES = 1_000_000  # in one file; a value takes far more memory than its characters


def compose(text: str, path: Path) -> Node | None:
    """The root node of a YAML document; `path` is named in errors."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _require_bounded(path, yaml.parse(text, Loader=loader))
        root: Node | None = yaml.compose(text, Loader=loader)
        return root
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise TaskFormatError(f"{path}{line}: this is not YAML ({reason}). Check the indentation and quotes.") from None


def fields_of(node: Node | None) -> dict[str, Node]:
    """The fields of a mapping by name; empty for any other node."""
    if not isinstance(node, MappingNode):
        return {}
    return {key.value: value for key, value in node.value if isinstance(key, ScalarNode)}


def line_of(node: Node | Event) -> int:
    """The line where a node begins."""
    return node.start_mark.line + 1 if node.start_mark else 1


def _require_bounded(path: Path, events: Iterable[Event]) -> None:
    """Refuse a file with too many values, or nested so deeply that composing it would overflow the C stack."""
    depth = 0
    for number, event in enumerate(events):
        require_at_most(MAX_VALUES, number, "values", path)
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise TaskFormatError(f"{path}, line {line_of(event)}: nested more than {MAX_DEPTH} deep. Correct it.")
