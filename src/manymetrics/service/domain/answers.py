"""What a classifier is asked: predict, explain, evaluate, suggest.

Predictions for one classifier that wait together are made in one call. Nothing of the texts is cached beyond the call,
so that the time of a response does not depend on what another tenant asked.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from scipy.stats import binomtest

import manymetrics as mm
from manymetrics.service.domain import schemas
from manymetrics.service.domain.classifiers import Classifiers
from manymetrics.service.domain.errors import Invalid
from manymetrics.service.domain.fitting import check_texts
from manymetrics.service.domain.tenants import Caller
from manymetrics.service.runtime.scheduler import WorkItem
from manymetrics.service.storage.tables import Version

MAX_CONFUSIONS = 50  # listed of a test set


@dataclass(frozen=True, eq=False)
class Question:
    """Texts for one version of a classifier, and how many near examples are wanted with each prediction."""

    version: Version
    texts: Sequence[str]
    nearest: int


class Answering:
    """What can be asked of the classifiers."""

    def __init__(self, classifiers: Classifiers) -> None:
        self.classifiers, self.settings = classifiers, classifiers.settings

    def question(self, caller: Caller, classifier_id: str, texts: Sequence[str], *, nearest: int = 3) -> Question:
        """Check the texts; `answer_together` makes the predictions."""
        if len(texts) > self.settings.most_texts:
            raise Invalid(f"A request has at most {self.settings.most_texts:,} texts. Send several.")
        check_texts(texts, self.settings)
        return Question(self.classifiers.current(caller, classifier_id), texts, nearest)

    @mm.encode.text_cache_of(None)
    def answer_together(self, items: Sequence[WorkItem]) -> None:
        """Answer the questions of several callers, those to one classifier in one call."""
        groups: dict[tuple[str, int, int], list[WorkItem]] = defaultdict(list)
        for item in items:
            question: Question = item.work
            groups[question.version.classifier_id, question.version.number, question.nearest].append(item)
        texts = mm.encode.EmbeddedTexts(
            [text for group in groups.values() for item in group for text in item.work.texts]
        )
        if len(groups) > 1:
            for fingerprint in {item.work.version.model for item in items}:
                texts.rows(self.classifiers.models.get(fingerprint).predictor.base)  # all texts encoded in one call
        end = 0
        for group in groups.values():
            start, end = end, end + sum(len(item.work.texts) for item in group)
            version: Version = group[0].work.version
            try:
                classifier = self.classifiers.fitted.get(version)
                own_texts = texts.take(range(start, end)) if len(groups) > 1 else texts
                predictions = iter(_predict(classifier, own_texts, group[0].work.nearest))
            except BaseException as error:  # such as of a classifier that was deleted meanwhile
                for item in group:
                    item.result.set_exception(error)
                continue
            for item in group:
                own_predictions = list(islice(predictions, len(item.work.texts)))
                item.result.set_result(schemas.Predictions(version.number, version.model, own_predictions))

    @mm.encode.text_cache_of(None)
    def predict(self, caller: Caller, classifier_id: str, text: str, *, nearest: int = 0) -> schemas.Prediction:
        """The prediction for one text."""
        _, classifier = self._fitted(caller, classifier_id, [text])
        return _predict(classifier, mm.encode.EmbeddedTexts([text]), nearest)[0]

    @mm.encode.text_cache_of(None)
    def explain(self, caller: Caller, classifier_id: str, text: str) -> schemas.ExplanationInfo:
        """Why a text gets its prediction."""
        version, classifier = self._fitted(caller, classifier_id, [text])
        explanation = classifier.explain(text)
        label, reason = explanation.label, explanation.rejected
        return schemas.convert(
            explanation,
            schemas.ExplanationInfo,
            label=None if reason else label,
            most_probable=label,
            rejected=reason is not None,
            reason=reason,
            version=version.number,
            model_version=version.model,
        )

    @mm.encode.text_cache_of(None)
    def evaluate(
        self, caller: Caller, classifier_id: str, test: Sequence[schemas.Labelled] = ()
    ) -> schemas.EvaluationInfo:
        """The leave-one-out estimate, problems of the examples, and the results on a labelled test set."""
        version, classifier = self._fitted(caller, classifier_id, [example.text for example in test])
        diagnosis = classifier.doctor()
        return schemas.convert(
            diagnosis,
            schemas.EvaluationInfo,
            estimate=schemas.Estimate.of(diagnosis),
            is_chance=diagnosis.is_chance,
            duplicates=[schemas.Labelled(*pair) for pair in diagnosis.duplicates],
            contradictions=[schemas.Contradiction(text, list(labels)) for text, labels in diagnosis.contradictions],
            few=[schemas.LabelCount(*pair) for pair in diagnosis.few],
            test=_test(classifier, test) if test else None,
            version=version.number,
            model_version=version.model,
        )

    @mm.encode.text_cache_of(None)
    def suggest(
        self, caller: Caller, classifier_id: str, texts: Sequence[str], *, count: int = 10
    ) -> Sequence[mm.classifier.Suggestion]:
        """Which of these unlabelled texts to label next, and why."""
        _, classifier = self._fitted(caller, classifier_id, texts)
        return classifier.suggest(texts, count)

    def _fitted(self, caller: Caller, classifier_id: str, texts: Sequence[str]) -> tuple[Version, mm.FewShotClassifier]:
        version = self.question(caller, classifier_id, texts).version
        return version, self.classifiers.fitted.get(version)


def _predict(
    classifier: mm.FewShotClassifier, texts: mm.encode.EmbeddedTexts, nearest: int
) -> list[schemas.Prediction]:
    """A prediction for each text, with the examples most similar to it."""
    labels, examples = [str(label) for label in classifier.classes_.tolist()], classifier.examples_
    answers = classifier.answer(texts)
    indices, cosines = classifier.classifier_.nearest_examples(texts, nearest)  # (texts, nearest) each
    near_examples = [
        [schemas.Near(examples[index][0], str(examples[index][1]), cosine) for index, cosine in zip(*row, strict=True)]
        for row in zip(indices.tolist(), cosines.tolist(), strict=True)
    ]
    columns = (answers.probabilities, answers.most_probable, answers.scope)
    rows = zip(*(column.tolist() for column in columns), answers.reasons, near_examples, strict=True)
    return [
        schemas.Prediction(
            label=None if reason else labels[best],
            most_probable=labels[best],
            probability=probabilities[best],
            scope=scope,
            rejected=reason is not None,
            reason=reason,
            probabilities=dict(zip(labels, probabilities, strict=True)),
            nearest=near,
        )
        for probabilities, best, scope, reason, near in rows
    ]


def _test(classifier: mm.FewShotClassifier, test: Sequence[schemas.Labelled]) -> schemas.TestResult:
    """The predictions for a test set; a rejected text is correct only if it has no label."""
    predictions = _predict(classifier, mm.encode.EmbeddedTexts([example.text for example in test]), 0)
    pairs = [(example.label, prediction.label) for example, prediction in zip(test, predictions, strict=True)]
    correct = sum(label == prediction for label, prediction in pairs)
    wrong = Counter(pair for pair in pairs if None not in pair and pair[0] != pair[1])
    interval = binomtest(correct, len(test)).proportion_ci(method="wilson")
    return schemas.TestResult(
        accuracy=correct / len(test),
        low=float(interval.low),
        high=float(interval.high),
        texts=len(test),
        right=correct,
        rejected=sum(prediction.rejected for prediction in predictions),
        confusions=[
            mm.classifier.Confusion(label, prediction, count)
            for (label, prediction), count in wrong.most_common(MAX_CONFUSIONS)
        ],
    )
