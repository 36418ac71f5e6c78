"""Problems of a task's examples, their cross-validated accuracy, and which unlabelled texts to label next.

A text is worth a label when its answer is uncertain or when it is far from every example. Uncertain texts are often
similar to one another, so each choice also avoids texts similar to those chosen before.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manymetrics.classifier.examples import SupportSet
from manymetrics.encode.encoder import EmbeddedTexts, dense
from manymetrics.errors import InputError
from manymetrics.values import Floats, fold_text

N_FOLDS = 10
MIN_EXAMPLES = 3  # a label with fewer is reported
SUSPECT_AT = 0.8  # probability of a wrong answer from which an example is suspect
Answer = Callable[[SupportSet, EmbeddedTexts], Floats]  # from some examples, probabilities of texts: (texts, classes)


@dataclass(frozen=True)
class Confusion:
    """A label whose examples are answered with another."""

    label: Any
    answered: Any
    count: int


@dataclass(frozen=True)
class Suspect:
    """An example that the others answer with another label, with a high probability."""

    text: str
    label: Any
    answered: Any
    probability: float


@dataclass(frozen=True)
class Diagnosis:
    """Problems of a task's examples. The accuracy is NaN where no example can be left out."""

    examples: int
    labels: int
    tried: int  # examples that were left out and answered from the others
    accuracy: float
    low: float
    high: float
    duplicates: tuple[tuple[str, Any], ...]  # (text, label), given more than once
    contradictions: tuple[tuple[str, tuple[Any, ...]], ...]  # a text and the labels it has
    few: tuple[tuple[Any, int], ...]  # labels with fewer than MIN_EXAMPLES, and how many
    confusions: tuple[Confusion, ...]
    suspects: tuple[Suspect, ...]
    guessing: float = 0.0  # accuracy of always answering the most common label
    own_steps: str | None = None  # whether gradient steps on the examples are used; the accuracy is without them

    @property
    def is_chance(self) -> bool:
        """Whether the accuracy is not significantly above that of guessing."""
        return bool(self.tried) and self.low <= self.guessing

    def __str__(self) -> str:
        share = f"{self.accuracy:.0%} [{self.low:.0%}, {self.high:.0%}]"
        correct = f"{share} of {self.tried} are answered correctly from the others" if self.tried else "too few to try"
        lines = [f"{self.examples} examples of {self.labels} labels: {correct}."]
        if self.is_chance:
            lines.append(
                f"This could be chance: always answering the most common label gives {self.guessing:.0%}. "
                "Add examples, or clearer ones."
            )
        lines += [] if self.own_steps is None else [self.own_steps]
        lines += [f"Contradiction: {text!r} has the labels {', '.join(map(str, labels))}."
                  for text, labels in self.contradictions]  # fmt: skip
        lines += [f"Duplicate: {text!r} ({label}) occurs more than once." for text, label in self.duplicates]
        lines += [f"Few examples: {label} has {count}." for label, count in self.few]
        lines += [f"Confused: {pair.count} example{'s' * (pair.count > 1)} of {pair.label} answered {pair.answered}."
                  for pair in self.confusions]  # fmt: skip
        lines += [f"Suspect: {example.text!r} is labelled {example.label}; the others answer {example.answered} "
                  f"({example.probability:.0%})." for example in self.suspects]  # fmt: skip
        return "\n".join(lines if len(lines) > 1 else [*lines, "No problem was found."])


