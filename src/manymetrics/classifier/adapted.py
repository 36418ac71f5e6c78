"""What serves + a task's examples -> a classifier: one frozen value for each state, one method that answers a batch.

Paper: section 3.2.2 and "Adaptive RobustTC-FSL". Names here and there:
    adapted.mix.weights       alpha_k
    adapted.fallback_reason   why the task was found to be out of clusters, or None
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from manymetrics.classifier.calibration import (
    CalibrationCase,
    calibrate,
    fit_leave_one_out,
    follow_prior,
    share_kept,
)
from manymetrics.classifier.examples import SupportSet
from manymetrics.classifier.explanation import Explanation, Part, explain_text
from manymetrics.classifier.scope import TaskScope, lower_bound
from manymetrics.classifier.serving import Serving
from manymetrics.encode.convolution import ConvolutionEncoder
from manymetrics.encode.encoder import Features
from manymetrics.errors import InputError, NotEnoughExamples
from manymetrics.specialize.metric import LEARNED, SharedLabelMetric
from manymetrics.values import NO_TEXTS, Bools, Floats, Mix, Texts
from manymetrics.weigh.comparison import Comparison
from manymetrics.weigh.ensemble import Ensemble
from manymetrics.weigh.fallback import Fallback, NetworkFallback
from manymetrics.weigh.mix import fit_mix_as_published
from manymetrics.weigh.names import enough_evidence, names_speak, say_something
from manymetrics.weigh.pooling import FEWEST, answer_with
from manymetrics.weigh.routing import Route, route_texts
from manymetrics.weigh.selection import lift_over_chance, regression_fallback, unlearned

DEFAULT, PAPER = "default", "paper"
PAPER_THRESHOLD = 0.2  # accuracy on the shots
LEAST_LIFT = 0.25  # of the way from guessing to perfect; a metric that surely stays below does not fit
TEXTS_AT_ONCE = 8192
COSINES_AT_ONCE = 2**23
COUNTS = 1e-6  # a member with less weight need not be asked


@dataclass(frozen=True, eq=False)
class Answers:
    """What is answered on a batch of texts."""

    probabilities: Floats  # (texts, labels)
    scope: Floats  # (texts,): the probability of being in scope
    rejected: Bools  # (texts,): none of the labels fits
    reasons: tuple[str | None, ...]  # of each text, why it was rejected

    @property
    def likeliest(self) -> Floats:
        """The place of the likeliest label, of equal ones the first: (texts,)."""
        return self.probabilities.argmax(axis=1)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of a batch of texts before it is answered."""

    texts: Comparison
    probabilities: Floats  # (texts, labels): of the mix or the fallback, not calibrated
    log_odds: Floats  # (texts,): that they are in scope


