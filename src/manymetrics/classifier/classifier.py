"""A model and a task's examples -> a classifier: one frozen value for each state, one method that answers a batch.

Paper: section 3.2.2 and "Adaptive RobustTC-FSL". Names here and there:
    adapted.weights           alpha_k
    adapted.fallback_reason   why no cluster fits the task, or None
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from manymetrics.classifier.confidence import TaskScope, apply_class_prior, calibrate, fit_own_temperature, lower_bound
from manymetrics.classifier.examples import SupportSet
from manymetrics.classifier.predictor import Predictor
from manymetrics.encode.encoder import EmbeddedTexts, dense
from manymetrics.errors import NotEnoughExamples
from manymetrics.specialize.metric import FROZEN, LEARNED, LINEAR, Metric
from manymetrics.values import Bools, Examples, Floats, Ints
from manymetrics.weigh.assignment import Assignment
from manymetrics.weigh.fallback import leave_out_shots, why_better_without, why_chance
from manymetrics.weigh.published import PublishedTask
from manymetrics.weigh.task_metric import (
    SharedLabelHead,
    TaskHead,
    TaskMetric,
    are_words,
    encoder_weights,
    fit_head,
    log_odds_of_names,
)

N_EXAMPLES = 5  # that an explanation names
MIN_WEIGHT = 1e-6  # of a metric that an explanation names
N_TASKS = 5  # of a metric, that a printed explanation names


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers to a batch of texts."""

    probabilities: Floats  # (texts, labels)
    scope: Floats  # (texts,): the probability of being in scope
    rejected: Bools  # (texts,): none of the labels fits
    reasons: tuple[str | None, ...]  # (texts,): why each was rejected

    @property
    def most_probable(self) -> Ints:
        """The index of the most probable label, the first of equal ones: (texts,)."""
        return self.probabilities.argmax(axis=1)  # type: ignore[no-any-return]

    @classmethod
    def join(cls, batches: "Sequence[Answers]") -> "Answers":
        """The answers to several batches, in order."""
        return cls(
            np.concatenate([batch.probabilities for batch in batches]),
            np.concatenate([batch.scope for batch in batches]),
            np.concatenate([batch.rejected for batch in batches]),
            tuple(reason for batch in batches for reason in batch.reasons),
        )


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
    """Why a text is answered as it is: the examples that decided, and the share of each encoder.

    The logit of a label is a sum over the examples: the similarity of the text to each times the example's coefficient.
    An example's share is what it adds to the logit of the answer.
    """

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


@dataclass(frozen=True, eq=False)
class OwnSteps:
    """The outcome of gradient steps on the shots of a task: see `own_steps`."""

    steps: int  # 0: none are used
    reason: str  # why they are used, or why not
    tensors: Mapping[str, Floats]  # of the low-rank factors; empty where no steps are used
    temperature: float = 1.0  # that the logits are divided by