def diagnose(support: SupportSet, answer: Answer, own_steps: str | None = None) -> Diagnosis:
    """Check the examples; `answer` answers texts from some of them."""
    tried, answers = answer_left_out(support, answer)  # rows, (rows, classes)
    predicted, truth = answers.argmax(axis=1), support.numbers[tried]
    right, wrong = predicted == truth, np.flatnonzero(predicted != truth)
    labels, counts = support.classes.tolist(), np.bincount(support.numbers, minlength=len(support.classes))
    confused = Counter((labels[truth[row]], labels[predicted[row]]) for row in wrong)
    suspects = [
        Suspect(*support.pairs[tried[row]], labels[predicted[row]], float(answers[row].max()))
        for row in sorted(wrong, key=lambda row: -answers[row].max())
        if answers[row].max() >= SUSPECT_AT
    ]
    low = high = float("nan")
    if tried:
        from scipy.stats import binomtest  # slow to load

        low, high = binomtest(int(right.sum()), len(tried)).proportion_ci(method="wilson")
    occurrences = Counter((fold_text(text), label) for text, label in support.pairs)
    labels_of: dict[str, list[Any]] = defaultdict(list)
    for text, label in occurrences:
        labels_of[text].append(label)
    return Diagnosis(
        len(support), len(labels), len(tried), float(right.mean()) if tried else float("nan"), float(low), float(high),
        duplicates=tuple(pair for pair, count in occurrences.items() if count > 1),
        contradictions=tuple((text, tuple(given)) for text, given in labels_of.items() if len(given) > 1),
        few=tuple((labels[index], int(count)) for index, count in enumerate(counts) if count < MIN_EXAMPLES),
        confusions=tuple(Confusion(*pair, count) for pair, count in confused.most_common()),
        suspects=tuple(suspects),
        guessing=float(np.bincount(truth).max() / len(truth)) if tried else 0.0,
        own_steps=own_steps,
    )  # fmt: skip


def answer_left_out(support: SupportSet, answer: Answer) -> tuple[list[int], Floats]:
    """Which examples can be answered from the others, and the probabilities they then get: (rows, classes).

    In N_FOLDS folds, every tenth example in the order of the labels, so that no label is ever left empty. The only
    example of a label cannot be left out.
    """
    known = np.flatnonzero(np.bincount(support.numbers)[support.numbers] > 1)
    answers = np.zeros((len(known), len(support.classes)))
    for fold in range(min(N_FOLDS, len(known))):
        left_out = known[fold::N_FOLDS]
        others = np.setdiff1d(np.arange(len(support)), left_out)
        answers[fold::N_FOLDS] = answer(support.take(others), support.embedded.take(left_out))
    return known.tolist(), answers


@dataclass(frozen=True)
class Suggestion:
    """A text to label."""

    text: str
    reason: str
    label: Any  # the most probable so far
    probability: float


def suggest_texts(texts: Sequence[str], labels: Sequence[Any], probabilities: Floats, scope: Floats, *,
                  embeddings: Any, count: int) -> tuple[Suggestion, ...]:  # fmt: skip
    """The texts most worth a label: probabilities (texts, labels), scope (texts,), unit embeddings (texts, width)."""
    if count < 1:
        raise InputError(f"Found count={count}. Ask for at least one text.")
    ordered = np.sort(probabilities, axis=1)
    uncertainty = 1 - (ordered[:, -1] - ordered[:, -2])  # (texts,)
    value = np.maximum(uncertainty, 1 - scope)
    distance = np.ones(len(texts))  # 1 less the largest cosine with a text chosen before
    chosen: list[int] = []
    while len(chosen) < min(count, len(texts)):
        gain = value * np.maximum(distance, 1e-6)
        gain[chosen] = -1
        chosen.append(int(gain.argmax()))
        cosines = dense(embeddings @ embeddings[chosen[-1:]].T)[:, 0]
        distance = np.minimum(distance, 1 - np.maximum(cosines, 0))
    suggestions = []
    for row in chosen:
        first, second = np.argsort(-probabilities[row], kind="stable")[:2].tolist()
        best, next_best = probabilities[row, [first, second]].tolist()
        reason = f"uncertain: {labels[first]} ({best:.0%}) or {labels[second]} ({next_best:.0%})"
        if 1 - scope[row] > uncertainty[row]:
            reason = f"far from all examples: in scope with {scope[row]:.0%}"
        suggestions.append(Suggestion(texts[row], reason, labels[first], best))
    return tuple(suggestions)
