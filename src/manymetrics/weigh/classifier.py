"""Metrics and a few examples -> a classifier, under scikit-learn's contract.

Paper: section 3.2.2 and "Adaptive RobustTC-FSL". Names here and there:
    classifier.weights_     alpha_k
    classifier.fallback_    why the task was found to be out of clusters, or nothing
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.special import expit

from manymetrics.encode.tokens import Tokens
from manymetrics.encode.vectors import WordVectors
from manymetrics.errors import InputError
from manymetrics.specialize.metric import FROZEN, LEARNED, LEXICAL, Fitted, Metric
from manymetrics.values import Bools, Floats, Ints, Mix
from manymetrics.weigh.alone import Alone, ConvolutionAlone, LinearAlone
from manymetrics.weigh.calibration import Case, calibrate, faith, own_wish
from manymetrics.weigh.doctor import Diagnosis, diagnose
from manymetrics.weigh.estimator import Estimator
from manymetrics.weigh.examples import Own, as_texts, take_in
from manymetrics.weigh.explanation import Explanation, Part, explain_text, why_rejected
from manymetrics.weigh.growth import with_examples, without_examples, without_label
from manymetrics.weigh.mix import blend, fit_mix_as_published
from manymetrics.weigh.panel import Panel, Said
from manymetrics.weigh.rules import Problem, Rules, lift_over_chance
from manymetrics.weigh.scope import against_counter_examples, describe
from manymetrics.weigh.suggestion import Suggestion, suggest_texts
from manymetrics.weigh.trust import Trust

DEFAULT, PAPER = "default", "paper"
PAPER_THRESHOLD = 0.2  # accuracy on the shots
TEXTS_AT_ONCE = 8192
COSINES_AT_ONCE = 2**23
EVEN = 0.5  # the probability of being in scope below which a text is rejected, if nothing else is said


class KnowsMetrics(Protocol):
    """What a classifier needs of a learned model."""

    @property
    def vectors(self) -> WordVectors:
        """The word vectors its texts are read with."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What is mixed."""

    @property
    def rules(self) -> Rules:
        """How it is mixed."""

    @property
    def trust(self) -> Trust:
        """What its held-out tasks taught about scope and calibration."""


@runtime_checkable
class KeepsClassifiers(Protocol):
    """A model whole enough to have a fingerprint, so that a classifier can be saved beside it."""

    def save_classifier(self, path: str | Path, about: dict[str, Any]) -> None:
        """Write what a classifier is beside its model."""


@dataclass(frozen=True, eq=False)
class Look:
    """What is known of some texts before anything is answered."""

    tokens: Tokens
    chances: Floats  # (texts, labels): raw
    features: Floats  # (texts, 6): what the scope is judged by
    log_odds: Floats  # (texts,): that they are in scope


