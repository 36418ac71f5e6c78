"""Unlabelled texts -> which to label next, and why.

A text is worth a label when its answer is uncertain or when it is far from every example. Uncertain texts are often
similar to one another, so each choice also avoids texts similar to those chosen before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manymetrics.encode.encoder import dense
from manymetrics.errors import InputError
from manymetrics.values import Floats


@dataclass(frozen=True)
class Suggestion:
    """A text to label."""

    text: str
    reason: str
    label: Any  # the most probable so far
    probability: float


def suggest_texts(texts: Sequence[str], labels: Sequence[Any], probabilities: Floats, scope: Floats, *,
                  embeddings: Any, count: int) -> tuple[Suggestion, ...]:  # fmt: skip
    """The texts most worth a label: probabilities (texts, labels), scope (texts,), unit embeddings (texts, width)."""
    if count < 1:
        raise InputError(f"Found count={count}. Ask for at least one text.")
    ordered = np.sort(probabilities, axis=1)
    uncertainty = 1 - (ordered[:, -1] - ordered[:, -2])  # (texts,)
    value = np.maximum(uncertainty, 1 - scope)
    distance = np.ones(len(texts))  # 1 less the largest cosine with a text chosen before
    chosen: list[int] = []
    while len(chosen) < min(count, len(texts)):
        gain = value * np.maximum(distance, 1e-6)
        gain[chosen] = -1
        best = int(gain.argmax())
        chosen.append(best)
        cosines = dense(embeddings @ embeddings[[best]].T)[:, 0]
        distance = np.minimum(distance, 1 - np.maximum(cosines, 0))
    return tuple(
        Suggestion(texts[row], _reason(labels, probabilities[row], float(scope[row]), float(uncertainty[row])),
                   labels[int(probabilities[row].argmax())], float(probabilities[row].max()))
        for row in chosen
    )  # fmt: skip


def _reason(labels: Sequence[Any], probabilities: Floats, scope: float, uncertainty: float) -> str:
    if 1 - scope > uncertainty:
        return f"far from all examples: in scope with {scope:.0%}"
    first, second = (int(index) for index in np.argsort(-probabilities, kind="stable")[:2])
    return f"uncertain: {labels[first]} ({probabilities[first]:.0%}) or {labels[second]} ({probabilities[second]:.0%})"
