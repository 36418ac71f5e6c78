"""Gradient steps on the shots of a task: an encoder of its own, as low-rank factors. Taking them needs torch.

An encoder that was trained on the shots answers them too well, so whether it is used is decided by two-fold
cross-fitting: each half of the shots is answered by an encoder and a regression that were fitted on the other half, in
fewer steps and with factors of the uppermost layers alone, which takes a fraction of the time. The steps are not used
where these answers are clearly less likely than without steps. They also give the task's temperature.

The constants were chosen on bank tasks: `python -m experiments steps`.
"""

import importlib.util
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from scipy.special import log_softmax

from manymetrics.classifier.classifier import Classifier, OwnSteps
from manymetrics.classifier.confidence import fit_own_temperature
from manymetrics.encode.encoder import EmbeddedTexts
from manymetrics.encode.runtime.bert import LowRankFactors
from manymetrics.encode.sentence import SentenceEncoder
from manymetrics.encode.settings import LowRankTraining
from manymetrics.errors import InputError
from manymetrics.specialize.metric import OWN, Metric
from manymetrics.values import Floats, Ints, rng_for
from manymetrics.weigh.task_metric import TaskHead, TaskMetric, fit_head

AUTO = "auto"
AUTO_STEPS = 8
MAX_AUTO_LABELS = 50  # steps on the few shots of many fine labels lose accuracy on bank tasks
MAX_STEPS = 1000
OWN_WEIGHT = 0.5  # of the moved encoder in the metric
TRAINING = LowRankTraining(frozen_share=0.0)
CROSS_FITTING = replace(TRAINING, frozen_share=0.75)
CROSS_FITTING_SHARE = 0.75  # of the steps on all shots, for each half
N_FOLDS = 2
MIN_GAIN = -0.2  # of the mean log-likelihood of left-out shots: half of few shots is a pessimistic test
TEMPERATURE_SCALE = 1.2  # over the temperature of the cross-fitted answers

OnStep = Callable[[int, int], None]  # (steps taken, steps in all)


def ignore_steps(step: int, total: int) -> None:
    """Report no steps."""


def take_own_steps(classifier: Classifier, steps: int | str, on_step: OnStep) -> OwnSteps:
    """Cross-fit, and take steps on all shots of a classifier without any, unless left-out shots become less likely."""
    reason = _why_no_steps(classifier, steps)
    if reason is not None and steps != AUTO:
        raise InputError(reason)
    if reason is not None:
        return OwnSteps(0, reason, {})
    n_steps = AUTO_STEPS if isinstance(steps, str) else steps
    n_each = math.ceil(CROSS_FITTING_SHARE * n_steps)
    before, total = N_FOLDS * n_each, N_FOLDS * n_each + n_steps
    fitted = cross_fit(classifier, replace(CROSS_FITTING, steps=n_each), lambda step, _: on_step(step, total))
    if fitted.gain < MIN_GAIN:
        return OwnSteps(0, f"Gradient steps are not used: {fitted}", {})
    training, shots = replace(TRAINING, steps=n_steps), np.arange(len(classifier.support))
    tensors = train_on_some(classifier, shots, training, lambda step, _: on_step(before + step, total))
    return OwnSteps(
        n_steps, f"{n_steps} gradient steps on the examples are used: {fitted}", tensors, fitted.temperature
    )


def use_own_steps(classifier: Classifier, own_steps: OwnSteps) -> Classifier:
    """The classifier with the encoder of its own steps in the metric, if any are used."""
    if not own_steps.steps:
        return replace(classifier, own_steps=own_steps)
    moved = add_own_metric(classifier, own_steps.tensors)
    head = fit_some(moved, np.arange(len(classifier.support)))
    return replace(moved, head=head, temperature=own_steps.temperature, own_steps=own_steps)


def check_steps(steps: int | str) -> None:
    """Refuse what is no number of steps."""
    if steps != AUTO and (not isinstance(steps, int) or isinstance(steps, bool) or not 0 <= steps <= MAX_STEPS):
        raise InputError(f"Found steps={steps!r}. Give a number from 0 to {MAX_STEPS:,}, or 'auto'.")


def _why_no_steps(classifier: Classifier, steps: int | str) -> str | None:  # noqa: PLR0911
    """Why no steps can be taken, or why 'auto' takes none; None where they can be."""
    base, support = classifier.scope.encoders[0], classifier.support
    if not isinstance(classifier.head, TaskHead) or classifier.head.known is not None:
        return "Gradient steps need a task that is answered by its own examples and metrics alone."
    if not isinstance(base, SentenceEncoder):
        return "Gradient steps need a sentence encoder, and this model has word vectors."
    if not base.is_bert:
        return f"Gradient steps need the weights of a BERT, and the encoder {base.name!r} is an ONNX file."
    if not classifier.uses_names and (np.bincount(support.numbers) < 2).all():
        return "No gradient steps were taken: no label has two examples, and label names are not used."
    if steps == AUTO and importlib.util.find_spec("torch") is None:
        return 'No gradient steps were taken: torch is not installed. Install it with: pip install "manymetrics[train]"'
    if steps == AUTO and len(support.classes) > MAX_AUTO_LABELS:
        return (
            f"No gradient steps were taken: with {len(support.classes)} labels they seldom help. "
            "Give their number to take them anyway."
        )
    return None


