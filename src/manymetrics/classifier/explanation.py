"""Why a text is answered as it is: the examples that decided, and the share of each encoder.

The logit of a label is a sum over the examples: the similarity of the text to each times the example's coefficient. An
example's share is what it adds to the logit of the answer.
"""

from dataclasses import dataclass
from typing import Any

N_TASKS = 5  # of a metric, shown


@dataclass(frozen=True)
class NearExample:
    """An example with a share in the decision."""

    text: str
    label: Any
    share: float  # of the decision
    similarity: float  # to the text, in the task's metric


@dataclass(frozen=True)
class Vote:
    """A metric with weight, and its answer."""

    metric: str
    kind: str
    weight: float
    label: Any  # its most probable one
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
    assignment: str | None  # which cluster the task is assigned to, and why
    names: bool  # whether the names of the labels count as examples

    def __str__(self) -> str:
        lines = [f"{self.text!r} -> {self.label} ({self.probability:.0%}), before {self.runner_up} "
                 f"({self.runner_up_probability:.0%}); in scope with {self.scope:.0%}"]  # fmt: skip
        lines += [f"Rejected: {self.rejected}"] if self.rejected else []
        lines += [self.fallback] if self.fallback else []
        lines += [f"This task is {self.assignment}."] if self.assignment and not self.fallback else []
        lines.append(f"The examples that decided{', beside the names of the labels' if self.names else ''}:")
        lines += [
            f"  {example.share:4.0%}  {example.label}: {example.text!r} (similarity {example.similarity:.2f})"
            for example in self.examples
        ]
        lines.append("The metrics that decided:")
        for vote in self.metrics:
            tasks = ", ".join(vote.tasks[:N_TASKS]) + (", ..." if len(vote.tasks) > N_TASKS else "")
            source = f"; learned from {len(vote.tasks)} tasks: {tasks}" if vote.tasks else ""
            lines.append(f"  {vote.weight:4.0%}  {vote.metric} ({vote.kind}) answers {vote.label} "
                         f"({vote.probability:.0%}){source}")  # fmt: skip
        return "\n".join(lines)
