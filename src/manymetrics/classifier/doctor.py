"""A task's examples -> what is wrong with them, and how well they answer one another."""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manymetrics.classifier.examples import SupportSet
from manymetrics.values import Floats, Texts
from manymetrics.weigh.selection import wilson

FOLDS = 10  # rounds in which every example is answered from the others
FEW = 3  # examples; a label with fewer is named
SURE = 0.8  # the probability from which a wrong answer makes an example suspect


@dataclass(frozen=True)
class Confusion:
    """A label whose examples are answered with another."""

    label: Any
    answered: Any
    count: int


@dataclass(frozen=True)
class Suspect:
    """An example that the others answer with another label, and surely so."""

    text: str
    label: Any
    answered: Any
    probability: float


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong with a task's examples. Without any that can be left out, the accuracy is not known: NaN."""

    examples: int
    labels: int
    tried: int  # examples that were answered from the others
    accuracy: float
    low: float
    high: float
    duplicates: tuple[tuple[str, Any], ...]  # (text, label), given more than once
    contradictions: tuple[tuple[str, tuple[Any, ...]], ...]  # a text and the labels it has
    few: tuple[tuple[Any, int], ...]  # labels with hardly any example
    confusions: tuple[Confusion, ...]
    suspects: tuple[Suspect, ...]
    guessing: float = 0.0  # the accuracy of always answering the commonest label

    @property
    def is_chance(self) -> bool:
        """Whether the examples answer one another no better than guessing, as far as so many tell."""
        return bool(self.tried) and self.low <= self.guessing

    def __str__(self) -> str:
        share = f"{self.accuracy:.0%} [{self.low:.0%}, {self.high:.0%}]"
        right = f"{share} of {self.tried} are answered rightly from the others"
        lines = [f"{self.examples} examples of {self.labels} labels: {right if self.tried else 'too few to try'}."]
        if self.is_chance:
            lines.append(
                f"This is chance: always answering the commonest label gives {self.guessing:.0%}. The examples do not "
                "tell the labels apart; give more of them, or clearer ones."
            )
        lines += [
            f"Contradiction: {text!r} has the labels {', '.join(map(str, every))}."
            for text, every in self.contradictions
        ]
        lines += [f"Duplicate: {text!r} ({label}) is there more than once." for text, label in self.duplicates]
        lines += [f"Few examples: {label} has {count}." for label, count in self.few]
        lines += [
            f"Confused: {one.count} example{'s' * (one.count > 1)} of {one.label} answered {one.answered}."
            for one in self.confusions
        ]
        lines += [
            f"Suspect: {one.text!r} is labelled {one.label}; the others say {one.answered} ({one.probability:.0%})."
            for one in self.suspects
        ]
        return "\n".join(lines if len(lines) > 1 else [*lines, "Nothing else was found."])


Answer = Callable[[SupportSet, Texts], Floats]  # from some examples, probabilities of texts: (texts, classes)


def diagnose(support: SupportSet, answer: Answer) -> Diagnosis:
    """Look the examples over; `answer` answers texts from some of them."""
    tried, answers = answer_left_out(support, answer)  # rows, (rows, classes)
    found, truth = answers.argmax(axis=1), support.numbers[tried]
    wrong = np.flatnonzero(found != truth)
    labels, counts = support.classes.tolist(), np.bincount(support.numbers, minlength=len(support.classes))
    confused = Counter((labels[truth[row]], labels[found[row]]) for row in wrong)
    sure = [row for row in wrong if answers[row].max() >= SURE]
    low, high = wilson(int((found == truth).sum()), len(tried))
    return Diagnosis(
        len(support),
        len(labels),
        len(tried),
        float((found == truth).mean()) if len(tried) else float("nan"),
        low,
        high,
        tuple(pair for pair, count in Counter(_folded(support)).items() if count > 1),
        _contradictions(support),
        tuple((labels[place], int(count)) for place, count in enumerate(counts) if count < FEW),
        tuple(Confusion(label, other, count) for (label, other), count in confused.most_common()),
        tuple(Suspect(support.texts[tried[r]], support.labels[tried[r]], labels[found[r]], float(answers[r].max()))
              for r in sorted(sure, key=lambda row: -answers[row].max())),
        float(np.bincount(truth).max() / len(truth)) if len(tried) else 0.0,
    )  # fmt: skip


def answer_left_out(support: SupportSet, answer: Answer) -> tuple[list[int], Floats]:
    """Which examples can be answered from the others, and the probabilities they then get: (rows, classes).

    A tenth of them at a time, every tenth in the order of the labels, so that no label is ever left empty. The only
    example of a label cannot be tried.
    """
    counts = np.bincount(support.numbers)
    known = np.flatnonzero(counts[support.numbers] > 1)
    answers = np.zeros((len(known), len(support.classes)))
    for fold in range(min(FOLDS, len(known))):
        asked = known[fold::FOLDS]
        kept = np.setdiff1d(np.arange(len(support)), asked)
        answers[fold::FOLDS] = answer(support.take(kept), support.texts.take(asked))
    return known.tolist(), answers


def _folded(support: SupportSet) -> list[tuple[str, Any]]:
    return [(_plain(text), label) for text, label in zip(support.texts, support.labels, strict=True)]


def _contradictions(support: SupportSet) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    labels: dict[str, dict[Any, None]] = defaultdict(dict)
    for text, label in _folded(support):
        labels[text][label] = None
    return tuple((text, tuple(found)) for text, found in labels.items() if len(found) > 1)


def _plain(text: str) -> str:
    """A text without the differences that metrics do not see."""
    return " ".join(text.lower().split())