def add_own_metric(classifier: Classifier, tensors: Mapping[str, Floats], weight: float = OWN_WEIGHT) -> Classifier:
    """The classifier with the metric of its moved encoder, given as low-rank factors; the head stays as it is.

    Beside it the base and projections over the base keep a weight, tuned encoders of clusters do not: texts pass two
    encoders.
    """
    base = cast(SentenceEncoder, classifier.scope.encoders[0])
    metric = Metric("own-steps", OWN, base.with_factors(LowRankFactors.from_tensors(tensors)))
    is_tuned = [other.encoder.is_bert and other.encoder is not base for other in classifier.metrics]
    beside = np.where(is_tuned, 0.0, classifier.weights)
    weights = np.append((1 - weight) * beside / beside.sum(), weight)
    return replace(classifier, metrics=(*classifier.metrics, metric), weights=weights)


def fit_some(classifier: Classifier, shots: Ints) -> TaskHead:
    """The regression in the classifier's metric on some of its shots."""
    support, n_classes = classifier.support, len(classifier.support.classes)
    examples, labels = support.embedded.take(shots), support.numbers[shots]
    if classifier.uses_names:
        examples = EmbeddedTexts.join([examples, support.embedded_names])
        labels = np.concatenate([labels, np.arange(n_classes)])
    return fit_head(TaskMetric.of(classifier.metrics, classifier.weights, examples), labels, n_classes)


def train_on_some(classifier: Classifier, shots: Ints, training: LowRankTraining,
                  on_step: OnStep = ignore_steps) -> Mapping[str, Floats]:  # fmt: skip
    """The low-rank factors after steps on some of the shots; they begin with the encoder of most weight."""
    from manymetrics.encode.training.low_rank import LabelledTask, train_on_shots

    support, weighted = classifier.support, zip(classifier.weights.tolist(), classifier.metrics, strict=True)
    berts = [(weight, metric.encoder) for weight, metric in weighted if metric.encoder.is_bert]
    start = cast(SentenceEncoder, max(berts, key=lambda pair: pair[0])[1])
    texts = [support.texts[shot] for shot in shots]
    factors = train_on_shots(
        start, LabelledTask(texts, support.numbers[shots], support.names), training,
        rng=rng_for(0, *texts), use_names=classifier.uses_names, on_step=on_step,
    )  # fmt: skip
    return factors.tensors()


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """The answers to shots that were left out, by halves."""

    labels: Ints  # (shots,)
    moved: Floats  # (shots, classes): logits with steps on the other half
    unmoved: Floats  # (shots, classes): logits without steps

    @property
    def gain(self) -> float:
        """How much more likely a shot is with steps: the mean difference of log-likelihoods, -inf without shots."""
        if not len(self.labels):
            return -np.inf
        rows = np.arange(len(self.labels))
        moved, unmoved = (log_softmax(logits, axis=1)[rows, self.labels] for logits in (self.moved, self.unmoved))
        return float((moved - unmoved).mean())

    @property
    def temperature(self) -> float:
        """The temperature of a classifier that took steps on all shots."""
        return TEMPERATURE_SCALE * fit_own_temperature(self.moved, self.labels)

    def __str__(self) -> str:
        if not len(self.labels):
            return "no example can be left out."
        moved, unmoved = ((logits.argmax(axis=1) == self.labels).sum() for logits in (self.moved, self.unmoved))
        return (
            f"of {len(self.labels)} examples left out in two halves, {moved} are answered correctly with steps and "
            f"{unmoved} without."
        )


def cross_fit(classifier: Classifier, training: LowRankTraining, on_step: OnStep = ignore_steps) -> CrossFitted:
    """Answer each half of the shots by what was fitted on the other half; `on_step` counts the steps of both."""
    numbers, fold_of = classifier.support.numbers, _folds(classifier.support.numbers)
    nothing: Floats = np.zeros((0, len(classifier.support.classes)))
    answered = [(numbers[:0], nothing, nothing)]
    for fold in range(N_FOLDS):
        inside, outside = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
        if not classifier.uses_names:  # a label without examples cannot be answered
            outside = outside[np.isin(numbers[outside], numbers[inside])]
        if not len(outside) or not len(inside):
            continue
        before = fold * training.steps
        tensors = train_on_some(classifier, inside, training, lambda step, total, b=before: on_step(b + step, total))  # type: ignore[misc]
        texts = classifier.support.embedded.take(outside)
        moved, unmoved = fit_some(add_own_metric(classifier, tensors), inside), fit_some(classifier, inside)
        answered.append((numbers[outside], moved.logits(texts), unmoved.logits(texts)))
    return CrossFitted(*(np.concatenate(values) for values in zip(*answered, strict=True)))


def _folds(numbers: Ints) -> Ints:
    """The fold of each shot; the shots of each label are distributed over the folds: (shots,)."""
    folds = np.zeros(len(numbers), dtype=np.int64)
    for label in np.unique(numbers):
        shots = np.flatnonzero(numbers == label)
        folds[shots] = (np.arange(len(shots)) + label) % N_FOLDS
    return folds
