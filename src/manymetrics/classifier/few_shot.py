"""The scikit-learn estimator around an adapted classifier.

Fitting makes a new `Adapted` and then swaps one reference: whoever predicts meanwhile, in whatever thread, is answered
by the old one or by the new one, and a fit that fails leaves the old one as it was.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from manymetrics.classifier.adapted import DEFAULT, Adapted, Answers, adapt
from manymetrics.classifier.doctor import Diagnosis, diagnose
from manymetrics.classifier.estimator import Estimator
from manymetrics.classifier.examples import SupportSet, as_texts, support_set
from manymetrics.classifier.explanation import Explanation
from manymetrics.classifier.growth import with_examples, without_examples, without_label
from manymetrics.classifier.loading import load_serving_once
from manymetrics.classifier.saving import write_classifier
from manymetrics.classifier.serving import Serving
from manymetrics.classifier.suggestion import Suggestion, suggest_texts
from manymetrics.encode.encoder import Features
from manymetrics.errors import InputError
from manymetrics.values import NO_TEXTS, Floats, Mix, Texts
from manymetrics.values.notebook import html_table, html_text
from manymetrics.weigh.routing import Route

EVEN = 0.5  # the probability of being in scope below which a text is rejected, if nothing else is said


class FewShotClassifier(Estimator):
    """Classifies texts from a handful of examples of each label, with its own mix of a model's metrics.

    Parameters
    ----------
    model : a learned model, from `learn_metrics` or `load_model`, or the path of a saved one.
    mix : `default`, or `paper` for the published way: the clusters' metrics alone, weights unconstrained, and
        probabilities as they come.
    adaptive : fall back to a model trained on the examples alone when no cluster fits the task.
    label_names : whether the name of a label counts as one more example of it, if names say something about the
        examples; False compares texts with examples alone.
    reject : whether `predict` may answer that none of the labels fits. True rejects a text whose probability of being
        in scope is below 0.5; a number between 0 and 1 is a threshold of your own. A live setting: no refit.
    margin : `predict` also rejects a text whose two likeliest labels are closer than this. A live setting.
    rejected : what `predict` answers for a rejected text.
    class_prior : how common each label is among the texts to come, as shares or counts, {label: number}; None takes
        labels to be as common as in the tasks of the bank that share them, elsewhere as common as one another.
        A live setting.

    Attributes
    ----------
    adapted_ : the fitted state, a value that never changes; the attributes below are read from it.
    classes_ : the labels, sorted; the columns of `predict_proba`.
    examples_ : the examples, (text, label), in the order of the labels and texts.
    counter_examples_ : texts that are out of scope.
    descriptions_ : what labels mean, as far as it was said.
    class_prior_ : how common each label is taken to be, {label: share}.
    uses_names_ : whether the names of the labels count as examples.
    weights_ : how much each metric counts, by name.
    mix_ : the weights with the steps and the gap of their fit.
    route_ : which cluster of the bank's tasks this one is taken for, and why; None where nothing tells.
    fallback_ : why no cluster fits, as a sentence, or None.
    temperature_ : what the logarithms of the raw probabilities are divided by; None where they are left as they come.
    """

    def __init__(self, model: Any = None, *, mix: str = DEFAULT, adaptive: bool = True, reject: bool | float = False,
                 margin: float = 0.0, rejected: Any = None, label_names: bool = True,
                 class_prior: Mapping[Any, float] | None = None) -> None:  # fmt: skip
        self.model = model
        self.mix = mix
        self.adaptive = adaptive
        self.label_names = label_names
        self.reject = reject
        self.margin = margin
        self.rejected = rejected
        self.class_prior = class_prior

    def fit(self, X: Iterable[str], y: Iterable[Any], counter_examples: Iterable[str] = (),
            descriptions: Mapping[Any, str] | None = None) -> "FewShotClassifier":  # fmt: skip
        """Take in the examples and find the task's own mix.

        `counter_examples` are texts that are out of scope. `descriptions` say what labels mean, in place of their
        names; a label that is described need not have an example.
        """
        self._limits()
        counters = Texts(sorted(as_texts(counter_examples)))
        adapted = self._adapt(support_set(X, y, descriptions), counters)
        self._prior(adapted)
        self._adapted = adapted
        return self

    def predict_proba(self, X: Iterable[str]) -> Floats:
        """*p(y | x)*: (texts, labels), in the order of `classes_`."""
        adapted = self.adapted_
        parts = [answers.probabilities for answers in self._answers(adapted, X)]
        return np.concatenate(parts) if parts else np.zeros((0, len(adapted.support.classes)))

    def predict(self, X: Iterable[str]) -> Any:
        """The likeliest label of each text, of equal ones the first; `rejected` where none of the labels fits."""
        adapted, rejected = self.adapted_, self.rejected
        found = [(answers.likeliest, answers.rejected) for answers in self._answers(adapted, X)]
        likeliest = np.concatenate([np.zeros(0, dtype=np.int64), *(one for one, _ in found)])
        labels = adapted.support.classes[likeliest]
        if self.reject or self.margin:
            labels = labels.astype(object)
            labels[np.concatenate([np.zeros(0, dtype=bool), *(out for _, out in found)])] = rejected
        return labels

    def scope_proba(self, X: Iterable[str]) -> Floats:
        """The probability that each text is in scope: (texts,)."""
        return np.concatenate([np.zeros(0), *(answers.scope for answers in self._answers(self.adapted_, X))])

    def scope_threshold(self, share: float) -> float:
        """A value for `reject` that loses about this share of the texts in scope, told from the examples left out."""
        if not (_is_share(share) and 0 < share < 1):
            raise InputError(f"Found a share of {share!r}. Give one between 0 and 1, such as 0.05.")
        return self.adapted_.scope_threshold(float(share))

    def answer(self, X: Iterable[str]) -> Answers:
        """Probabilities, scope, and what is rejected and why, for one batch of texts."""
        adapted = self.adapted_
        return adapted.answer(Texts(as_texts(X)), **self._live(adapted))

    def add_examples(self, texts: Iterable[str], labels: Iterable[Any]) -> "FewShotClassifier":
        """Take in further examples, of labels old or new: the same classifier as a fit on all of them."""
        return self._refit(*with_examples(self.examples_, texts, labels))

    def remove_examples(self, texts: Iterable[str]) -> "FewShotClassifier":
        """Forget the examples with these texts."""
        return self._refit(*without_examples(self.examples_, texts))

    def forget(self, label: Any) -> "FewShotClassifier":
        """Forget a label with all its examples."""
        kept = without_label(self.examples_, label, self.descriptions_)
        descriptions = {one: text for one, text in self.descriptions_.items() if one != label}
        return self.fit(*kept, self.counter_examples_, descriptions)

    def explain(self, text: str) -> Explanation:
        """Why the text is answered as it is."""
        adapted = self.adapted_
        return adapted.explain(text, **self._live(adapted))

    def doctor(self) -> Diagnosis:
        """What is wrong with the examples, and how well they answer one another."""

        def answer(support: SupportSet, texts: Texts) -> Floats:
            return self._adapt(support).answer(texts).probabilities

        return diagnose(self.adapted_.support, answer)

    def suggest(self, texts: Iterable[str], count: int = 10) -> tuple[Suggestion, ...]:
        """Which of these unlabelled texts to label next, and why: uncertain or unlike the examples, and diverse."""
        adapted, listed = self.adapted_, Texts(dict.fromkeys(as_texts(texts)))
        answers = list(self._answers(adapted, listed))
        if not answers:
            return ()
        probabilities = np.concatenate([one.probabilities for one in answers])
        scope = np.concatenate([one.scope for one in answers])
        labels, encoder = adapted.support.classes.tolist(), adapted.scope.encoders[0]
        rows = Features(listed).directions(encoder)
        return suggest_texts(listed, labels, probabilities, scope, rows=rows, count=count)

    def save(self, path: str | Path) -> None:
        """Write the examples and settings to a folder, some kilobytes to be used beside the model.

        The folder holds the example texts as they are.
        """
        adapted, prior = self.adapted_, self.class_prior
        self._live(adapted)
        settings = {name: value for name, value in self.get_params().items() if name not in ("model", "class_prior")}
        about = {
            "settings": settings,
            "examples": self.examples_,
            "counter_examples": list(adapted.counter_examples),
            "descriptions": list(self.descriptions_.items()),
            "class_prior": prior and [(label, float(prior[label])) for label in adapted.support.classes.tolist()],
        }
        write_classifier(Path(path), {"model": self._serving().fingerprint, **about})

    @property
    def adapted_(self) -> Adapted:
        """The fitted state."""
        self.require_fitted()
        return self._adapted

    @property
    def classes_(self) -> Any:
        """The labels, sorted."""
        return self.adapted_.support.classes

    @property
    def examples_(self) -> tuple[tuple[str, Any], ...]:
        """The examples, (text, label), in the order of the labels and texts."""
        support = self.adapted_.support
        return tuple(zip(support.texts, support.labels, strict=True))

    @property
    def counter_examples_(self) -> tuple[str, ...]:
        """Texts that are out of scope."""
        return tuple(self.adapted_.counter_examples)

    @property
    def descriptions_(self) -> dict[Any, str]:
        """What labels mean, as far as it was said."""
        return dict(self.adapted_.support.descriptions)

    @property
    def class_prior_(self) -> dict[Any, float]:
        """How common each label is taken to be before a text is seen."""
        adapted = self.adapted_
        prior = self._prior(adapted)
        shares = adapted.base_rate if prior is None else prior
        return dict(zip(adapted.support.classes.tolist(), shares.tolist(), strict=True))

    @property
    def uses_names_(self) -> bool:
        """Whether the names of the labels count as examples."""
        return self.adapted_.ensemble.uses_names

    @property
    def weights_(self) -> dict[str, float]:
        """How much each metric counts, by name."""
        adapted = self.adapted_
        weights = adapted.mix.weights.tolist()
        return {member.name: weight for member, weight in zip(adapted.ensemble.members, weights, strict=True)}

    @property
    def mix_(self) -> Mix:
        """The weights with the steps and the gap of their fit."""
        return self.adapted_.mix

    @property
    def route_(self) -> Route | None:
        """Which cluster of the bank's tasks this one is taken for, and why; None where nothing tells."""
        return self.adapted_.route

    @property
    def fallback_(self) -> str | None:
        """Why no cluster fits, as a sentence, or None."""
        return self.adapted_.fallback_reason

    @property
    def temperature_(self) -> float | None:
        """What the logarithms of the raw probabilities are divided by."""
        return self.adapted_.temperature

    def _adapt(self, support: SupportSet, counter_examples: Texts = NO_TEXTS) -> Adapted:
        return adapt(
            self._serving(),
            support,
            counter_examples,
            mix=self.mix,
            adaptive=self.adaptive,
            label_names=self.label_names,
        )

    def _refit(self, texts: list[str], labels: list[Any]) -> "FewShotClassifier":
        return self.fit(texts, labels, self.counter_examples_, self.descriptions_)

    def _answers(self, adapted: Adapted, X: Iterable[str]) -> Iterator[Answers]:
        texts = X if isinstance(X, Texts) else as_texts(X)
        live = self._live(adapted)
        return (adapted.answer(batch, **live) for batch in adapted.batches(texts))

    def _live(self, adapted: Adapted) -> dict[str, Any]:
        """What can be set without a refit, as `Adapted.answer` takes it."""
        threshold, margin = self._limits()
        return {"threshold": threshold, "margin": margin, "prior": self._prior(adapted)}

    def _prior(self, adapted: Adapted) -> Floats | None:
        """How common each label is, in the order of `classes_`: (labels,), sums to one; None where nothing is said."""
        given, labels = self.class_prior, adapted.support.classes.tolist()
        if given is None:
            return None
        if not isinstance(given, Mapping) or not all(_is_number(one) and 0 < one < np.inf for one in given.values()):
            raise InputError(f"Found class_prior={given!r}. Give a number above 0 for each label: {{label: share}}.")
        for label in (*given, *labels):
            if label not in given or label not in labels:
                where, elsewhere = (
                    ("class_prior", "the examples") if label in given else ("the examples", "class_prior")
                )
                raise InputError(f"The label {label!r} is in {where} and not in {elsewhere}. Set class_prior anew.")
        shares = np.array([given[label] for label in labels], dtype=np.float64)
        shares /= shares.max()  # sums of large numbers are no numbers
        return shares / shares.sum()  # type: ignore[no-any-return]

    def _limits(self) -> tuple[float | None, float]:
        """The probability of being in scope that `reject` asks for, None where nothing is rejected; and the margin."""
        reject, margin = self.reject, self.margin
        if not _is_share(reject):
            raise InputError(f"Found reject={reject!r}. Give True, False, or a probability between 0 and 1.")
        if not _is_share(margin):
            raise InputError(f"Found margin={margin!r}. Give a difference of probabilities between 0 and 1.")
        return EVEN if isinstance(reject, bool | np.bool_) and reject else float(reject) or None, float(margin)

    def _serving(self) -> Serving:
        if isinstance(self.model, str | os.PathLike):
            return load_serving_once(self.model)
        found = getattr(self.model, "serving", self.model)
        if not isinstance(found, Serving):
            what = "no model" if found is None else f"{type(found).__name__} for a model"
            raise InputError(f"FewShotClassifier has {what}. Make it with FewShotClassifier(load_model(path)).")
        return found

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
            state["_fitted"] = (texts, labels, list(self.counter_examples_), self.descriptions_)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        fitted = state.pop("_fitted", None)
        vars(self).update(state)
        if fitted is not None:
            self.fit(*fitted)


def _is_share(value: Any) -> bool:
    return _is_number(value) and bool(0 <= value <= 1)


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.bool_ | np.number)