@dataclass(frozen=True, eq=False)
class Adapted:
    """A classifier of one task; nothing in it ever changes."""

    support: SupportSet
    counter_examples: Texts
    ensemble: Ensemble
    mix: Mix
    fallback: Fallback | None
    fallback_reason: str | None
    scope: TaskScope
    case: CalibrationCase
    temperature: float | None  # None: probabilities as they come

    def answer(self, texts: Texts, *, threshold: float | None = None, margin: float = 0.0,
               prior: Floats | None = None) -> Answers:  # fmt: skip
        """Answer a batch of texts; below `threshold` of being in scope, or within `margin` of two labels, none fits.

        With `prior` (labels,), labels are as common among the texts as it says.
        """
        evidence = self.examine(texts)
        probabilities, scope = self._calibrated(evidence), expit(evidence.log_odds)
        if prior is not None:
            probabilities = follow_prior(probabilities, prior, self.base_rate)
        outside = np.zeros(len(scope), dtype=bool) if threshold is None else scope < threshold
        order = np.argsort(-probabilities, axis=1, kind="stable")[:, :2]  # (texts, 2)
        best = np.take_along_axis(probabilities, order, axis=1)
        between = best[:, 0] - best[:, 1] < margin
        reasons: list[str | None] = [None] * len(scope)
        for row in np.flatnonzero(outside | between).tolist():
            if outside[row]:
                reasons[row] = (
                    f"the text is in scope with a probability of {scope[row]:.0%}, less than the {threshold:.0%} asked "
                    "for: no example is enough like it."
                )
            else:
                first, second = (self.support.classes[place] for place in order[row])
                reasons[row] = (
                    f"{first} ({best[row, 0]:.0%}) and {second} ({best[row, 1]:.0%}) are closer than the margin of "
                    f"{margin:.0%}."
                )
        return Answers(probabilities, scope, outside | between, tuple(reasons))

    def scope_threshold(self, share: float) -> float:
        """The probability of being in scope that about this share of the texts in scope falls below.

        Told from the task's own examples, each left out in turn: those whose label has others, and that are there once.
        """
        numbers, folded = self.support.numbers, [" ".join(text.lower().split()) for text in self.support.texts]
        copies = Counter(folded)
        alone = np.array([copies[text] == 1 for text in folded], dtype=bool)
        known = alone & (np.bincount(numbers)[numbers] > 1)
        if known.sum() < 2:
            raise NotEnoughExamples(
                "The share of texts that a threshold loses is told from examples that are left out, and fewer than two "
                "can be. Give labels two different examples, or a threshold of your own."
            )
        return float(expit(lower_bound(self.scope.leave_one_out()[known], share)))

    def batches(self, texts: Sequence[str]) -> Iterator[Texts]:
        """Some thousand texts at a time, which bounds the memory of a prediction."""
        every = texts if isinstance(texts, Texts) else Texts(texts)
        size = max(1, min(TEXTS_AT_ONCE, COSINES_AT_ONCE // len(self.ensemble.labels)))
        for at in range(0, len(every), size):
            yield every[at : at + size]

    def examine(self, texts: Texts) -> Evidence:
        """What the members say of a batch, and how near the examples it is; each encoder is asked once."""
        compared = self.ensemble.compare(Features(texts))
        if self.fallback is not None:
            probabilities = self.fallback.probabilities(compared)
        else:
            used = np.flatnonzero(np.abs(self.mix.weights) > COUNTS)
            probabilities = answer_with(self.mix, self.ensemble.probabilities(compared, used), used)
        return Evidence(compared, probabilities, self.scope.log_odds(compared))

    def explain(self, text: str, *, threshold: float | None = None, margin: float = 0.0,
                prior: Floats | None = None) -> Explanation:  # fmt: skip
        """Why a text is answered as it is."""
        texts = Texts([text])
        answers = self.answer(texts, threshold=threshold, margin=margin, prior=prior)
        parts = self._parts(self.ensemble.compare(Features(texts)))
        route = None if self.route is None else str(self.route)
        return explain_text(
            text, self.support, answers.probabilities[0], parts, scope=float(answers.scope[0]),
            rejected=answers.reasons[0], fallback=self.fallback_reason, route=route, names=self.ensemble.uses_names,
        )  # fmt: skip

    @property
    def route(self) -> Route | None:
        """Which cluster the task is taken for, where something tells."""
        return self.ensemble.route

    @property
    def base_rate(self) -> Floats:
        """How common the labels are taken to be before a text is seen: (labels,)."""
        labels = len(self.support.classes)
        if self.fallback is not None:
            return np.full(labels, 1 / labels)
        weights = np.abs(self.mix.weights)
        return weights @ self.ensemble.base_rates / weights.sum()  # type: ignore[no-any-return]

    def _calibrated(self, evidence: Evidence) -> Floats:
        if self.temperature is None:
            return evidence.probabilities
        return calibrate(evidence.probabilities, self.temperature, share_kept(evidence.log_odds))

    def _parts(self, text: Comparison) -> list[Part]:
        """What each member that counts says of one text, and how like each example it finds it."""
        shots = len(self.support)  # behind them stand the names of the labels
        if self.fallback is not None:
            cosines = np.mean([text.cosines(encoder)[0, :shots] for encoder in self.scope.encoders], axis=0)
            return [Part("fallback", "fallback", 1.0, (), self.fallback.probabilities(text)[0], cosines)]
        members, weights = self.ensemble.members, self.mix.weights.tolist()
        answers = self.ensemble.probabilities(text, np.arange(len(members)))[0]  # (members, labels)
        every = zip(members, weights, answers, self.ensemble.cosines(text), strict=True)
        return [
            Part(member.name, member.kind, weight, member.tasks, probabilities, cosines[0, :shots])
            for member, weight, probabilities, cosines in every
        ]


def adapt(serving: Serving, support: SupportSet, counter_examples: Texts = NO_TEXTS, *, mix: str = DEFAULT,
          adaptive: bool = True, label_names: bool = True) -> Adapted:  # fmt: skip
    """Find the task's own mix of metrics, or that no cluster fits it."""
    if mix not in (DEFAULT, PAPER):
        raise InputError(f"There is no mix {mix!r}. Choose {DEFAULT!r} or {PAPER!r}.")
    published, serving = mix == PAPER, serving.for_labels(support.class_names)
    metrics = [metric for metric in serving.metrics if not published or metric.kind == LEARNED]
    if not metrics:
        raise InputError("This model has no learned metrics, so there is nothing to mix as published.")
    told = _told_names(serving, support, published=published) if label_names else None
    names = told if told is not None and _names_count(serving, support) else None
    _require_examples(support, names)
    route = None if published else route_texts(serving.routing, unlearned(metrics)[0].encoder, support.texts, told)
    ensemble = Ensemble(
        metrics, support.labelled, support.class_names, regression=not published, names=names, route=route
    )
    weights = _fit_mix(serving, ensemble, support, published=published)
    reason = _why_fall_back(serving, ensemble, support, published=published) if adaptive else None
    fallback = None if reason is None else _fall_back(serving, ensemble, support, published=published)
    shots = answer_with(weights, ensemble.leave_one_out)
    if fallback is not None and (left_out := fallback.leave_one_out()) is not None:
        shots = left_out
    per_label = max(len(support) / len(support.classes), FEWEST)
    case = CalibrationCase(fallback is not None, per_label, fit_leave_one_out(shots, support.numbers))
    scope = TaskScope(serving.trust.scope, unlearned(serving.metrics), ensemble.examples, counter_examples)
    temperature = None if published else serving.trust.calibration.temperature(case)
    return Adapted(support, counter_examples, ensemble, weights, fallback, reason, scope, case, temperature)


def _fit_mix(serving: Serving, ensemble: Ensemble, support: SupportSet, *, published: bool) -> Mix:
    if published:
        rate, steps = serving.settings.paper_rate, serving.settings.paper_steps
        return fit_mix_as_published(ensemble.answer_examples(), support.numbers, rate=rate, steps=steps)
    prior = ensemble.prior(serving.settings)
    return serving.settings.fit(
        ensemble.leave_one_out,
        support.numbers,
        prior=prior,
        clusters=ensemble.clusters,
        groups=ensemble.groups,
        names=ensemble.uses_names,
    )


def _told_names(serving: Serving, support: SupportSet, *, published: bool) -> Texts | None:
    """What the labels are called, where that can mean anything: it tells whose cluster a task is, shuffled or not."""
    if published or any(isinstance(metric, SharedLabelMetric) for metric in serving.metrics):
        return None
    return support.names if support.empty_labels or say_something(support.names) else None


def _names_count(serving: Serving, support: SupportSet) -> bool:
    """Whether names are examples of their labels: if they fit the other examples, or if some label has nothing else."""
    if support.empty_labels or not serving.settings.names_count:
        return bool(support.empty_labels)
    encoder = unlearned(serving.metrics)[0].encoder
    speak = names_speak(encoder, support.texts, support.numbers, support.names)
    return speak > enough_evidence(len(support.classes))


def _require_examples(support: SupportSet, names: Texts | None) -> None:
    if support.empty_labels and names is None:
        raise NotEnoughExamples(
            f"The label {support.empty_labels[0]!r} has no example, and label names do not count here. "
            "Give it an example, or let label names count."
        )


def _why_fall_back(serving: Serving, ensemble: Ensemble, support: SupportSet, *, published: bool) -> str | None:
    """Why no cluster fits the task, or None: too few examples are answered when left out, or surely too few."""
    learned = np.array([kind == LEARNED for kind in ensemble.kinds])
    found = lift_over_chance(ensemble.leave_one_out, support.numbers, learned)
    chance = 1 / len(support.classes)
    best, least = chance + found.lift * (1 - chance), chance + serving.settings.threshold * (1 - chance)
    if published:
        least = PAPER_THRESHOLD
    elif ensemble.clusters is None and found.highest < LEAST_LIFT:
        least = max(least, chance + LEAST_LIFT * (1 - chance))
    if best >= least:
        return None
    return (
        f"No cluster fits this task: the best learned metric answers {best:.0%} of the examples from the others, less "
        f"than the {least:.0%} asked for; guessing gives {chance:.0%}. A model trained on the examples alone answers "
        "instead; `doctor` says whether they tell the labels apart at all."
    )


def _fall_back(serving: Serving, ensemble: Ensemble, support: SupportSet, *, published: bool) -> Fallback:
    if not published:
        return regression_fallback(serving.metrics, ensemble, len(support.classes))
    encoders = [metric.encoder for metric in serving.metrics if metric.kind == LEARNED]
    words = [encoder.words.given for encoder in encoders if isinstance(encoder, ConvolutionEncoder)]
    if not words:
        raise InputError("The published fallback is a network over word vectors, and this model has none.")
    return NetworkFallback(words[0], support.labelled, len(support.classes))
