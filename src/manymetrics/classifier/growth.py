"""A task's examples, and some more or fewer -> the examples to fit.

A fit takes milliseconds, and its result depends on the examples alone, not on how they came together. So growing and
shrinking are a fit on what there is afterwards: nothing is left of an example that was removed.
"""

from collections.abc import Container, Iterable, Sequence
from typing import Any

from manymetrics.classifier.examples import as_labels, as_texts
from manymetrics.errors import DataError, InputError

Pairs = Sequence[tuple[str, Any]]
Columns = tuple[list[str], list[Any]]


def with_examples(own: Pairs, texts: Iterable[str], labels: Iterable[Any]) -> Columns:
    """The examples and some more."""
    more, theirs = as_texts(texts), as_labels(labels)
    if len(more) != len(theirs):
        raise DataError(f"Found {len(more)} texts and {len(theirs)} labels. Give one label for each text.")
    return _columns([*own, *zip(more, theirs, strict=True)])


def without_examples(own: Pairs, texts: Iterable[str]) -> Columns:
    """The examples less those with these texts."""
    gone = set(as_texts(texts))
    there = {text for text, _ in own}
    for text in sorted(gone):
        if text not in there:
            raise InputError(f"There is no example {text!r} to remove. Give the text as it was given.")
    return _columns([pair for pair in own if pair[0] not in gone])


def without_label(own: Pairs, label: Any, described: Container[Any] = ()) -> Columns:
    """The examples less those of a label, which may have none where it is described."""
    kept = [pair for pair in own if pair[1] != label]
    if len(kept) == len(own) and label not in described:
        raise InputError(f"There is no label {label!r} to forget. Give a label of the examples.")
    return _columns(kept)


def _columns(pairs: Pairs) -> Columns:
    return [text for text, _ in pairs], [label for _, label in pairs]
