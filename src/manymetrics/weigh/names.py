"""The names of a task's labels and its examples -> whether the names say something about the texts.

A permutation test: names that mean their labels fit the labels' texts better than the same names dealt to the labels at
random. Names that are numbers need no test.
"""

from collections.abc import Iterable

import numpy as np

from manymetrics.encode.encoder import Encoder, Features
from manymetrics.specialize.metric import dense
from manymetrics.values import Ints, Texts

FOR_ANY_LABEL = {
    "label", "class", "category", "intent", "tag", "type", "group", "topic", "id", "no", "nr", "number", "option",
    "value", "code",
}  # fmt: skip
EVIDENCE_A_LABEL, MOST_EVIDENCE = 0.25, 3.0  # that names say something; see `enough_evidence`
_ROUNDING = 1e-6


def say_something(names: Iterable[str]) -> bool:
    """Whether at least half of these names are more than numbers, single letters and words for any label: "class 3"."""
    found = [
        any(len(word) > 1 and not word.isdecimal() and word not in FOR_ANY_LABEL for word in name.split())
        for name in names
    ]
    return 2 * sum(found) >= len(found)


def names_speak(encoder: Encoder, texts: Texts, labels: Ints, names: Texts) -> float:
    """How much better the names fit their labels' texts than names dealt at random would, in standard deviations.

    A text is like a name by their cosine. The mean and the deviation over all ways to deal the names are known without
    dealing: names that were numbered or shuffled come out near 0. Infinite where there is no text to tell by.
    """
    if not len(texts):
        return float("inf")
    cosines = dense(Features(texts).directions(encoder) @ Features(names).directions(encoder).T)  # (texts, names)
    alike = np.zeros((len(names), len(names)))  # (labels, names)
    np.add.at(alike, labels, cosines.astype(np.float64))
    alike -= alike.mean(axis=1, keepdims=True)
    alike -= alike.mean(axis=0)
    deviation = np.sqrt((alike**2).sum() / max(len(names) - 1, 1))
    return float(np.trace(alike) / deviation) if deviation > _ROUNDING else 0.0


def enough_evidence(labels: int) -> float:
    """How much names must speak to count: with few labels, deviations are small and wrong names do little harm."""
    return min(EVIDENCE_A_LABEL * labels, MOST_EVIDENCE)
