"""Gradient steps on the shots of a task: an encoder of its own, as low-rank factors. Taking them needs torch.

An encoder that was trained on the shots answers them too well, so whether it is used is decided by two-fold
cross-fitting: each half of the shots is answered by an encoder and a regression that were fitted on the other half,
with factors of the upper layers alone, which takes half the time. The steps are not used where these answers are less
likely than without steps. They also give the task's temperature.

The constants were chosen on bank tasks: `python -m experiments steps`.
"""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_softmax

from manymetrics.classifier.calibration import fit_own_temperature
from manymetrics.classifier.examples import SupportSet
from manymetrics.encode.encoder import EmbeddedTexts, Encoder
from manymetrics.encode.runtime.bert import LowRankFactors
from manymetrics.encode.sentence import SentenceEncoder
from manymetrics.encode.settings import LowRankTraining
from manymetrics.errors import InputError
from manymetrics.specialize.metric import OWN, Metric
from manymetrics.values import Floats, Ints, rng_for
from manymetrics.weigh.task_metric import TaskHead, TaskMetric, fit_head

AUTO = "auto"
AUTO_STEPS = 20
MAX_AUTO_LABELS = 50  # steps on the few shots of many fine labels lose accuracy on bank tasks
MAX_STEPS = 1000
OWN_WEIGHT = 0.7  # of the moved encoder in the metric
TRAINING = LowRankTraining(learning_rate=1e-3, frozen_share=0.0)
CROSS_FITTING = replace(TRAINING, frozen_share=0.5)
N_FOLDS = 2
MIN_GAIN = 0.0  # of the mean log-likelihood of left-out shots, for steps to be used
TEMPERATURE_SCALE = 1.2  # over the temperature of the cross-fitted answers

OnStep = Callable[[int, int], None]  # (steps taken, steps in all)


@dataclass(frozen=True, eq=False)
class OwnSteps:
    """The outcome of gradient steps on the shots."""

    steps: int  # 0: none are used
    reason: str  # why they are used, or why not
    tensors: Mapping[str, Floats]  # of the low-rank factors; empty where no steps are used
    temperature: float = 1.0  # that the logits are divided by

    def metric(self, base: SentenceEncoder) -> Metric:
        """The metric of the moved encoder."""
        encoder = base.with_factors(LowRankFactors.from_tensors(self.tensors))
        return Metric("own-steps", OWN, encoder)


def check_steps(steps: int | str) -> None:
    """Refuse what is no number of steps."""
    if steps != AUTO and (not isinstance(steps, int) or isinstance(steps, bool) or not 0 <= steps <= MAX_STEPS):
        raise InputError(f"Found steps={steps!r}. Give a number from 0 to {MAX_STEPS:,}, or 'auto'.")


def why_no_steps(steps: int | str, base: Encoder, support: SupportSet, *, uses_names: bool) -> str | None:
    """Why no steps can be taken, or why 'auto' takes none; None where they can be."""
    if not isinstance(base, SentenceEncoder):
        return "Gradient steps need a sentence encoder, and this model has word vectors."
    if not base.is_bert:
        return f"Gradient steps need the weights of a BERT, and the encoder {base.name!r} is an ONNX file."
    if not uses_names and (np.bincount(support.numbers) < 2).all():
        return "No gradient steps were taken: no label has two examples, and label names are not used."
    if steps == AUTO and importlib.util.find_spec("torch") is None:
        return 'No gradient steps were taken: torch is not installed. Install it with: pip install "manymetrics[train]"'
    if steps == AUTO and len(support.classes) > MAX_AUTO_LABELS:
        return (
            f"No gradient steps were taken: with {len(support.classes)} labels they seldom help. "
            "Give their number to take them anyway."
        )
    return None


