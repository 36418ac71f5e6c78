"""Unlabelled texts -> which to label next, and why.

A text is worth a label when its answer is uncertain or when it is unlike every example. The most uncertain ones tend to
be alike, so each choice also keeps away from those made before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manymetrics.errors import InputError
from manymetrics.specialize.metric import dense
from manymetrics.values import Floats


@dataclass(frozen=True)
class Suggestion:
    """A text to label."""

    text: str
    reason: str
    label: Any  # the likeliest so far
    probability: float


def suggest_texts(texts: Sequence[str], labels: Sequence[Any], probabilities: Floats, scope: Floats, *, rows: Any,
                  count: int) -> tuple[Suggestion, ...]:  # fmt: skip
    """The texts worth labelling most: probabilities (texts, labels), scope (texts,), rows (texts, d) of length one."""
    if count < 1:
        raise InputError(f"Found a count of {count}. Ask for one text at least.")
    ordered = np.sort(probabilities, axis=1)
    doubt = 1 - (ordered[:, -1] - ordered[:, -2])  # (texts,)
    worth = np.maximum(doubt, 1 - scope)
    apart = np.ones(len(texts))  # 1 less the largest cosine with a text chosen before
    chosen: list[int] = []
    while len(chosen) < min(count, len(texts)):
        gain = worth * np.maximum(apart, 1e-6)
        gain[chosen] = -1
        best = int(gain.argmax())
        chosen.append(best)
        apart = np.minimum(apart, 1 - np.maximum(dense(rows @ rows[[best]].T)[:, 0], 0))
    return tuple(
        Suggestion(texts[row], _reason(labels, probabilities[row], float(scope[row]), float(doubt[row])),
                   labels[int(probabilities[row].argmax())], float(probabilities[row].max()))
        for row in chosen
    )  # fmt: skip


def _reason(labels: Sequence[Any], probabilities: Floats, scope: float, doubt: float) -> str:
    if 1 - scope > doubt:
        return f"far from all examples: in scope with {scope:.0%}"
    first, second = (int(place) for place in np.argsort(-probabilities, kind="stable")[:2])
    return f"uncertain: {labels[first]} ({probabilities[first]:.0%}) or {labels[second]} ({probabilities[second]:.0%})"
