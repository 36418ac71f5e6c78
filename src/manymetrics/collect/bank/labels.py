"""Labels of a task that differ only in case or white space.

To a classifier `Positive`, `positive` and `POSITIVE` are three labels.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping

from manymetrics.errors import list_first
from manymetrics.values import Examples

DIFFERENCE = "Labels that differ only in case or white space"

SimilarLabels = dict[str, int]  # label -> number of its examples, the most frequent label first


def describe_similar_labels(groups: Mapping[str, tuple[SimilarLabels, ...]], *, joined: bool = False) -> str:
    """A sentence on the groups of similar labels of each task; empty if there are none."""
    listed = [
        f"{task}: " + ", ".join(f"{label!r} ({count:,})" for label, count in group.items())
        for task, of_task in groups.items()
        for group in of_task
    ]
    if not listed:
        return ""
    first = list_first(listed, "; ", "; and {:,} more groups")
    if joined:
        return f"{DIFFERENCE} are joined, each group under its most frequent label: {first}."
    return f"{DIFFERENCE} count as different labels: {first}. `import --fold-labels` joins them."


def similar_labels(*parts: Examples) -> tuple[SimilarLabels, ...]:
    """The groups of labels of a task's examples that differ only in case or white space."""
    counts = Counter(label for part in parts for label in part.labels)
    groups: defaultdict[str, SimilarLabels] = defaultdict(dict)
    for label, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        groups[" ".join(label.casefold().split())][label] = count
    return tuple(group for group in groups.values() if len(group) > 1)


def fold_labels(parts: Mapping[str, Examples]) -> tuple[dict[str, Examples], tuple[SimilarLabels, ...]]:
    """The parts of a task with one label for each group, its most frequent one; and the groups."""
    groups = similar_labels(*parts.values())
    folded = {label: next(iter(group)) for group in groups for label in group}
    return {
        name: Examples(part.texts, tuple(folded.get(label, label) for label in part.labels))
        for name, part in parts.items()
    }, groups
