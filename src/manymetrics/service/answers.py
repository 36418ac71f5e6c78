"""The verbs that ask a classifier something: predict, explain, evaluate, suggest.

Predictions that wait together are answered together: texts for one classifier in one call, and the texts of all
classifiers of one model are read by its encoders at once, which remember what they made of them.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.stats import binomtest
from sklearn.preprocessing import normalize

import manymetrics as mm
from manymetrics.service.classifiers import Classifiers
from manymetrics.service.fitting import as_estimate, check_texts
from manymetrics.service.problems import Invalid
from manymetrics.service.queue import Piece
from manymetrics.service.records import Version
from manymetrics.service.tenants import Caller
from manymetrics.service.values import (
    ConfusedLabels,
    Contradiction,
    EvaluationInfo,
    ExplanationInfo,
    Influence,
    LabelCount,
    Labelled,
    MetricVote,
    Near,
    Prediction,
    Predictions,
    SuggestedText,
    SuspectExample,
    TestResult,
)

Asked = tuple[str, int, int]  # classifier, version, near examples


@dataclass(frozen=True, eq=False)
class Question:
    """Texts for one version of a classifier, and how many near examples are wanted with each answer."""

    version: Version
    texts: Sequence[str]
    nearest: int

    @property
    def asked(self) -> Asked:
        """What questions that can be answered in one call have in common."""
        return self.version.classifier_id, self.version.number, self.nearest


class Answering:
    """What can be asked of the classifiers."""

    def __init__(self, classifiers: Classifiers) -> None:
        self.classifiers, self.settings = classifiers, classifiers.settings

    def question(self, caller: Caller, classifier_id: str, texts: Sequence[str], *, nearest: int = 3) -> Question:
        """Check what is asked; the answer is made by `answer_together`."""
        self._check(texts)
        return Question(self.classifiers.current(caller, classifier_id), texts, nearest)

    def predict(self, caller: Caller, classifier_id: str, texts: Sequence[str], *, nearest: int = 3) -> Predictions:
        """Answer some texts at once, without the queue."""
        question = self.question(caller, classifier_id, texts, nearest=nearest)
        return _answer(self.classifiers.fitted(question.version), question, mm.Texts(texts))

    def answer_together(self, pieces: Sequence[Piece]) -> None:
        """Answer the questions of several callers, those to one classifier in one call."""
        groups: dict[Asked, list[Piece]] = {}
        for piece in pieces:
            groups.setdefault(piece.work.asked, []).append(piece)
        together = mm.Texts([text for group in groups.values() for piece in group for text in piece.work.texts])
        for model in {piece.work.version.model for piece in pieces} if len(groups) > 1 else ():
            self._read_at_once(model, together)
        start = 0
        for group in groups.values():
            end = start + sum(len(piece.work.texts) for piece in group)
            self._answer_group(group, together[start:end])
            start = end

    def _answer_group(self, group: Sequence[Piece], texts: mm.Texts) -> None:
        """Answer questions to one classifier; where that fails, each by itself: one does not fail the others."""
        try:
            found = _answer(self.classifiers.fitted(group[0].work.version), group[0].work, texts)
        except BaseException as problem:
            if len(group) == 1:
                group[0].result.set_exception(problem)
                return
            for piece in group:
                self._answer_group([piece], mm.Texts(piece.work.texts))
            return
        items = iter(found.items)
        for piece in group:
            piece.result.set_result(replace(found, items=list(itertools.islice(items, len(piece.work.texts)))))

    def explain(self, caller: Caller, classifier_id: str, text: str) -> ExplanationInfo:
        """Why a text is answered as it is."""
        self._check([text])
        version = self.classifiers.current(caller, classifier_id)
        found = self.classifiers.fitted(version).explain(text)
        return ExplanationInfo(
            None if found.rejected else found.label, found.label, found.probability, found.runner_up,
            found.runner_up_probability, found.scope, found.rejected is not None, found.rejected, found.fallback,
            [Influence(one.text, one.label, one.share, one.similarity) for one in found.examples],
            [MetricVote(one.metric, one.kind, one.weight, one.label, one.probability) for one in found.metrics],
            version.number, version.model,
        )  # fmt: skip

    def weights(self, caller: Caller, classifier_id: str) -> dict[str, float]:
        """How much each metric counts in the classifier's mix, by name."""
        return self.classifiers.fitted(self.classifiers.current(caller, classifier_id)).weights_

    def evaluate(self, caller: Caller, classifier_id: str, test: Sequence[Labelled] = ()) -> EvaluationInfo:
        """The leave-one-out estimate, what is wrong with the examples, and how a labelled test set is answered."""
        if test:
            self._check([one.text for one in test])
        version = self.classifiers.current(caller, classifier_id)
        fitted = self.classifiers.fitted(version)
        found = fitted.doctor()
        return EvaluationInfo(
            as_estimate(found.accuracy, found.low, found.high, found.tried), found.guessing, found.is_chance,
            [Labelled(text, label) for text, label in found.duplicates],
            [Contradiction(text, list(labels)) for text, labels in found.contradictions],
            [LabelCount(label, count) for label, count in found.few],
            [ConfusedLabels(one.label, one.answered, one.count) for one in found.confusions],
            [SuspectExample(one.text, one.label, one.answered, one.probability) for one in found.suspects],
            _try(fitted, test) if test else None, version.number, version.model,
        )  # fmt: skip

    def suggest(
        self, caller: Caller, classifier_id: str, texts: Sequence[str], *, count: int = 10
    ) -> list[SuggestedText]:
        """Which of these unlabelled texts to label next, and why."""
        self._check(texts)
        fitted = self.classifiers.fitted(self.classifiers.current(caller, classifier_id))
        found = fitted.suggest(texts, count)
        return [SuggestedText(one.text, one.reason, one.label, one.probability) for one in found]

    def _check(self, texts: Sequence[str]) -> None:
        if not texts:
            raise Invalid("There are no texts to answer. Give at least one.")
        if len(texts) > self.settings.most_texts:
            raise Invalid(f"A request has at most {self.settings.most_texts:,} texts. Send several.")
        check_texts(texts, self.settings)

    def _read_at_once(self, fingerprint: str, texts: mm.Texts) -> None:
        """Let the encoders that remember what they made of a text read all texts in one go."""
        for metric in self.classifiers.models.get(fingerprint).metrics:
            if isinstance(metric.encoder, mm.SentenceEncoder):
                metric.encoder.encode(texts)
            elif isinstance(metric.encoder, mm.WordVectors):
                metric.encoder.lengths(texts)


