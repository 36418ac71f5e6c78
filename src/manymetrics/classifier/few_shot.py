"""The scikit-learn estimator around an adapted classifier.

Fitting makes a new `Classifier` and then replaces one reference. A prediction in another thread uses the old state or
the new one, and a fit that fails leaves the old state in place. A fit takes milliseconds and depends on the set of
examples alone, so adding and removing examples are a fit on the resulting set. A saved classifier is the fingerprint of
its model, its settings and the examples, some kilobytes: loading fits it again, which gives the same bits. The encoder
of gradient steps on the examples is saved as low-rank factors.

    classifier/classifier.safetensors   a `SavedClassifier`

Loading scikit-learn costs a second or more, and neither adapting nor predicting needs it: it is imported only inside
the methods that use its types.
"""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

import numpy as np

from manymetrics.classifier.classifier import Answers, Classifier, Explanation, OwnSteps, adapt
from manymetrics.classifier.confidence import Number, class_shares
from manymetrics.classifier.doctor import Diagnosis, Suggestion, diagnose, suggest_texts
from manymetrics.classifier.examples import SupportSet, as_examples, support_set
from manymetrics.classifier.own_steps import OnStep, check_steps, take_own_steps, use_own_steps
from manymetrics.classifier.predictor import Predictor
from manymetrics.encode.encoder import EmbeddedTexts
from manymetrics.errors import InputError
from manymetrics.store import Kind, check_output_folder, packed, write_folder
from manymetrics.values import Floats, as_texts

AUTO, REJECTED = "auto", "rejected"
DEFAULT_THRESHOLD = 0.5  # probability of being in scope below which `reject=True` rejects a text
BATCH_SIZE = 8192  # texts, which bounds the memory of a prediction
PRINTED_TYPES = (str, bytes, bool, int, float, tuple, type(None))  # parameters short enough to be shown as they are
LIVE = {
    "reject": "True, False, or a probability between 0 and 1",
    "margin": "a difference of probabilities between 0 and 1",
}  # settings that need no refit
CLASSIFIER = Kind("classifier", 6, "Adapt the model to the examples again.")
EXAMPLES = "classifier.safetensors"
Label = str | bool | int | float
Setting = str | bool | int | float | None


@dataclass(frozen=True)
class SavedClassifier:
    """All it takes to fit a classifier again, with the model that it was adapted from."""

    model: str  # fingerprint
    settings: Mapping[str, Setting]
    examples: tuple[tuple[str, Label], ...]
    counter_examples: tuple[str, ...]
    descriptions: tuple[tuple[Label, str], ...]
    class_prior: tuple[tuple[Label, float], ...] | None
    own_steps: OwnSteps | None = None


