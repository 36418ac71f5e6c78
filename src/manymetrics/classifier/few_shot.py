"""The scikit-learn estimator around an adapted classifier.

Fitting makes a new `Classifier` and then replaces one reference. A prediction in another thread uses the old state or
the new one, and a fit that fails leaves the old state in place.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from manymetrics.classifier.classifier import Answers, Classifier, adapt, take_steps
from manymetrics.classifier.doctor import Diagnosis, diagnose
from manymetrics.classifier.estimator import Estimator
from manymetrics.classifier.examples import SupportSet, replace_labels, support_set
from manymetrics.classifier.explanation import Explanation
from manymetrics.classifier.growth import with_examples, without_examples, without_label
from manymetrics.classifier.loading import load_predictor_once
from manymetrics.classifier.own_steps import OnStep, OwnSteps, check_steps
from manymetrics.classifier.predictor import Predictor
from manymetrics.classifier.saving import CLASSIFIER, SavedClassifier, write_classifier
from manymetrics.classifier.suggestion import Suggestion, suggest_texts
from manymetrics.encode.encoder import EmbeddedTexts
from manymetrics.errors import InputError
from manymetrics.store import check_output_folder
from manymetrics.values import Floats, as_texts
from manymetrics.values.notebook import html_table, html_text
from manymetrics.weigh.assignment import Assignment

AUTO, REJECTED = "auto", "rejected"
DEFAULT_THRESHOLD = 0.5  # probability of being in scope below which `reject=True` rejects a text


class FewShotClassifier(Estimator):
    """Classifies texts from a handful of examples of each label, in its own combination of a model's metrics.

    Parameters
    ----------
    model : a learned model, from `learn_metrics` or `load_model`, or the path of a saved one.
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

    def __init__(self, model: Any = None, *, adaptive: bool = True, reject: bool | float = False,
                 margin: float = 0.0, rejected: Any = AUTO, label_names: bool = True,
                 steps: int | str = 0, class_prior: Mapping[Any, float] | None = None) -> None:  # fmt: skip
        self.model = model
        self.adaptive = adaptive
        self.label_names = label_names
        self.reject = reject
        self.margin = margin
        self.rejected = rejected
        self.steps = steps
        self.class_prior = class_prior

    def fit(self, X: Iterable[str], y: Iterable[Any], counter_examples: Iterable[str] = (),
            descriptions: Mapping[Any, str] | None = None) -> "FewShotClassifier":  # fmt: skip
        """Fit the task's own metric and classifier.

        `counter_examples` are texts that are out of scope. `descriptions` say what labels mean, in place of their
        names; a label that is described need not have an example.
        """
        check_steps(self.steps)
        adapted = self._restored(X, y, counter_examples, descriptions, None)
        self._classifier = self._moved(adapted, self.steps) if self.steps else adapted
        return self

    def take_steps(self, steps: int | str = "auto", on_step: OnStep | None = None) -> "FewShotClassifier":
        """Take gradient steps on the examples, from the encoder of the task's cluster or the frozen one.

        Whether the moved encoder is used is decided by answers to examples that are left out: see `own_steps_`. An
        interrupt leaves the classifier as it was. `on_step` is called with the steps taken and their total.
        """
        check_steps(steps)
        adapted = self.classifier_
        unmoved = self._adapt(adapted.support, adapted.counter_examples)
        self._classifier = self._moved(unmoved, steps, on_step) if steps else unmoved
        return self

    def _moved(self, adapted: Classifier, steps: int | str, on_step: OnStep | None = None) -> Classifier:
        own_steps = take_steps(adapted, steps, on_step or (lambda step, total: None))
        return self._adapt(adapted.support, adapted.counter_examples, own_steps)

    def predict_proba(self, X: Iterable[str]) -> Floats:
        """*p(y | x)*: (texts, labels), in the order of `classes_`."""
        adapted = self.classifier_
        parts = [answers.probabilities for answers in self._answers(adapted, X)]
        return np.concatenate(parts) if parts else np.zeros((0, len(adapted.support.classes)))

    def predict(self, X: Iterable[str]) -> Any:
        """The most probable label of each text, the first of equal ones; `rejected` where no label fits."""
        adapted, rejecting = self.classifier_, self.reject or self.margin
        rejected = self._rejected(adapted) if rejecting else None
        batches = list(self._answers(adapted, X))
        indices = np.concatenate([np.zeros(0, dtype=np.int64), *(answers.most_probable for answers in batches)])
        labels = adapted.support.classes[indices]
        if not rejecting:
            return labels
        outside = np.concatenate([np.zeros(0, dtype=bool), *(answers.rejected for answers in batches)])
        return replace_labels(labels, outside, rejected)

    def scope_proba(self, X: Iterable[str]) -> Floats:
        """The probability that each text is in scope: (texts,)."""
        return np.concatenate([np.zeros(0), *(answers.scope for answers in self._answers(self.classifier_, X))])

    def scope_threshold(self, share: float) -> float:
        """A value for `reject` that loses about this share of the texts in scope, estimated by leave-one-out."""
        if not (_is_share(share) and 0 < share < 1):
            raise InputError(f"Found a share of {share!r}. Give one between 0 and 1, such as 0.05.")
        return self.classifier_.scope_threshold(float(share))

    def answer(self, X: Iterable[str] | EmbeddedTexts) -> Answers:
        """Probabilities, scope, and what is rejected and why, for one batch of texts."""
        adapted = self.classifier_
        return adapted.answer(EmbeddedTexts.of(X), **self._live(adapted))

    def add_examples(self, texts: Iterable[str], labels: Iterable[Any]) -> "FewShotClassifier":
        """Add examples, also of new labels: the same classifier as a fit on all of them."""
        return self._refit(*with_examples(self.examples_, texts, labels))

    def remove_examples(self, texts: Iterable[str]) -> "FewShotClassifier":
        """Remove the examples with these texts."""
        return self._refit(*without_examples(self.examples_, texts))

    def forget(self, label: Any) -> "FewShotClassifier":
        """Remove a label with all its examples."""
        texts, labels = without_label(self.examples_, label, self.descriptions_)
        descriptions = {name: text for name, text in self.descriptions_.items() if name != label}
        return self.restore(texts, labels, self.counter_examples_, descriptions, self.classifier_.own_steps)

    def explain(self, text: str) -> Explanation:
        """Why the text is answered as it is."""
        adapted = self.classifier_
        return adapted.explain(text, **self._live(adapted))

    def doctor(self) -> Diagnosis:
        """Problems of the examples, and their cross-validated accuracy."""

        def answer(support: SupportSet, texts: EmbeddedTexts) -> Floats:
            return self._adapt(support).answer(texts).probabilities

        return replace(diagnose(self.classifier_.support, answer), own_steps=self.own_steps_)

    def suggest(self, texts: Iterable[str], count: int = 10) -> tuple[Suggestion, ...]:
        """Which of these unlabelled texts to label next, and why: uncertain or unlike the examples, and diverse."""
        adapted, listed = self.classifier_, tuple(dict.fromkeys(as_texts(texts)))
        if not listed:
            return ()
        live, batches = self._live(adapted), list(adapted.batches(listed))
        answers = [adapted.answer(batch, **live) for batch in batches]
        embeddings = np.concatenate([batch.unit_embeddings(adapted.scope.encoders[0]) for batch in batches])
        probabilities = np.concatenate([batch.probabilities for batch in answers])
        scope = np.concatenate([batch.scope for batch in answers])
        labels = adapted.support.classes.tolist()
        return suggest_texts(listed, labels, probabilities, scope, embeddings=embeddings, count=count)

    def save(self, path: str | Path) -> None:
        """Write the examples and settings to a folder of some kilobytes, to be used with the model.

        The folder contains the example texts. An existing classifier is replaced.
        """
        adapted, prior = self.classifier_, self.class_prior
        self._live(adapted)
        labels = adapted.support.classes.tolist()
        shares = None if prior is None else tuple((label, float(prior[label])) for label in labels)
        settings = {name: value for name, value in self.get_params().items() if name not in ("model", "class_prior")}
        saved = SavedClassifier(
            self._predictor().fingerprint,
            settings,
            self.examples_,
            self.counter_examples_,
            tuple(self.descriptions_.items()),
            shares,
            adapted.own_steps,
        )
        write_classifier(Path(path), saved)

    @staticmethod
    def check_output_folder(path: str | Path, *, replace: bool = True) -> None:
        """Refuse a folder that `save` would refuse; without `replace` also one that holds a classifier."""
        check_output_folder(Path(path).absolute(), CLASSIFIER, replace=replace)

    @property
    def classifier_(self) -> Classifier:
        """The fitted state."""
        if "_classifier" not in vars(self):
            self.require_fitted()
        return self._classifier

    @property
    def classes_(self) -> Any:
        """The labels, sorted."""
        return self.classifier_.support.classes

    @property
    def examples_(self) -> tuple[tuple[str, Any], ...]:
        """The examples, (text, label), in the order of the labels and texts."""
        support = self.classifier_.support
        return tuple(zip(support.texts, support.labels, strict=True))

    @property
    def counter_examples_(self) -> tuple[str, ...]:
        """Texts that are out of scope."""
        return self.classifier_.counter_examples

    @property
    def descriptions_(self) -> dict[Any, str]:
        """What labels mean, where it was given."""
        return dict(self.classifier_.support.descriptions)

    @property
    def class_prior_(self) -> dict[Any, float]:
        """The share of each label that is assumed before a text is seen."""
        adapted = self.classifier_
        prior = self._prior(adapted)
        shares = adapted.base_rate if prior is None else prior
        return dict(zip(adapted.support.classes.tolist(), shares.tolist(), strict=True))

    @property
    def uses_names_(self) -> bool:
        """Whether the names of the labels count as examples."""
        return self.classifier_.uses_names

    @property
    def weights_(self) -> dict[str, float]:
        """How much each metric counts, by name."""
        adapted = self.classifier_
        weights = adapted.weights.tolist()
        return {metric.name: weight for metric, weight in zip(adapted.metrics, weights, strict=True)}

    @property
    def assignment_(self) -> Assignment | None:
        """Which cluster of the bank this task is assigned to, and why; None where nothing is known."""
        return self.classifier_.assignment

    @property
    def fallback_(self) -> str | None:
        """Why no cluster fits, as a sentence, or None."""
        return self.classifier_.fallback_reason

    @property
    def temperature_(self) -> float | None:
        """What the logits are divided by; None without calibration."""
        return self.classifier_.temperature

    @property
    def own_steps_(self) -> str | None:
        """Whether gradient steps on the examples are used, and why, as a sentence; None without steps."""
        own_steps = self.classifier_.own_steps
        return None if own_steps is None else own_steps.reason

    def _adapt(self, support: SupportSet, counter_examples: tuple[str, ...] = (),
               own_steps: OwnSteps | None = None) -> Classifier:  # fmt: skip
        return adapt(
            self._predictor(),
            support,
            counter_examples,
            adaptive=self.adaptive,
            label_names=self.label_names,
            own_steps=own_steps,
        )

    def _refit(self, texts: list[str], labels: list[Any]) -> "FewShotClassifier":
        return self.restore(texts, labels, self.counter_examples_, self.descriptions_, self.classifier_.own_steps)

    def restore(self, *examples: Any) -> "FewShotClassifier":
        """Fit with gradient steps that were taken before: texts, labels, counter-examples, descriptions, steps."""
        self._classifier = self._restored(*examples)
        return self

    def _restored(self, texts: Iterable[str], labels: Iterable[Any], counter_examples: Iterable[str],
                  descriptions: Mapping[Any, str] | None, own_steps: OwnSteps | None) -> Classifier:  # fmt: skip
        self._limits()
        support, counters = support_set(texts, labels, descriptions), tuple(sorted(as_texts(counter_examples)))
        adapted = self._adapt(support, counters, own_steps)
        self._prior(adapted)
        return adapted

    def _answers(self, adapted: Classifier, X: Iterable[str]) -> Iterator[Answers]:
        texts, live = as_texts(X), self._live(adapted)
        return (adapted.answer(batch, **live) for batch in adapted.batches(texts))

    def _live(self, adapted: Classifier) -> dict[str, Any]:
        """The settings that need no refit, as arguments of `Classifier.answer`."""
        threshold, margin = self._limits()
        return {"threshold": threshold, "margin": margin, "prior": self._prior(adapted)}

    def _prior(self, adapted: Classifier) -> Floats | None:
        """The class prior in the order of `classes_`: (labels,), sums to one; None where none is set."""
        given, labels = self.class_prior, adapted.support.classes.tolist()
        if given is None:
            return None
        if not isinstance(given, Mapping) or not all(
            _is_number(share) and 0 < share < np.inf for share in given.values()
        ):
            raise InputError(f"Found class_prior={given!r}. Give a number above 0 for each label: {{label: share}}.")
        for label in (*given, *labels):
            if label not in given or label not in labels:
                where, elsewhere = (
                    ("class_prior", "the examples") if label in given else ("the examples", "class_prior")
                )
                raise InputError(f"The label {label!r} is in {where} and not in {elsewhere}. Set class_prior anew.")
        shares = np.array([given[label] for label in labels], dtype=np.float64)
        shares /= shares.max()  # so that the sum is finite
        return shares / shares.sum()  # type: ignore[no-any-return]

    def _rejected(self, adapted: Classifier) -> Any:
        """What `predict` answers for a rejected text."""
        if self.rejected != AUTO:
            return self.rejected
        labels = adapted.support.classes.tolist()
        rejected = REJECTED if isinstance(labels[0], str) else -1
        if rejected in labels:
            raise InputError(f"The examples have the label {rejected!r}, as rejected texts would. Set `rejected` anew.")
        return rejected

    def _limits(self) -> tuple[float | None, float]:
        """The probability of being in scope that `reject` asks for, None where nothing is rejected; and the margin."""
        reject, margin = self.reject, self.margin
        if not _is_share(reject):
            raise InputError(f"Found reject={reject!r}. Give True, False, or a probability between 0 and 1.")
        if not _is_share(margin):
            raise InputError(f"Found margin={margin!r}. Give a difference of probabilities between 0 and 1.")
        is_true = isinstance(reject, bool | np.bool_) and bool(reject)
        return DEFAULT_THRESHOLD if is_true else float(reject) or None, float(margin)

    def _predictor(self) -> Predictor:
        if isinstance(self.model, str | os.PathLike):
            return load_predictor_once(self.model)
        predictor = getattr(self.model, "predictor", self.model)
        if not isinstance(predictor, Predictor):
            given = "no model" if predictor is None else f"a model of type {type(predictor).__name__}"
            raise InputError(f"FewShotClassifier has {given}. Make it with FewShotClassifier(load_model(path)).")
        return predictor

    def _repr_html_(self) -> str:
        if not self.__sklearn_is_fitted__():
            return html_text(repr(self))
        rows = [[name, f"{weight:.3f}"] for name, weight in sorted(self.weights_.items(), key=lambda pair: -pair[1])]
        title = f"{self!r}: {len(self.examples_)} examples of {len(self.classes_)} labels. {self.fallback_ or ''}"
        return html_table(title, ["metric", "weight"], rows)

    def __getstate__(self) -> dict[str, Any]:
        """The parameters and the examples; a fit on these gives the same bits."""
        state = self.get_params()
        if self.__sklearn_is_fitted__():
            texts, labels = [text for text, _ in self.examples_], [label for _, label in self.examples_]
            state["_fitted"] = (
                texts,
                labels,
                list(self.counter_examples_),
                self.descriptions_,
                self.classifier_.own_steps,
            )
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        fitted = state.pop("_fitted", None)
        vars(self).update(state)
        if fitted is not None:
            self.restore(*fitted)


def _is_share(value: Any) -> bool:
    return _is_number(value) and bool(0 <= value <= 1)


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.bool_ | np.number)
