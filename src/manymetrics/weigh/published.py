"""The paper's mix of the clusters' metrics: eqn:fsl, p(y | x) = sum_k alpha_k P(y | x; f_k).

alpha starts uniform and takes a number of gradient steps on the cross-entropy of the shots, without a constraint; rate
and number of steps are tuned by accuracy on meta-validation tasks. Weights off the simplex give scores instead of
probabilities, to which a softmax is applied.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from scipy.special import softmax

from manymetrics.encode.convolution import ConvolutionEncoder
from manymetrics.encode.encoder import EmbeddedTexts, Encoder, dense
from manymetrics.encode.settings import Convolution, Training
from manymetrics.encode.vectors import WordVectors
from manymetrics.errors import DataError, InputError
from manymetrics.measure.heads import Head
from manymetrics.specialize.metric import LEARNED, FittedMetric, Metric
from manymetrics.values import Each, Episode, Examples, Floats, Ints, no_progress

RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
STEPS = (1, 2, 3, 5, 10, 20, 40, 100)
MAX_RATE, MAX_STEPS = 1e3, 10_000
MAX_SHOTS = 100  # of an episode that rate and steps are chosen on
FEW_SHOTS = Training(steps=150, check_every=150, batch=16)  # of the fallback's network
THRESHOLD = 0.2  # accuracy on the shots below which the paper falls back


@dataclass(frozen=True)
class GradientSettings:
    """Rate and number of the gradient steps that find a task's weights."""

    rate: float = 0.1
    steps: int = 40

    def __post_init__(self) -> None:
        if not 0 < self.rate <= MAX_RATE or not 0 <= self.steps <= MAX_STEPS:
            raise DataError(f"The published mix has a rate of {self.rate} and {self.steps} steps, out of range.")


@dataclass(frozen=True, eq=False)
class MetricAnswers:
    """The answers of each metric on a task."""

    shots: Floats  # (shots, metrics, classes): NaN where a shot is the only one of its label
    labels: Ints  # (shots,)
    texts: Floats  # (texts, metrics, classes)

    def probabilities(self, gradient: GradientSettings) -> Floats:
        """p(y | x) of eqn:fsl: (texts, classes)."""
        return blend(descend(self.shots, self.labels, gradient)[-1], self.texts)

    @property
    def best_accuracy(self) -> float:
        """The share of left-out shots that the best metric answers; infinite where none can be left out."""
        known = np.isfinite(self.shots).all(axis=(1, 2))
        if not known.any():
            return float("inf")
        correct = self.shots[known].argmax(axis=2) == self.labels[known][:, None]  # (shots, metrics)
        return float(correct.mean(axis=0).max())


def answer_task(metrics: Sequence[Metric], shots: Examples, texts: Sequence[str]) -> MetricAnswers:
    """Every metric's answers on the shots and the texts of a task."""
    fitted, left_out = _learn(metrics, EmbeddedTexts(shots.texts), shots)
    return MetricAnswers(left_out, shots.numbers, _ask(fitted, EmbeddedTexts(texts)))


def _learn(metrics: Sequence[Metric], embedded: EmbeddedTexts, shots: Examples) -> tuple[list[FittedMetric], Floats]:
    """The metrics fitted on the shots, and their answers to left-out shots: (shots, metrics, classes)."""
    fitted = [metric.learn(embedded, shots.numbers, shots.classes) for metric in metrics]
    return fitted, np.stack([metric.answer_examples(embedded) for metric in fitted], axis=1)


def _ask(fitted: Sequence[FittedMetric], texts: EmbeddedTexts) -> Floats:
    """(texts, metrics, classes)."""
    return np.stack([metric.probabilities(texts) for metric in fitted], axis=1)


def descend(probabilities: Floats, labels: Ints, gradient: GradientSettings) -> Floats:
    """Alpha before the first Adam step and after each: (steps + 1, metrics); probabilities (shots, metrics, classes).

    Where no shot can be left out there is no slope, and the uniform weights are all there is.
    """
    known = np.isfinite(probabilities).all(axis=(1, 2))
    shots, answers = probabilities[known].astype(np.float64), labels[known]  # (shots, metrics, classes), (shots,)
    n_metrics = probabilities.shape[1]
    path = [np.full(n_metrics, 1 / n_metrics)]
    targets = np.eye(probabilities.shape[2])[answers]  # (shots, classes)
    mean, square = np.zeros(n_metrics), np.zeros(n_metrics)
    for step in range(1, gradient.steps + 1 if len(shots) else 1):
        errors = softmax(np.einsum("k,ikc->ic", path[-1], shots), axis=1) - targets  # (shots, classes)
        slope = np.einsum("ikc,ic->k", shots, errors) / len(shots)  # (metrics,)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        change = (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        path.append(path[-1] - gradient.rate * change)
    return np.stack(path)


def blend(weights: Floats, probabilities: Floats) -> Floats:
    """*p(y | x)* of eqn:fsl: probabilities (texts, metrics, classes) -> (texts, classes) that sum to one."""
    scores = np.einsum("k,ikc->ic", weights, probabilities)
    if (weights < 0).any() or abs(weights.sum() - 1) > 1e-6:
        return softmax(scores, axis=1)  # type: ignore[no-any-return]
    return scores / scores.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]