class FewShotClassifier:
    """Classifies texts from a handful of examples of each label, in its own combination of a model's metrics.

    Parameters
    ----------
    model : a learned model, from `learn_metrics` or `load_model`.
    adaptive : whether the frozen encoder answers alone when no cluster fits the task.
    label_names : whether the name of a label counts as one more example of it, if the names are informative; False
        compares texts with examples alone.
    reject : whether `predict` may answer that none of the labels fits. True rejects a text whose probability of being
        in scope is below 0.5; a number between 0 and 1 is a threshold of your own. A live setting: no refit.
    margin : `predict` also rejects a text whose two most probable labels are closer than this. A live setting.
    rejected : what `predict` answers for a rejected text. `auto` is the string "rejected" where labels are strings and
        -1 where they are numbers, which scikit-learn's reports can count as a label of its own.
    steps : gradient steps on the examples, for an encoder of the task's own: a number, "auto" for as many as pay, or 0.
        They take seconds and need torch; answering does not.
    class_prior : how common each label is among the texts to come, as shares or counts, {label: number}. None: as in
        the tasks of the bank that share the labels, otherwise uniform. A live setting.

    Attributes
    ----------
    classifier_ : the fitted state, a value that never changes; the attributes below are read from it.
    classes_ : the labels, sorted; the columns of `predict_proba`.
    examples_ : the examples, (text, label), in the order of the labels and texts.
    counter_examples_ : texts that are out of scope.
    descriptions_ : what labels mean, where it was given.
    class_prior_ : the share of each label that is assumed, {label: share}.
    uses_names_ : whether the names of the labels count as examples.
    weights_ : how much each metric counts, by name.
    assignment_ : which cluster of the bank this task is assigned to, and why; None where nothing is known.
    fallback_ : why no cluster fits, as a sentence, or None.
    own_steps_ : whether gradient steps on the examples are used, and why, as a sentence; None without steps.
    temperature_ : what the logits are divided by; None without calibration.
    """

    classes_ = property(attrgetter("classifier_.support.classes"))
    examples_ = property(attrgetter("classifier_.support.pairs"))
    counter_examples_ = property(attrgetter("classifier_.counter_examples"))
    descriptions_ = property(lambda self: dict(self.classifier_.support.descriptions))
    uses_names_ = property(attrgetter("classifier_.uses_names"))
    weights_ = property(lambda self: dict(zip([metric.name for metric in self.classifier_.metrics],
                                              self.classifier_.weights.tolist(), strict=True)))  # fmt: skip
    assignment_ = property(attrgetter("classifier_.assignment"))
    fallback_ = property(attrgetter("classifier_.fallback_reason"))
    own_steps_ = property(lambda self: getattr(self.classifier_.own_steps, "reason", None))
    temperature_ = property(attrgetter("classifier_.temperature"))

    def __init__(self, model: Any = None, *, adaptive: bool = True, reject: bool | float = False,
                 margin: float = 0.0, rejected: Any = AUTO, label_names: bool = True,
                 steps: int | str = 0, class_prior: Mapping[Any, float] | None = None) -> None:  # fmt: skip
        self.model, self.adaptive, self.label_names, self.steps = model, adaptive, label_names, steps
        self.reject, self.margin, self.rejected, self.class_prior = reject, margin, rejected, class_prior

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor and what they are set to."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Set some of the constructor's arguments."""
        known = inspect.signature(type(self)).parameters
        if unknown := [name for name in params if name not in known]:
            raise InputError(
                f"{type(self).__name__} has no parameter {unknown[0]!r}. Its parameters are {', '.join(sorted(known))}."
            )
        vars(self).update(params)
        return self

    def fit(self, X: Iterable[str], y: Iterable[Any], counter_examples: Iterable[str] = (),
            descriptions: Mapping[Any, str] | None = None) -> Self:  # fmt: skip
        """Fit the task's own metric and classifier.

        `counter_examples` are texts that are out of scope. `descriptions` say what labels mean, in place of their
        names; a label that is described need not have an example.
        """
        check_steps(self.steps)
        self._classifier = self._fit(support_set(X, y, descriptions), counter_examples, self.steps)
        return self

    def restore(self, texts: Iterable[str], labels: Iterable[Any], counter_examples: Iterable[str],
                descriptions: Mapping[Any, str], own_steps: OwnSteps | None) -> Self:  # fmt: skip
        """Fit with gradient steps that were taken before."""
        support = support_set(texts, labels, descriptions)
        self._classifier = self._fit(support, counter_examples, own_steps=own_steps)
        return self

    def take_steps(self, steps: int | str = "auto", on_step: OnStep | None = None) -> Self:
        """Take gradient steps on the examples, from the encoder of the task's cluster or the frozen one.

        Whether the moved encoder is used is decided by answers to examples that are left out: see `own_steps_`. An
        interrupt leaves the classifier as it was. `on_step` is called with the steps taken and their total.
        """
        check_steps(steps)
        fitted = self.classifier_
        self._classifier = self._fit(fitted.support, fitted.counter_examples, steps, on_step)
        return self

    def _fit(self, support: SupportSet, counter_examples: Iterable[str] = (), steps: int | str = 0,
             on_step: OnStep | None = None, own_steps: OwnSteps | None = None) -> Classifier:  # fmt: skip
        """The fitted state; settings that cannot be used are refused."""
        counters = tuple(sorted(as_texts(counter_examples)))
        fitted = adapt(self._predictor(), support, counters, adaptive=self.adaptive, label_names=self.label_names)
        self._live(fitted)
        if steps:
            own_steps = take_own_steps(fitted, steps, on_step or (lambda step, total: None))
        return fitted if own_steps is None else use_own_steps(fitted, own_steps)

    def predict_proba(self, X: Iterable[str]) -> Floats:
        """*p(y | x)*: (texts, labels), in the order of `classes_`."""
        return self.answer(X).probabilities

    def predict(self, X: Iterable[str]) -> Any:
        """The most probable label of each text, the first of equal ones; `rejected` where no label fits."""
        fitted, rejected = self.classifier_, self.rejected
        classes = fitted.support.classes
        if rejected == AUTO:
            rejected = REJECTED if isinstance(classes[0], str) else -1
            if (self.reject or self.margin) and rejected in classes.tolist():
                raise InputError(
                    f"The examples have the label {rejected!r}, as rejected texts would. Set `rejected` anew."
                )
        answers = self._answer(fitted, X)
        labels = classes[answers.most_probable]
        if not (self.reject or self.margin):
            return labels
        kinds = "U" if isinstance(rejected, str) else "biuf" if isinstance(rejected, Number) else ""
        return np.where(answers.rejected, rejected, labels if labels.dtype.kind in kinds else labels.astype(object))

    def score(self, X: Iterable[str], y: Iterable[Any], sample_weight: Any = None) -> float:
        """The share of right answers."""
        right = [answer == label for answer, label in zip(self.predict(X), y, strict=True)]
        return float(np.average(right, weights=sample_weight))

    def scope_proba(self, X: Iterable[str]) -> Floats:
        """The probability that each text is in scope: (texts,)."""
        return self.answer(X).scope

    def answer(self, X: Iterable[str] | EmbeddedTexts) -> Answers:
        """Probabilities, scope, and what is rejected and why."""
        return self._answer(self.classifier_, X)

    def _answer(self, fitted: Classifier, X: Iterable[str] | EmbeddedTexts) -> Answers:
        """The answers to any number of texts, some thousands at a time."""
        texts, live = EmbeddedTexts.of(X), self._live(fitted)
        if len(texts) <= BATCH_SIZE:
            return fitted.answer(texts, **live)
        starts = range(0, len(texts), BATCH_SIZE)
        return Answers.join([fitted.answer(texts.texts[start : start + BATCH_SIZE], **live) for start in starts])

    def scope_threshold(self, share: float) -> float:
        """A value for `reject` that loses about this share of the texts in scope, estimated by leave-one-out."""
        if not (isinstance(share, Number) and 0 < share < 1):
            raise InputError(f"Found a share of {share!r}. Give one between 0 and 1, such as 0.05.")
        return self.classifier_.scope_threshold(float(share))

    def add_examples(self, texts: Iterable[str], labels: Iterable[Any]) -> Self:
        """Add examples, also of new labels: the same classifier as a fit on all of them."""
        return self._refit([*self.examples_, *zip(*as_examples(texts, labels), strict=True)])

    def remove_examples(self, texts: Iterable[str]) -> Self:
        """Remove the examples with these texts."""
        examples, removed = self.examples_, set(as_texts(texts))
        if missing := sorted(removed - {text for text, _ in examples}):
            raise InputError(f"There is no example {missing[0]!r} to remove. Give the text as it was given.")
        return self._refit([pair for pair in examples if pair[0] not in removed])

    def forget(self, label: Any) -> Self:
        """Remove a label with all its examples."""
        support = self.classifier_.support
        if label not in support.classes.tolist():
            raise InputError(f"There is no label {label!r} to forget. Give a label of the examples.")
        descriptions = {name: text for name, text in support.descriptions.items() if name != label}
        return self._refit([pair for pair in support.pairs if pair[1] != label], descriptions)

    def explain(self, text: str) -> Explanation:
        """Why the text is answered as it is."""
        fitted = self.classifier_
        return fitted.explain(text, **self._live(fitted))

    def doctor(self) -> Diagnosis:
        """Problems of the examples, and their cross-validated accuracy."""
        support, own_steps = self.classifier_.support, self.own_steps_
        return diagnose(support, lambda some, texts: self._fit(some).answer(texts).probabilities, own_steps)

    def suggest(self, texts: Iterable[str], count: int = 10) -> tuple[Suggestion, ...]:
        """Which of these unlabelled texts to label next, and why: uncertain or unlike the examples, and diverse."""
        fitted, listed = self.classifier_, EmbeddedTexts(dict.fromkeys(as_texts(texts)))
        if not len(listed):
            return ()
        answers, embeddings = self._answer(fitted, listed), listed.rows(fitted.scope.encoders[0], unit=True)
        labels = fitted.support.classes.tolist()
        return suggest_texts(listed.texts, labels, answers.probabilities, answers.scope,
                             embeddings=embeddings, count=count)  # fmt: skip

    def save(self, path: str | Path) -> None:
        """Write the examples and settings to a folder of some kilobytes, to be used with the model.

        The folder contains the example texts. An existing classifier is replaced.
        """
        fitted, prior = self.classifier_, self.class_prior
        self._live(fitted)
        labels = fitted.support.classes.tolist()
        shares = None if prior is None else tuple((label, float(prior[label])) for label in labels)
        settings = {name: value for name, value in self.get_params().items() if name not in ("model", "class_prior")}
        descriptions = tuple(fitted.support.descriptions.items())
        for name, value in settings.items():
            if not isinstance(value, Setting):
                raise InputError(
                    f"The setting {name}={value!r} cannot be saved. Set it to a string, a number, True, False or None."
                )
        saved = SavedClassifier(self._predictor().fingerprint, settings, fitted.support.pairs, fitted.counter_examples,
                                descriptions, shares, fitted.own_steps)  # fmt: skip
        write_folder(Path(path), {EXAMPLES: packed.dump(saved)}, CLASSIFIER)

    @staticmethod
    def check_output_folder(path: str | Path, *, replace: bool = True) -> None:
        """Refuse a folder that `save` would refuse; without `replace` also one that holds a classifier."""
        check_output_folder(Path(path).absolute(), CLASSIFIER, replace=replace)

    @property
    def classifier_(self) -> Classifier:
        """The fitted state."""
        if "_classifier" not in vars(self):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                "This FewShotClassifier instance is not fitted yet. Call 'fit' with some examples first."
            )
        return self._classifier

    @property
    def class_prior_(self) -> dict[Any, float]:
        """The share of each label that is assumed before a text is seen."""
        fitted = self.classifier_
        labels, given = fitted.support.classes.tolist(), self.class_prior
        shares = fitted.base_rate if given is None else class_shares(given, labels)
        return dict(zip(labels, shares.tolist(), strict=True))

    def _refit(self, examples: list[tuple[str, Any]], descriptions: Mapping[Any, str] | None = None
               ) -> Self:  # fmt: skip
        fitted = self.classifier_
        texts, labels = [text for text, _ in examples], [label for _, label in examples]
        descriptions = fitted.support.descriptions if descriptions is None else descriptions
        return self.restore(texts, labels, fitted.counter_examples, descriptions, fitted.own_steps)

    def _live(self, fitted: Classifier) -> dict[str, Any]:
        """The settings that need no refit, as arguments of `Classifier.answer`."""
        for name, allowed in LIVE.items():
            value = getattr(self, name)
            if not (isinstance(value, Number) and 0 <= value <= 1):
                raise InputError(f"Found {name}={value!r}. Give {allowed}.")
        threshold = DEFAULT_THRESHOLD if isinstance(self.reject, bool | np.bool_) else float(self.reject)
        prior = None if self.class_prior is None else class_shares(self.class_prior, fitted.support.classes.tolist())
        return {"threshold": threshold if self.reject else None, "margin": float(self.margin), "prior": prior}

    def _predictor(self) -> Predictor:
        predictor = getattr(self.model, "predictor", self.model)
        if not isinstance(predictor, Predictor):
            given = "no model" if predictor is None else f"a model of type {type(predictor).__name__}"
            raise InputError(f"FewShotClassifier has {given}. Make it with FewShotClassifier(load_model(path)).")
        return predictor

    def __getstate__(self) -> dict[str, Any]:
        """The parameters and the examples; a fit on these gives the same bits."""
        if not self.__sklearn_is_fitted__():
            return self.get_params()
        fitted, support = self.classifier_, self.classifier_.support
        examples = (support.texts, support.labels, fitted.counter_examples, support.descriptions, fitted.own_steps)
        return {**self.get_params(), "_fitted": examples}

    def __setstate__(self, state: dict[str, Any]) -> None:
        fitted = state.pop("_fitted", None)
        vars(self).update(state)
        if fitted is not None:
            self.restore(*fitted)

    def __repr__(self) -> str:
        changed = []
        for name, parameter in inspect.signature(type(self)).parameters.items():
            value, is_printed = getattr(self, name), isinstance(getattr(self, name), PRINTED_TYPES)
            if not is_printed or repr(value) != repr(parameter.default):
                changed.append(f"{name}={value!r}" if is_printed else f"{name}=<{type(value).__name__}>")
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        """A classifier; texts in, not numbers."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(string=True, one_d_array=True, two_d_array=False),
        )

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` has been called."""
        return "_classifier" in vars(self)
