"""One answer -> why: the examples that made it, the metrics that counted, and what spoke against it.

Every metric gives each label a probability. It is parted among the label's examples by how like them the text is, times
the weight of the metric: the shares of all examples sum to one, and those of a label to what the mix gave it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manymetrics.classifier.examples import SupportSet
from manymetrics.values import Floats
from manymetrics.values.notebook import html_text

NEAREST = 5
FEW_TASKS = 5


@dataclass(frozen=True, eq=False)
class Part:
    """What one member of the mix answers on a text."""

    name: str
    kind: str
    weight: float
    tasks: tuple[str, ...]
    probabilities: Floats  # (labels,)
    cosines: Floats  # (examples,)


@dataclass(frozen=True)
class NearExample:
    """An example that counted."""

    text: str
    label: Any
    share: float  # of the decision
    similarity: float  # the metrics' mean cosine with the text, by their weights


@dataclass(frozen=True)
class Vote:
    """A metric that counted."""

    metric: str
    kind: str
    weight: float
    label: Any  # the one it finds likeliest
    probability: float
    tasks: tuple[str, ...]  # of the bank, that it was learned from


@dataclass(frozen=True)
class Explanation:
    """Why a text is answered as it is."""

    text: str
    label: Any
    probability: float
    runner_up: Any
    runner_up_probability: float
    scope: float  # the probability that the text is in scope
    examples: tuple[NearExample, ...]
    metrics: tuple[Vote, ...]
    rejected: str | None
    fallback: str | None
    route: str | None  # which tasks of the bank this one is taken for, and why
    names: bool  # whether the names of the labels count as examples

    def _repr_html_(self) -> str:
        return html_text(str(self))

    def __str__(self) -> str:
        lines = [f"{self.text!r} -> {self.label} ({self.probability:.0%}), before {self.runner_up} "
                 f"({self.runner_up_probability:.0%}); in scope with {self.scope:.0%}"]  # fmt: skip
        lines += [f"Rejected: {self.rejected}"] if self.rejected else []
        lines += [self.fallback] if self.fallback else []
        lines += [f"This task is {self.route}."] if self.route and not self.fallback else []
        lines.append(f"The examples that decided{', beside the names of the labels' if self.names else ''}:")
        lines += [
            f"  {one.share:4.0%}  {one.label}: {one.text!r} (similarity {one.similarity:.2f})" for one in self.examples
        ]
        lines.append("The metrics that counted:")
        for vote in self.metrics:
            tasks = ", ".join(vote.tasks[:FEW_TASKS]) + (", ..." if len(vote.tasks) > FEW_TASKS else "")
            source = f"; learned from {len(vote.tasks)} tasks: {tasks}" if vote.tasks else ""
            lines.append(f"  {vote.weight:4.0%}  {vote.metric} ({vote.kind}) says {vote.label} "
                         f"({vote.probability:.0%}){source}")  # fmt: skip
        return "\n".join(lines)


def explain_text(text: str, support: SupportSet, probabilities: Floats, parts: Sequence[Part], *, scope: float,
                 rejected: str | None, fallback: str | None, route: str | None = None,
                 names: bool = False) -> Explanation:  # fmt: skip
    """The answer `probabilities` (labels,) taken apart."""
    shares, similarity = part_among_examples(parts, support)
    labels = support.classes.tolist()
    first, second = (int(place) for place in np.argsort(-probabilities, kind="stable")[:2])
    nearest = [int(row) for row in np.argsort(-shares, kind="stable")[:NEAREST] if shares[row] > 0]
    votes = [
        Vote(
            part.name,
            part.kind,
            part.weight,
            labels[int(part.probabilities.argmax())],
            float(part.probabilities.max()),
            part.tasks,
        )
        for part in sorted(parts, key=lambda part: -part.weight)
        if abs(part.weight) > 1e-6
    ]
    return Explanation(
        text,
        labels[first],
        float(probabilities[first]),
        labels[second],
        float(probabilities[second]),
        scope,
        tuple(
            NearExample(support.texts[r], support.labels[r], float(shares[r]), float(similarity[r])) for r in nearest
        ),
        tuple(votes),
        rejected,
        fallback,
        route,
        names,
    )


def part_among_examples(parts: Sequence[Part], support: SupportSet) -> tuple[Floats, Floats]:
    """Each example's share of the decision and its similarity to the text: (examples,) each."""
    numbers, count = support.numbers, len(support.classes)
    shares, similarity, counted = np.zeros(len(numbers)), np.zeros(len(numbers)), 0.0
    for part in parts:
        pull = np.maximum(part.cosines, 1e-6)
        totals = np.bincount(numbers, weights=pull, minlength=count)  # (labels,)
        shares += abs(part.weight) * part.probabilities[numbers] * pull / totals[numbers]
        similarity += abs(part.weight) * part.cosines
        counted += abs(part.weight)
    return shares / max(shares.sum(), 1e-12), similarity / max(counted, 1e-12)
