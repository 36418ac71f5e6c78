"""Metrics and a task's examples -> the members of its mix: each metric, and a regression.

A metric compares a text with each label's examples taken together. The regression sees the text's cosine with
each single example, summed over all metrics. So each metric contributes probabilities to the mix and cosines to the
regression. Where label names count they are one more example of each label for all of these.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manymetrics.encode.encoder import Encoder, Features
from manymetrics.encode.projection import ProjectionEncoder
from manymetrics.specialize.metric import (
    FROZEN,
    LEARNED,
    LEXICAL,
    LINEAR,
    TUNED,
    Metric,
    SharedLabelMetric,
    answer_examples,
    base_rate,
)
from manymetrics.values import Floats, Ints, LabelledTexts, Texts
from manymetrics.weigh.comparison import Comparison, choose_landmarks
from manymetrics.weigh.regression import Logistic
from manymetrics.weigh.routing import Route
from manymetrics.weigh.settings import LEAST_SHARE, MixSettings

REGRESSION = "regression"  # its name and its kind
# What the cosines of each kind of metric count for in the regression, chosen on meta-validation tasks. A cluster's
# projection is a step away from the one of all tasks, so that this one is in it already.
KERNEL_SHARES = {TUNED: 1.0, LINEAR: 1.0, LEARNED: 0.5, FROZEN: 0.5, LEXICAL: 0.3}
SHARES_OF_PROJECTIONS = {LEARNED: 1.0, FROZEN: 0.5, LEXICAL: 0.15}


@dataclass(frozen=True)
class Member:
    """A metric, or the regression on all of them, as a part of a mix."""

    name: str
    kind: str
    tasks: tuple[str, ...]  # of the bank, that it was learned from
    cluster: int | None = None

    @property
    def size(self) -> int:
        """How many tasks it was learned from; 1 where it learned from none."""
        return max(1, len(self.tasks))

    @property
    def group(self) -> str:
        """Whose answers are added up to its own before groups are multiplied: the clusters' metrics are one group."""
        return self.kind if self.kind == LEARNED else self.name