@dataclass(frozen=True, eq=False)
class Classifier:
    """A classifier of one task, immutable."""

    support: SupportSet
    counter_examples: tuple[str, ...]
    metrics: tuple[Metric, ...]
    weights: Floats  # (metrics,)
    head: TaskHead | PublishedTask
    assignment: Assignment | None
    uses_names: bool
    fallback_reason: str | None
    scope: TaskScope
    own_temperature: float  # that fits the left-out shots best
    temperature: float | None  # None: no calibration
    base_rate: Floats  # (labels,): share of each label before a text is seen
    own_steps: OwnSteps | None = None

    def answer(self, texts: Iterable[str] | EmbeddedTexts, *, threshold: float | None = None, margin: float = 0.0,
               prior: Floats | None = None) -> Answers:  # fmt: skip
        """Answer a batch of texts.

        A text is rejected below `threshold` of being in scope, or where two labels are within `margin`. `prior`
        (labels,) is the share of each label among the texts.
        """
        features = EmbeddedTexts.of(texts)
        log_odds, logits = self.scope.log_odds(features), self.head.logits(features)
        scope, temperature = expit(log_odds), self.temperature
        probabilities = softmax(logits, axis=1) if temperature is None else calibrate(logits, temperature, log_odds)
        if prior is not None:
            probabilities = apply_class_prior(probabilities, prior, self.base_rate)
        outside = np.zeros(len(scope), dtype=bool) if threshold is None else scope < threshold
        order = np.argsort(-probabilities, axis=1, kind="stable")[:, :2]  # (texts, 2)
        best = np.take_along_axis(probabilities, order, axis=1)
        rejected = outside | (best[:, 0] - best[:, 1] < margin)
        reasons: list[str | None] = [None] * len(scope)
        for row in np.flatnonzero(rejected).tolist():
            first, second = self.support.classes[order[row]]
            reasons[row] = (
                f"the text is in scope with a probability of {scope[row]:.0%}, below the threshold of {threshold:.0%}: "
                "no example is similar enough."
                if outside[row]
                else f"{first} ({best[row, 0]:.0%}) and {second} ({best[row, 1]:.0%}) are closer than the margin of "
                f"{margin:.0%}."
            )
        return Answers(probabilities, scope, rejected, tuple(reasons))

    def scope_threshold(self, share: float) -> float:
        """The probability of being in scope that about this share of the texts in scope falls below.

        Estimated from the task's distinct examples, each left out in turn, whose label has another one.
        """
        labels = self.support.numbers
        labels = labels[self.scope.distinct] if len(labels) else labels  # without examples the scope has the names
        known = np.bincount(labels, minlength=len(self.support.classes))[labels] > 1
        if known.sum() < 2:
            raise NotEnoughExamples(
                "The share of texts that a threshold loses is estimated from examples that are left out, and fewer "
                "than two can be. Give labels two different examples, or a threshold of your own."
            )
        return float(expit(lower_bound(self.scope.log_odds()[known], share)))

    def explain(self, text: str, *, threshold: float | None = None, margin: float = 0.0,
                prior: Floats | None = None) -> Explanation:  # fmt: skip
        """Why a text is answered as it is."""
        features, labels = EmbeddedTexts([text]), self.support.classes.tolist()
        answers = self.answer(features, threshold=threshold, margin=margin, prior=prior)
        probabilities = answers.probabilities[0].tolist()
        first, second = np.argsort(-answers.probabilities[0], kind="stable")[:2].tolist()
        shares, similarity = self.head.example_shares(features, first, len(self.support))
        examples = [
            NearExample(self.support.texts[row], self.support.labels[row], float(shares[row]), float(similarity[row]))
            for row in np.argsort(-shares, kind="stable")[:N_EXAMPLES]
            if shares[row] > 0
        ]
        votes = []
        for metric, weight in zip(self.metrics, self.weights.tolist(), strict=True):
            if abs(weight) > MIN_WEIGHT:
                logits = self.head.encoder_logits(features, metric.encoder) / (self.temperature or 1.0)
                vote = softmax(logits[0])  # the answer of this metric, if it had all the weight
                label = labels[int(vote.argmax())]
                votes.append(Vote(metric.name, metric.kind, weight, label, float(vote.max()), metric.tasks))
        return Explanation(
            text, labels[first], probabilities[first], labels[second], probabilities[second],
            scope=float(answers.scope[0]),
            examples=tuple(examples),
            metrics=tuple(sorted(votes, key=lambda vote: -vote.weight)),
            rejected=answers.reasons[0],
            fallback=self.fallback_reason,
            assignment=None if self.assignment is None else str(self.assignment),
            names=self.uses_names,
        )  # fmt: skip

    def nearest_examples(self, texts: Sequence[str] | EmbeddedTexts, count: int) -> tuple[Ints, Floats]:
        """The examples most similar to each text by the base encoder, and the cosines: (texts, count) each."""
        encoder, examples = self.scope.encoders[0], self.support.embedded
        cosines = dense(EmbeddedTexts.of(texts).rows(encoder, unit=True) @ examples.rows(encoder, unit=True).T)
        order = np.argsort(-cosines, axis=1, kind="stable")[:, :count]
        return order, np.take_along_axis(cosines, order, axis=1)


