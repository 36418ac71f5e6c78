"""YAML text -> a tree of nodes that know their lines.

YAML is only composed, never constructed: no tag of a foreign file can make an object, and a name such as `yes` stays a
word.
"""

from collections.abc import Iterable
from pathlib import Path

import yaml
from yaml.events import CollectionEndEvent, CollectionStartEvent, Event
from yaml.nodes import MappingNode, Node, ScalarNode

from manymetrics.errors import TaskFormatError

MAX_DEPTH = 50
MAX_VALUES = 1_000_000  # in one file; each takes far more memory than its letters do


def compose(text: str, path: Path) -> Node | None:
    """The tree of a YAML document; `path` is named in errors."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _refuse_monsters(path, yaml.parse(text, Loader=loader))
        tree: Node | None = yaml.compose(text, Loader=loader)
        return tree
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise TaskFormatError(
            f"{path}{where}: this is not YAML ({reason}). Check the indentation and quotes."
        ) from None


def fields_of(node: Node | None) -> dict[str, Node]:
    """The fields of a mapping by their names; none, if it is no mapping."""
    if not isinstance(node, MappingNode):
        return {}
    return {key.value: value for key, value in node.value if isinstance(key, ScalarNode)}


def line_of(node: Node | Event) -> int:
    """The line where a node begins."""
    return node.start_mark.line + 1 if node.start_mark else 1


def _refuse_monsters(path: Path, events: Iterable[Event]) -> None:
    """Refuse a file with more values than any that is wanted, or nested deeper, which would overflow the C stack."""
    depth = 0
    for number, event in enumerate(events):
        if number > MAX_VALUES:
            raise TaskFormatError(f"{path}: found more than {MAX_VALUES:,} values. Split the file in several.")
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise TaskFormatError(
                f"{path}, line {line_of(event)}: lists and mappings are nested more than {MAX_DEPTH} deep, "
                "which no NLU file is. Check the brackets and the indentation."
            )