class Ensemble:
    """The members of a mix, each knowing the examples of a task.

    members         who they are
    leave_one_out   (examples, members, classes): each example as though it had not been given
    examples        the examples compared with themselves
    labels          (examples and names,): the number of the label of each
    base_rates      (members, classes): how common each takes the labels to be

    With `names`, a text for each class, the name of a label is one more example of it, behind all others. With a
    `route`, the clusters' metrics count beforehand for as much as the task is likely to be of their cluster; without
    one, for as much as tasks they were learned from.
    """

    def __init__(self, metrics: Sequence[Metric], support: LabelledTexts, classes: tuple[str, ...], *,
                 regression: bool = True, names: Texts | None = None, route: Route | None = None) -> None:  # fmt: skip
        self.uses_names, self.route = names is not None, route
        if names is not None:
            count = len(support) or len(names)
            support = LabelledTexts.join([support, LabelledTexts(names, np.arange(len(names)))])
        else:
            count = len(support)
        features = Features(support.texts)
        self.examples = Comparison(features, features, choose_landmarks(len(support)), count)
        self.labels = support.labels
        self.members = tuple(Member(one.name, one.kind, one.tasks, one.cluster) for one in metrics)
        self.encoders = tuple(metric.encoder for metric in metrics)
        self._shared_labels = any(isinstance(metric, SharedLabelMetric) for metric in metrics)
        self.base_rates = np.stack([base_rate(metric, classes) for metric in metrics])  # (metrics, classes)
        self._fitted = [metric.learn(features, support.labels, classes) for metric in metrics]
        leave_one_out = [fitted.leave_one_out() for fitted in self._fitted]
        self._scales: dict[Encoder, float] = {}
        self._regression: Logistic | None = None
        if regression:
            self._scales = self._kernel_scales()
            kernel = self._kernel(self.examples)
            self._regression = Logistic(kernel, self.examples.landmarks, support.labels, len(classes))
            leave_one_out.append(self._regression.leave_one_out())
            self.members += (Member(REGRESSION, REGRESSION, ()),)
            self.base_rates = np.concatenate([self.base_rates, np.full((1, len(classes)), 1 / len(classes))])
        shots = len(support) - len(classes) if self.uses_names else len(support)
        self.leave_one_out = np.stack(leave_one_out, axis=1)[:shots]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of the members."""
        return tuple(member.kind for member in self.members)

    @property
    def clusters(self) -> Ints | None:
        """Members with the same number speak for the same cluster: (members,); None where tasks share no labels.

        Where they do, clusters differ in what the labels mean, and one of them is right. Elsewhere every member learned
        the examples, and members are merely better or worse.
        """
        if not self._shared_labels:
            return None
        numbers: dict[tuple[str, object], int] = {}
        for member in self.members:
            numbers.setdefault(_speaks_for(member), len(numbers))
        return np.array([numbers[_speaks_for(member)] for member in self.members])

    @property
    def groups(self) -> tuple[str, ...]:
        """Of the members."""
        return tuple(member.group for member in self.members)

    @property
    def sizes(self) -> tuple[float, ...]:
        """What each member counts for within its kind before any example is seen."""
        if self.route is None:
            return tuple(float(member.size) for member in self.members)
        shares = dict(enumerate(self.route.clusters))
        own = {member.cluster for member in self.members if member.kind == LEARNED}
        rest = max(1.0 - sum(shares[number] for number in own if number is not None), 0.0)
        return tuple(
            float(member.size) if member.kind != LEARNED
            else max(rest if member.cluster is None else shares[member.cluster], LEAST_SHARE)
            for member in self.members
        )  # fmt: skip

    def prior(self, settings: MixSettings) -> Floats:
        """What each member counts for before any example is seen: (members,)."""
        return settings.prior(self.kinds, self.sizes)

    def compare(self, features: Features) -> Comparison:
        """Texts compared with the examples of the task."""
        return Comparison(features, self.examples.examples, self.examples.landmarks, self.examples.count)

    def probabilities(self, texts: Comparison, members: Ints) -> Floats:
        """P(y | x) of some members, by their places: (texts, members, classes)."""
        answers = []
        for place in members.tolist():
            if place < len(self._fitted):
                answers.append(self._fitted[place].probabilities(texts.features))
            elif self._regression is not None:
                answers.append(self._regression.probabilities(self._kernel(texts)))
        return np.stack(answers, axis=1)

    def answer_examples(self) -> Floats:
        """What the paper fits its weights on: P(y | x) of each example, (examples, metrics, classes)."""
        return np.stack([answer_examples(fitted, self.examples.features) for fitted in self._fitted], axis=1)

    def cosines(self, texts: Comparison) -> list[Floats]:
        """How like each example each member finds the texts: (texts, examples) of each."""
        found = [texts.cosines(encoder) for encoder in self.encoders]
        if self._regression is not None:
            total = sum(self._scales.values())
            found.append(sum(scale / total * texts.cosines(encoder) for encoder, scale in self._scales.items()))  # type: ignore[arg-type]
        return [cosines[:, : texts.count] for cosines in found]

    def _kernel_scales(self) -> dict[Encoder, float]:
        """How much the cosines of each encoder count in the regression: a kind's share, by the metrics' sizes."""
        prior = self.prior(MixSettings()) * len(set(self.kinds))  # (members,)
        every = list(zip(self.encoders, self.kinds, prior.tolist(), strict=True))
        projected = any(kind == LEARNED and isinstance(encoder, ProjectionEncoder) for encoder, kind, _ in every)
        shares = SHARES_OF_PROJECTIONS if projected else KERNEL_SHARES
        scales: dict[Encoder, float] = {}
        for encoder, kind, part in every:
            if shares.get(kind, 0.0) * part > LEAST_SHARE:
                scales[encoder] = scales.get(encoder, 0.0) + shares[kind] * part
        return scales

    def _kernel(self, texts: Comparison) -> Floats:
        """All metrics' cosines with the landmarks, added up: (texts, landmarks)."""
        kernel = np.zeros((len(texts.features), len(texts.landmarks)))
        for encoder, scale in self._scales.items():
            kernel += scale * texts.to_landmarks(encoder)
        return kernel


def _speaks_for(member: Member) -> tuple[str, object]:
    return ("member", member.name) if member.cluster is None else ("cluster", member.cluster)