def adapt(predictor: Predictor, support: SupportSet, counter_examples: tuple[str, ...] = (), *, adaptive: bool = True,
          label_names: bool = True) -> Classifier:  # fmt: skip
    """Fit the task's own metric, or the frozen encoder alone where no cluster fits the task."""
    predictor = (predictor.for_labels(support.class_names) if label_names else predictor).checked
    in_scope = support.embedded if len(support) else support.embedded_names
    encoders = (predictor.base,) if predictor.letters is None else (predictor.base, predictor.letters)
    scope = TaskScope(predictor.scope, encoders, in_scope, counter_examples)
    if predictor.gradient is None:
        return _fit_regression(predictor, support, counter_examples, scope, adaptive=adaptive, label_names=label_names)
    _require_examples(support, uses_names=False)
    metrics = tuple(metric for metric in predictor.metrics if metric.kind == LEARNED)
    names = support.class_names
    shots = Examples(support.texts, tuple(names[number] for number in support.numbers), names)
    head = PublishedTask.fit(metrics, shots, predictor.gradient, adaptive=adaptive)
    uniform = np.full(len(support.classes), 1 / len(support.classes))
    return Classifier(support, counter_examples, metrics, head.alpha, head, None, False, head.reason, scope, 1.0, None,
                      uniform)  # fmt: skip


def _fit_regression(predictor: Predictor, support: SupportSet, counter_examples: tuple[str, ...], scope: TaskScope, *,
                    adaptive: bool, label_names: bool) -> Classifier:  # fmt: skip
    metrics = tuple(metric for metric in predictor.metrics if metric.kind != LINEAR)
    known = SharedLabelHead.of(predictor.metrics, support.class_names)
    examples, labels, n_classes = support.embedded, support.numbers, len(support.classes)
    has_empty, names = bool(support.empty_labels), support.embedded_names  # a description is always informative
    may_use_names = label_names and not predictor.labels and (has_empty or are_words(support.names))
    assignment = None
    if predictor.assigner is not None:
        assignment = predictor.assigner.assign(predictor.base, examples, names if may_use_names else None)
    weights = encoder_weights(metrics, assignment)
    uses_names = may_use_names and (
        has_empty or log_odds_of_names(TaskMetric.of(metrics, weights, names).kernel(examples), labels) > 0
    )
    _require_examples(support, uses_names=uses_names)
    if uses_names:
        examples, labels = EmbeddedTexts.join([examples, names]), np.concatenate([labels, np.arange(n_classes)])
    head = fit_head(TaskMetric.of(metrics, weights, examples), labels, n_classes, known)
    left_out, reason = leave_out_shots(head, len(support)), None
    if adaptive and known is None:
        is_frozen = np.array([metric.kind == FROZEN for metric in metrics])
        alone = is_frozen / is_frozen.sum()
        frozen = fit_head(TaskMetric.of(metrics, alone, examples), labels, n_classes)
        left_out_alone = leave_out_shots(frozen, len(support))
        reason = why_better_without(left_out, left_out_alone) or why_chance(head, support.texts)
        if reason is not None:
            head, weights, left_out = frozen, alone, left_out_alone
    base_rate = np.full(n_classes, 1 / n_classes) if known is None else known.base_rate
    own_temperature = fit_own_temperature(left_out.logits, left_out.labels)
    temperature = predictor.calibration.temperature(n_classes, own_temperature)
    _ = head.layers  # computed now and not with the first answer
    return Classifier(support, counter_examples, metrics, weights, head, assignment, uses_names, reason, scope,
                      own_temperature, temperature, base_rate)  # fmt: skip


def _require_examples(support: SupportSet, *, uses_names: bool) -> None:
    if support.empty_labels and not uses_names:
        raise NotEnoughExamples(
            f"The label {support.empty_labels[0]!r} has no example, and label names are not used here. "
            "Give it an example, or set label_names=True."
        )