class FewShotClassifier(Estimator):
    """Classifies texts from a handful of examples of each label, with its own mix of a model's metrics.

    Parameters
    ----------
    model : a learned model, from `learn_metrics` or `load_model`.
    mix : `default`, or `paper` for the published way: the clusters' metrics alone, weights unconstrained, and
        probabilities as they come.
    adaptive : fall back to a model trained on the examples alone when no cluster fits the task.
    reject : whether `predict` may answer that none of the labels fits. True rejects a text whose probability of being
        in scope is below 0.5; a number between 0 and 1 is a threshold of your own. A live setting: no refit.
    margin : `predict` also rejects a text whose two likeliest labels are closer than this. A live setting.
    rejected : what `predict` answers for a rejected text.

    Attributes
    ----------
    classes_ : the labels, sorted; the columns of `predict_proba`.
    examples_ : the examples, (text, label), in the order of the labels and texts.
    weights_ : how much each metric counts, by name.
    mix_ : the weights with the steps and the gap of their fit.
    fallback_ : why no cluster fits, as a sentence, or None.
    case_ : what the calibration looked at; `sharpness_` : what the raw probabilities are therefore raised to.
    """

    def __init__(self, model: KnowsMetrics | None = None, *, mix: str = DEFAULT, adaptive: bool = True,
                 reject: bool | float = False, margin: float = 0.0, rejected: Any = None) -> None:  # fmt: skip
        self.model = model
        self.mix = mix
        self.adaptive = adaptive
        self.reject = reject
        self.margin = margin
        self.rejected = rejected

    def fit(self, X: Iterable[str], y: Iterable[Any], counter_examples: Iterable[str] = ()) -> "FewShotClassifier":
        """Take in the examples and find the task's own mix; `counter_examples` are texts that are out of scope."""
        model = _require_model(self.model)
        if self.mix not in (DEFAULT, PAPER):
            raise InputError(f"There is no mix {self.mix!r}. Choose {DEFAULT!r} or {PAPER!r}.")
        own, counters = take_in(X, y), tuple(sorted(as_texts(counter_examples)))
        self.classes_ = own.classes
        self.examples_ = tuple(zip(own.texts, own.labels, strict=True))
        self.counter_examples_ = counters
        self.n_examples_ = len(own.texts)
        tokens, metrics = model.vectors.read(own.texts), self._metrics(model)
        self._panel = Panel(metrics, tokens, own.numbers, own.classes, together=self.mix == DEFAULT)
        self.mix_ = self._fit_mix(model.rules, own.numbers)
        weights = self.mix_.weights.tolist()
        self.weights_ = {member.name: weight for member, weight in zip(self._panel.members, weights, strict=True)}
        self.fallback_ = self._why_fall_back(model.rules, own.numbers)
        self._alone = None if self.fallback_ is None else self._train_alone(model, tokens, own.numbers)
        self._look_around(model, tokens, own)
        self.sharpness_ = self._sharpness(model.trust, own)
        return self

    def predict_proba(self, X: Iterable[str]) -> Floats:
        """*p(y | x)*: (texts, labels), in the order of `classes_`."""
        parts = [self._calibrated(look) for look in self._looks(X)]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.classes_)))

    def predict(self, X: Iterable[str]) -> Any:
        """The likeliest label of each text, of equal ones the first; `rejected` where none of the labels fits."""
        if not self.reject and not self.margin:
            answers = [self._chances(tokens).argmax(axis=1) for tokens in self._portions(X)]
            return self.classes_[np.concatenate(answers) if answers else np.zeros(0, dtype=np.int64)]
        rejected, found = [np.zeros(0, dtype=bool)], [np.zeros(0, dtype=np.int64)]
        for look in self._looks(X):
            chances = self._calibrated(look)
            rejected.append(self._rejected(chances, look))
            found.append(chances.argmax(axis=1))
        labels = self.classes_[np.concatenate(found)].astype(object)
        labels[np.concatenate(rejected)] = self.rejected
        return labels

    def scope_proba(self, X: Iterable[str]) -> Floats:
        """The probability that each text is any of this task's business: (texts,)."""
        parts = [expit(look.log_odds) for look in self._looks(X)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def add_examples(self, texts: Iterable[str], labels: Iterable[Any]) -> "FewShotClassifier":
        """Take in further examples, of labels old or new: the same classifier as a fit on all of them."""
        self.require_fitted()
        return self.fit(*with_examples(self.examples_, texts, labels), self.counter_examples_)

    def remove_examples(self, texts: Iterable[str]) -> "FewShotClassifier":
        """Forget the examples with these texts."""
        self.require_fitted()
        return self.fit(*without_examples(self.examples_, texts), self.counter_examples_)

    def forget(self, label: Any) -> "FewShotClassifier":
        """Forget a label with all its examples."""
        self.require_fitted()
        return self.fit(*without_label(self.examples_, label), self.counter_examples_)

    def explain(self, text: str) -> Explanation:
        """Why the text is answered as it is."""
        (look,) = self._looks([text])
        chances = self._calibrated(look)[0]
        threshold = self._threshold() if self.reject else None
        reason = why_rejected(
            dict(zip(self.classes_.tolist(), chances, strict=True)),
            scope=float(expit(look.log_odds[0])),
            threshold=threshold,
            margin=self.margin,
        )
        return explain_text(
            text, self._own, chances, self._parts(look.tokens), scope=float(expit(look.log_odds[0])), rejected=reason,
            fallback=self.fallback_,
        )  # fmt: skip

    def doctor(self) -> Diagnosis:
        """What is wrong with the examples, and how well they answer one another."""
        self.require_fitted()
        settings = self.get_params() | {"reject": False, "margin": 0.0}
        return diagnose(self._own, lambda texts, labels: type(self)(**settings).fit(texts, labels))

    def suggest(self, texts: Iterable[str], count: int = 10) -> tuple[Suggestion, ...]:
        """Which of these unlabelled texts to label next, and why: uncertain or unlike the examples, and diverse."""
        listed = list(dict.fromkeys(as_texts(texts)))
        looks = list(self._looks(listed))
        if not looks:
            return ()
        chances = np.concatenate([self._calibrated(look) for look in looks])
        log_odds = np.concatenate([look.log_odds for look in looks])
        model = _require_model(self.model)
        frozen = next(metric for metric in model.metrics if metric.kind == FROZEN)
        rows = np.concatenate([frozen.encoder.encode(look.tokens) for look in looks])
        return suggest_texts(listed, self.classes_.tolist(), chances, expit(log_odds), rows=rows, count=count)

    def save(self, path: str | Path) -> None:
        """Write the examples and settings to a folder, some kilobytes to be used beside the model.

        The folder holds the example texts as they are.
        """
        self.require_fitted()
        if not isinstance(self.model, KeepsClassifiers):
            raise InputError("The classifier's model cannot be told by a fingerprint. Adapt a learned or loaded model.")
        settings = {name: value for name, value in self.get_params().items() if name != "model"}
        about = {"settings": settings, "examples": self.examples_, "counter_examples": self.counter_examples_}
        self.model.save_classifier(path, about)

    def _portions(self, X: Iterable[str]) -> Iterator[Tokens]:
        """Some thousand texts at a time, which bounds the memory of a prediction."""
        self.require_fitted()
        texts, model = as_texts(X), _require_model(self.model)
        size = max(1, min(TEXTS_AT_ONCE, COSINES_AT_ONCE // self.n_examples_))
        for at in range(0, len(texts), size):
            yield model.vectors.read(texts[at : at + size])

    def _looks(self, X: Iterable[str]) -> Iterator[Look]:
        return (self.look(tokens) for tokens in self._portions(X))

    def look(self, tokens: Tokens) -> Look:
        """Raw answers, and how like the examples each text is."""
        known = {id(space): space.compare(tokens) for space in self._spaces}
        nearest = np.stack([cosines.max(axis=1) for _, cosines in known.values()], axis=1)  # (texts, 2)
        trust = _require_model(self.model).trust
        features = describe(nearest, self._usual, np.diff(tokens.starts), self.n_examples_)
        log_odds = trust.scope.log_odds(features)
        if self._counters:
            counter = np.stack([space.compare(tokens)[1].max(axis=1) for space in self._counters], axis=1)
            log_odds = against_counter_examples(log_odds, nearest, counter)
        return Look(tokens, self._chances(tokens, known), features, log_odds)

    def _case(self, own: Own) -> Case:
        """What calibration looks at in this task."""
        answers = blend(self.mix_.weights, self._panel.left_out)
        if isinstance(self._alone, LinearAlone):
            answers = self._alone.chances_left_out()
        per_label = len(own.texts) / len(own.classes)
        return Case(self._alone is not None, per_label, own_wish(answers, own.numbers))

    def _look_around(self, model: KnowsMetrics, tokens: Tokens, own: Own) -> None:
        """The spaces in which the scope is judged, and how like one another the examples are there."""
        self._own = own
        spaces: list[Fitted] = []
        self._counters: list[Fitted] = []
        fitted = dict(zip((metric.name for metric in self._metrics(model)), self._panel.fitted, strict=True))
        names = tuple(str(label) for label in own.classes)
        for kind in (FROZEN, LEXICAL):
            metric = next(metric for metric in model.metrics if metric.kind == kind)
            spaces.append(fitted[metric.name] if metric.name in fitted else metric.learn(tokens, own.numbers, names))
            if self.counter_examples_:
                counters = model.vectors.read(self.counter_examples_)
                nothing = np.zeros(len(counters), dtype=np.int64)
                self._counters.append(metric.learn(counters, nothing, ("none",)))
        self._spaces = spaces
        self._usual = np.array([space.likest_left_out().mean() for space in spaces])  # (2,)

    def _sharpness(self, trust: Trust, own: Own) -> float:
        self.case_ = self._case(own)
        return 1.0 if self.mix == PAPER else trust.calibration.sharpness(self.case_)

    def _calibrated(self, look: Look) -> Floats:
        if self.mix == PAPER:
            return look.chances
        return calibrate(look.chances, self.sharpness_, faith(look.log_odds))

    def _threshold(self) -> float:
        if isinstance(self.reject, bool | np.bool_):
            return EVEN
        if not 0 <= self.reject <= 1:
            raise InputError(f"Found reject={self.reject!r}. Give True, False, or a probability between 0 and 1.")
        return float(self.reject)

    def _rejected(self, chances: Floats, look: Look) -> Bools:
        """Which texts none of the labels fits."""
        out = np.zeros(len(chances), dtype=bool)
        if self.reject:
            out |= expit(look.log_odds) < self._threshold()
        if self.margin:
            best = np.sort(chances, axis=1)[:, -2:]
            out |= best[:, 1] - best[:, 0] < self.margin
        return out

    def _parts(self, tokens: Tokens) -> list[Part]:
        """What each metric that counts says of one text, and how like each example it finds it."""
        if self._alone is not None:
            cosines = np.mean([space.compare(tokens)[1][0] for space in self._spaces], axis=0)
            return [Part("alone", "fallback", 1.0, (), self._alone.chances(tokens)[0], cosines)]
        said = zip(self._panel.members, self.mix_.weights.tolist(), self._panel.explain(tokens), strict=True)
        return [
            Part(member.name, member.kind, weight, member.tasks, chances, cosines)
            for member, weight, (chances, cosines) in said
        ]

    def _metrics(self, model: KnowsMetrics) -> list[Metric]:
        return [metric for metric in model.metrics if self.mix == DEFAULT or metric.kind == LEARNED]

    def _fit_mix(self, rules: Rules, labels: Ints) -> Mix:
        left_out = self._panel.left_out
        if self.mix == PAPER:
            return fit_mix_as_published(left_out, labels)
        return rules.weigh(left_out, labels, prior=self._panel.prior(rules), voices=self._panel.voices)

    def _why_fall_back(self, rules: Rules, labels: Ints) -> str | None:
        if not self.adaptive:
            return None
        left_out = self._panel.left_out
        learned = np.array([kind == LEARNED for kind in self._panel.kinds])
        lift, chance = lift_over_chance(left_out, labels, learned), 1 / left_out.shape[2]
        best, least = chance + lift * (1 - chance), chance + rules.threshold * (1 - chance)
        if self.mix == PAPER:
            least = PAPER_THRESHOLD
        if best >= least:
            return None
        return (
            f"No cluster fits this task: the best learned metric answers {best:.0%} of the examples from the others, "
            f"less than the {least:.0%} asked for. A model trained on the examples alone answers instead."
        )

    def _train_alone(self, model: KnowsMetrics, tokens: Tokens, labels: Ints) -> Alone:
        if self.mix == PAPER:
            return ConvolutionAlone(model.vectors.table, tokens, labels, len(self.classes_))
        return train_alone(model.metrics, tokens, labels, len(self.classes_))

    def _chances(self, tokens: Tokens, known: Mapping[int, Said] | None = None) -> Floats:
        """Raw answers; `known` is what metrics were asked already, by their id."""
        if self._alone is not None:
            return self._alone.chances(tokens)
        used = np.flatnonzero(np.abs(self.mix_.weights) > 1e-6)  # one that does not count need not be asked
        return blend(self.mix_.weights[used], self._panel.chances(tokens, used, known))


def train_alone(metrics: Sequence[Metric], shots: Tokens, labels: Ints, classes: int) -> Alone:
    """The single-task model, on the encoders that were not learned."""
    encoders = {metric.kind: metric.encoder for metric in metrics}
    return LinearAlone(encoders[FROZEN], encoders[LEXICAL], shots, labels, classes=classes)


def pose_problem(metrics: Sequence[Metric], shots: Tokens, labels: Ints, texts: Tokens, *, answers: Ints,
                 classes: tuple[str, ...]) -> Problem:  # fmt: skip
    """Every metric's answers on a few-shot problem whose right answers are known."""
    panel = Panel(metrics, shots, labels, classes)
    return Problem(
        panel.kinds,
        tuple(member.size for member in panel.members),
        panel.voices,
        panel.left_out,
        labels,
        panel.chances(texts, np.arange(len(panel.members))),
        train_alone(metrics, shots, labels, len(classes)).chances(texts),
        answers,
    )


def _require_model(model: KnowsMetrics | None) -> KnowsMetrics:
    if model is None:
        raise InputError("FewShotClassifier has no model. Make it with FewShotClassifier(load_model(path)).")
    return model
