"""Adding and removing examples.

A fit takes milliseconds and depends on the set of examples alone. So adding and removing are a fit on the resulting
set: nothing remains of an example that was removed.
"""

from collections.abc import Container, Iterable, Sequence
from typing import Any

from manymetrics.classifier.examples import as_labels
from manymetrics.errors import DataError, InputError
from manymetrics.values import as_texts

Pairs = Sequence[tuple[str, Any]]
Columns = tuple[list[str], list[Any]]


def with_examples(examples: Pairs, texts: Iterable[str], labels: Iterable[Any]) -> Columns:
    """The examples and some more."""
    new_texts, new_labels = as_texts(texts), as_labels(labels)
    if len(new_texts) != len(new_labels):
        raise DataError(f"Found {len(new_texts)} texts and {len(new_labels)} labels. Give one label for each text.")
    return _columns([*examples, *zip(new_texts, new_labels, strict=True)])


def without_examples(examples: Pairs, texts: Iterable[str]) -> Columns:
    """The examples without those with these texts."""
    removed = set(as_texts(texts))
    if missing := sorted(removed - {text for text, _ in examples}):
        raise InputError(f"There is no example {missing[0]!r} to remove. Give the text as it was given.")
    return _columns([pair for pair in examples if pair[0] not in removed])


def without_label(examples: Pairs, label: Any, described: Container[Any] = ()) -> Columns:
    """The examples without those of a label, which may have none where it is described."""
    others = [pair for pair in examples if pair[1] != label]
    if len(others) == len(examples) and label not in described:
        raise InputError(f"There is no label {label!r} to forget. Give a label of the examples.")
    return _columns(others)


def _columns(pairs: Pairs) -> Columns:
    return [text for text, _ in pairs], [label for _, label in pairs]