def choose_gradient(problems: Iterable[tuple[MetricAnswers, Ints]]) -> tuple[GradientSettings, float]:
    """The rate and the number of steps that answer problems most accurately, and how accurately.

    A problem holds the answers of metrics and the correct labels. Of equals the slowest and shortest is chosen.
    """
    accuracies = []
    for answers, labels in problems:
        paths = [descend(answers.shots, answers.labels, GradientSettings(rate, max(STEPS))) for rate in RATES]
        predicted = [
            [blend(path[min(steps, len(path) - 1)], answers.texts).argmax(axis=1) for steps in STEPS] for path in paths
        ]
        accuracies.append((np.array(predicted) == labels).mean(axis=2))
    mean = np.mean(accuracies, axis=0) if accuracies else np.zeros((len(RATES), len(STEPS)))  # (rates, steps)
    rate, steps = divmod(int(mean.argmax()), len(STEPS))
    return GradientSettings(RATES[rate], STEPS[steps]), float(mean.max())


def tune_gradient(metrics: Sequence[Metric], episodes: Sequence[Episode], each: Each = no_progress) -> GradientSettings:
    """The rate and steps that mix the clusters' metrics most accurately on episodes of held-out tasks."""
    learned = [metric for metric in metrics if metric.kind == LEARNED]
    short = [episode for episode in episodes if len(episode.support) <= MAX_SHOTS]
    if len(learned) < 2 or not short:
        return GradientSettings()
    reported = each("weigh-published", short, name=lambda episode: episode.task)
    return choose_gradient((answer_task(learned, e.support, e.query.texts), e.query.numbers) for e in reported)[0]


@dataclass(frozen=True, eq=False)
class SingleTaskNetwork:
    """The paper's fallback: a convolution network trained on the shots of one task; needs torch."""

    encoder: Encoder
    head: Head

    @classmethod
    def fit(cls, words: WordVectors, shots: Examples, *, steps: int = FEW_SHOTS.steps,
            seed: int = 0) -> "SingleTaskNetwork":  # fmt: skip
        """Train on the shots."""
        from manymetrics.encode.training.convolution import fit_classifier

        training, rng = replace(FEW_SHOTS, steps=steps, check_every=steps), np.random.default_rng(seed)
        tensors = fit_classifier(words, [shots], [], convolution=Convolution(), training=training, rng=rng).tensors
        encoder = ConvolutionEncoder(words, tensors["filters"], tensors["bias"])
        return cls(encoder, Head(tensors["head"], tensors["offset"]))

    def logits(self, texts: EmbeddedTexts) -> Floats:
        """(texts, classes)."""
        return self.head.log_probabilities(texts.rows(self.encoder))


@dataclass(frozen=True, eq=False)
class PublishedTask:
    """A task answered by the published mix or, below THRESHOLD, by the published fallback."""

    metrics: tuple[Metric, ...]
    fitted: Sequence[FittedMetric]
    alpha: Floats  # (metrics,)
    examples: EmbeddedTexts
    labels: Ints  # (examples,)
    network: SingleTaskNetwork | None  # answers alone
    reason: str | None  # why it does

    @classmethod
    def fit(cls, metrics: tuple[Metric, ...], shots: Examples, gradient: GradientSettings, *,
            adaptive: bool) -> "PublishedTask":  # fmt: skip
        """Find alpha on the shots; where no metric reaches THRESHOLD on them, train a network on the shots alone."""
        if not metrics:
            raise InputError("This model has no metric of a cluster, so there is nothing to mix as published.")
        embedded = EmbeddedTexts(shots.texts)
        fitted, left_out = _learn(metrics, embedded, shots)
        best = MetricAnswers(left_out, shots.numbers, left_out[:0]).best_accuracy
        network, reason = None, None
        if adaptive and best < THRESHOLD:
            convolutions = [metric.encoder for metric in metrics if metric.encoder.kind == ConvolutionEncoder.kind]
            if not convolutions:
                raise InputError("The published fallback is a network over word vectors, and this model has none.")
            network = SingleTaskNetwork.fit(cast(ConvolutionEncoder, convolutions[0]).words, shots)
            reason = (
                f"No cluster fits this task: the best metric answers {best:.0%} of the examples from the others, less "
                f"than {THRESHOLD:.0%}. A network trained on the examples alone answers."
            )
        alpha = descend(left_out, shots.numbers, gradient)[-1]
        return cls(metrics, fitted, alpha, embedded, shots.numbers, network, reason)

    def logits(self, texts: EmbeddedTexts) -> Floats:
        """The logarithm of p(y | x): (texts, classes)."""
        if self.network is not None:
            return self.network.logits(texts)
        return np.log(np.maximum(blend(self.alpha, _ask(self.fitted, texts)), 1e-12))

    def encoder_logits(self, texts: EmbeddedTexts, encoder: Encoder) -> Floats:
        """The logarithm of what the metric of an encoder answers: (texts, classes)."""
        index = [metric.encoder for metric in self.metrics].index(encoder)
        return np.log(np.maximum(self.fitted[index].probabilities(texts), 1e-12))

    def example_shares(self, texts: EmbeddedTexts, label: int, n_shots: int) -> tuple[Floats, Floats]:
        """How much the shots of a label count by their similarity, and the similarity: (shots,) each."""
        weights = np.abs(self.alpha) / max(np.abs(self.alpha).sum(), 1e-12)
        similarity = np.zeros(n_shots)
        for metric, weight in zip(self.metrics, weights.tolist(), strict=True):
            product = texts.rows(metric.encoder, unit=True) @ self.examples.rows(metric.encoder, unit=True).T
            similarity += weight * dense(product)[0]
        shares = np.maximum(similarity, 0) * (self.labels == label)
        return shares / max(shares.sum(), 1e-12), similarity
