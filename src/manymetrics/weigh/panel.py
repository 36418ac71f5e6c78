"""Metrics and a few examples -> everybody who is asked about a text: each metric, and one regression over all of them.

A metric compares a text with each label's examples taken together. The regression (`TOGETHER`) sees how like each
single example the text is, all metrics' likenesses added up, and learns from the examples what that says about the
labels. So metrics meet twice: as answers that are mixed, and as likenesses in one space.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manymetrics.encode.tokens import Tokens
from manymetrics.specialize.metric import Fitted, Metric, SharedLabelMetric, voice
from manymetrics.values import Floats, Ints
from manymetrics.weigh.ridge import Ridge, spread
from manymetrics.weigh.rules import Rules

TOGETHER = "together"  # the name and the kind of the regression

Said = tuple[Floats, Floats]  # P(y | x) and the cosines with all examples: (texts, classes), (texts, examples)


@dataclass(frozen=True)
class Member:
    """Who is asked."""

    name: str
    kind: str
    tasks: tuple[str, ...]  # of the bank, that it was learned from

    @property
    def size(self) -> int:
        """How many tasks it was learned from; 1 where it learned from none."""
        return max(1, len(self.tasks))


class Panel:
    """The members of a mix, each knowing the examples of a task.

    members     who they are
    left_out    (examples, members, classes): each example as though it had not been given
    """

    def __init__(self, metrics: Sequence[Metric], shots: Tokens, labels: Ints, classes: Sequence[Any], *,
                 together: bool = True) -> None:  # fmt: skip
        self.fitted = fit_metrics(metrics, shots, labels, classes)
        self._shared = any(isinstance(metric, SharedLabelMetric) for metric in metrics)
        self.members = tuple(Member(metric.name, metric.kind, metric.tasks) for metric in metrics)
        left_out = [one.chances_left_out() for one in self.fitted]
        self._ridge: Ridge | None = None
        if together:
            self._scales = self.prior(Rules()) * len({member.kind for member in self.members})  # kinds count alike
            self._kept = spread(len(shots))
            self._ridge = Ridge(self._own_likeness(), self._kept, labels, len(classes))
            left_out.append(self._ridge.chances_left_out())
            self.members += (Member(TOGETHER, TOGETHER, ()),)
        self.left_out = np.stack(left_out, axis=1)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of the members."""
        return tuple(member.kind for member in self.members)

    @property
    def voices(self) -> Ints | None:
        """Members with the same number speak for the same cluster: (members,); None where tasks share no labels.

        Where they do, clusters differ in what the labels mean, and one of them is right. Elsewhere every member learned
        the examples, and members are merely better or worse.
        """
        if not self._shared:
            return None
        _, numbers = np.unique([voice(member.name) for member in self.members], return_inverse=True)
        return numbers

    def prior(self, rules: Rules) -> Floats:
        """What each member counts for before any example is seen: (members,)."""
        return rules.prior(self.kinds, [member.size for member in self.members])

    def chances(self, tokens: Tokens, members: Ints, known: Mapping[int, Said] | None = None) -> Floats:
        """P(y | x) of some members, by their places: (texts, members, classes).

        `known` holds what was asked of a fitted metric already, by its id.
        """
        known = known or {}
        if self._ridge is None or len(self.fitted) not in members:
            asked = [self.fitted[place] for place in members]
            return np.stack([known[id(one)][0] if id(one) in known else one.chances(tokens) for one in asked], axis=1)
        answers, likeness = [], np.zeros((len(tokens), len(self._kept)))
        for scale, one in zip(self._scales, self.fitted, strict=True):
            chances, cosines = self._compare(one, tokens, known)
            answers.append(chances)
            likeness += scale * cosines
        answers.append(self._ridge.chances(likeness))
        return np.stack([answers[place] for place in members], axis=1)

    def explain(self, tokens: Tokens) -> list[Said]:
        """What each member says of one text: (classes,), and how like each example it finds it: (examples,)."""
        said = [(chances[0], cosines[0]) for chances, cosines in (one.compare(tokens) for one in self.fitted)]
        if self._ridge is not None:
            likeness = self._scales @ np.stack([cosines for _, cosines in said])  # (examples,)
            said.append((self._ridge.chances(likeness[None, self._kept])[0], likeness / self._scales.sum()))
        return said

    def _compare(self, one: Fitted, tokens: Tokens, known: Mapping[int, Said]) -> Said:
        """P(y | x), and the cosines with the examples that the regression looks at."""
        if id(one) in known:
            chances, cosines = known[id(one)]
            return chances, cosines[:, self._kept]
        return one.compare(tokens, self._kept)

    def _own_likeness(self) -> Floats:
        """All metrics' likeness of the examples with those that are kept: (examples, kept)."""
        pairs = zip(self._scales, self.fitted, strict=True)
        return sum(scale * one.own_cosines(self._kept).astype(np.float64) for scale, one in pairs)  # type: ignore[no-any-return]


def fit_metrics(metrics: Sequence[Metric], shots: Tokens, labels: Ints, classes: Sequence[Any]) -> list[Fitted]:
    """Every metric takes in the shots."""
    names = tuple(str(label) for label in classes)
    return [metric.learn(shots, labels, names) for metric in metrics]