@dataclass(frozen=True, eq=False)
class StepsProblem:
    """The shots of a task, and the metric it has without steps."""

    base: SentenceEncoder
    start: SentenceEncoder  # that the steps begin with
    metrics: tuple[Metric, ...]
    weights: Floats  # (metrics,)
    support: SupportSet
    uses_names: bool

    def head(self, shots: Ints, own_metric: Metric | None, own_weight: float = OWN_WEIGHT) -> TaskHead:
        """The regression on some of the shots, with the metric of the moved encoder or without."""
        metrics, weights = self.metrics, self.weights
        if own_metric is not None:
            metrics, weights = add_own(metrics, weights, own_metric, own_weight)
        examples, labels = self.support.embedded.take(shots), self.support.numbers[shots]
        if self.uses_names:
            examples = EmbeddedTexts.join([examples, self.support.embedded_names])
            labels = np.concatenate([labels, np.arange(len(self.support.classes))])
        return fit_head(TaskMetric.of(metrics, weights, examples), labels, len(self.support.classes))

    def train(self, shots: Ints, training: LowRankTraining, on_step: OnStep) -> OwnSteps:
        """Take steps on some of the shots."""
        from manymetrics.encode.training.low_rank import LabelledTask, train_on_shots

        texts, numbers = [self.support.texts[shot] for shot in shots], self.support.numbers[shots]
        factors = train_on_shots(
            self.start, LabelledTask(texts, numbers, self.support.names), training,
            rng=rng_for(0, *texts), use_names=self.uses_names, on_step=on_step,
        )  # fmt: skip
        return OwnSteps(training.steps, "", factors.tensors())


def add_own(metrics: tuple[Metric, ...], weights: Floats, own_metric: Metric,
            own_weight: float = OWN_WEIGHT) -> tuple[tuple[Metric, ...], Floats]:  # fmt: skip
    """The metrics of a task and their weights, with that of its own encoder."""
    return (*metrics, own_metric), np.append((1 - own_weight) * weights, own_weight)


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


def cross_fit(problem: StepsProblem, n_steps: int, on_step: OnStep) -> CrossFitted:
    """Answer each half of the shots by what was fitted on the other half; `on_step` counts the steps of both."""
    support, all_shots, fold_of = problem.support, np.arange(len(problem.support)), _folds(problem.support.numbers)
    labels: list[Ints] = [np.zeros(0, np.int64)]
    moved: list[Floats] = [np.zeros((0, len(support.classes)))]
    unmoved: list[Floats] = [np.zeros((0, len(support.classes)))]
    for fold in range(N_FOLDS):
        inside, outside = all_shots[fold_of != fold], all_shots[fold_of == fold]
        if not problem.uses_names:  # a label without examples cannot be answered
            outside = outside[np.isin(support.numbers[outside], support.numbers[inside])]
        if not len(outside) or not len(inside):
            continue
        done, training = fold * n_steps, replace(CROSS_FITTING, steps=n_steps)
        own_steps = problem.train(inside, training, lambda step, total, done=done: on_step(done + step, total))  # type: ignore[misc]
        texts = support.embedded.take(outside)
        moved.append(problem.head(inside, own_steps.metric(problem.base)).logits(texts))
        unmoved.append(problem.head(inside, None).logits(texts))
        labels.append(support.numbers[outside])
    return CrossFitted(np.concatenate(labels), np.concatenate(moved), np.concatenate(unmoved))


def take_own_steps(problem: StepsProblem, steps: int | str, on_step: OnStep) -> OwnSteps:
    """Cross-fit, and take the steps on all shots unless they make left-out shots less likely."""
    n_steps = AUTO_STEPS if isinstance(steps, str) else steps
    before, total = N_FOLDS * n_steps, (N_FOLDS + 1) * n_steps
    fitted = cross_fit(problem, n_steps, lambda step, _: on_step(step, total))
    if fitted.gain < MIN_GAIN:
        return OwnSteps(0, f"Gradient steps are not used: {fitted}", {})
    training, shots = replace(TRAINING, steps=n_steps), np.arange(len(problem.support))
    own_steps = problem.train(shots, training, lambda step, _: on_step(before + step, total))
    reason = f"{n_steps} gradient steps on the examples are used: {fitted}"
    return replace(own_steps, reason=reason, temperature=fitted.temperature)


def _folds(numbers: Ints) -> Ints:
    """The fold of each shot; the shots of each label are distributed over the folds: (shots,)."""
    folds = np.zeros(len(numbers), dtype=np.int64)
    for label in np.unique(numbers):
        shots = np.flatnonzero(numbers == label)
        folds[shots] = (np.arange(len(shots)) + label) % N_FOLDS
    return folds