def _answer(fitted: mm.FewShotClassifier, question: Question, texts: mm.Texts) -> Predictions:
    labels = [str(label) for label in fitted.classes_.tolist()]
    answers = fitted.answer(texts)
    near = _nearest(fitted, texts, question.nearest) if question.nearest else [[] for _ in texts]
    items = [
        _prediction(labels, probabilities, scope, reason, nearest=nearest)
        for probabilities, scope, reason, nearest in zip(
            answers.probabilities.tolist(), answers.scope.tolist(), answers.reasons, near, strict=True
        )
    ]
    return Predictions(items, question.version.number, question.version.model)


def _prediction(labels: list[str], probabilities: list[float], scope: float, reason: str | None, *,
                nearest: list[Near]) -> Prediction:  # fmt: skip
    best = max(range(len(labels)), key=probabilities.__getitem__)
    label = None if reason else labels[best]
    every = dict(zip(labels, probabilities, strict=True))
    return Prediction(label, probabilities[best], labels[best], scope, reason is not None, reason, every, nearest)


def _nearest(fitted: mm.FewShotClassifier, texts: mm.Texts, count: int) -> list[list[Near]]:
    """The examples most like each text: by the mean cosine of the encoders that tell what is in scope."""
    adapted, examples = fitted.adapted_, fitted.examples_
    known = adapted.ensemble.examples.examples
    cosines: Any = np.mean(  # what stands behind the examples are the labels' names
        [
            _cosines(encoder.encode(texts), known.directions(encoder)[: len(examples)])
            for encoder in adapted.scope.encoders
        ],
        axis=0,
    )
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :count]  # (texts, count)
    return [
        [Near(examples[place][0], examples[place][1], float(cosines[row, place])) for place in places]
        for row, places in enumerate(order.tolist())
    ]


def _cosines(rows: Any, directions: Any) -> Any:
    """Of rows, dense or sparse, with others of length one: (rows, directions)."""
    found = normalize(rows) @ directions.T
    return found.toarray() if issparse(found) else found


def _try(fitted: mm.FewShotClassifier, test: Sequence[Labelled]) -> TestResult:
    """How a labelled test set is answered; a rejected text is no right answer, unless it has no label."""
    answers = fitted.answer([one.text for one in test])
    labels = [str(label) for label in fitted.classes_.tolist()]
    likeliest = [labels[place] for place in answers.likeliest.tolist()]
    found = [None if out else label for label, out in zip(likeliest, answers.rejected.tolist(), strict=True)]
    right = sum(one.label == label for one, label in zip(test, found, strict=True))
    wrong = Counter(
        (one.label or "", label)
        for one, label in zip(test, found, strict=True)
        if label is not None and one.label not in (label, None)
    )
    low, high = binomtest(right, len(test)).proportion_ci(method="wilson")
    confusions = [ConfusedLabels(label, answered, count) for (label, answered), count in wrong.most_common(50)]
    return TestResult(
        len(test), right, right / len(test), float(low), float(high), int(answers.rejected.sum()), confusions
    )
