"""Examples -> a fitted classifier and its leave-one-out estimate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import manymetrics as mm
from manymetrics.service.problems import Invalid
from manymetrics.service.settings import Settings
from manymetrics.service.values import Estimate, Labelled

LEAST_LABELS, MOST_LABELS = 2, 1000


def check_examples(examples: Sequence[Labelled], settings: Settings, *, most: int) -> None:
    """Refuse examples that no classifier can be made of."""
    labels = {one.label for one in examples if one.label is not None}
    if len(examples) > most:
        raise Invalid(f"A classifier has at most {most:,} examples. Give fewer.")
    if len(labels) < LEAST_LABELS:
        raise Invalid("A classifier needs examples of at least two labels. Add some of another label.")
    if len(labels) > MOST_LABELS:
        raise Invalid(f"A classifier has at most {MOST_LABELS:,} labels. Are the texts and the labels swapped?")
    check_texts([one.text for one in examples], settings)
    if any(not label.strip() or len(label) > settings.longest_label or "\0" in label for label in labels):
        raise Invalid(
            f"A label is blank, longer than {settings.longest_label} characters, or holds a NUL character. Mend it."
        )


def check_texts(texts: Sequence[str], settings: Settings) -> None:
    """Refuse texts that are blank, too long, or cannot be kept."""
    for place, text in enumerate(texts):
        if not text.strip():
            raise Invalid(f"Text {place + 1} is blank. Leave it out.")
        if len(text) > settings.longest_text:
            raise Invalid(f"Text {place + 1} has more than {settings.longest_text:,} characters. Shorten it.")
        if "\0" in text:
            raise Invalid(f"Text {place + 1} holds a NUL character. Leave it out.")


def fit(model: mm.MetricModel, examples: Sequence[Labelled], options: Mapping[str, Any]) -> mm.FewShotClassifier:
    """A classifier of these examples; those without a label are counter-examples."""
    labelled = [one for one in examples if one.label is not None]
    counters = [one.text for one in examples if one.label is None]
    try:
        return model.adapt([one.text for one in labelled], [one.label for one in labelled], counters, **options)
    except mm.InputError as problem:
        raise Invalid("No classifier can be made of these examples. Give two labels with examples each.") from problem


def estimate(fitted: mm.FewShotClassifier) -> Estimate | None:
    """How well the examples answer one another; None where none could be left out."""
    found = fitted.doctor()
    return as_estimate(found.accuracy, found.low, found.high, found.tried)


def as_estimate(accuracy: float | None, low: float | None, high: float | None, tried: int) -> Estimate | None:
    """An estimate of numbers that may not be known."""
    if accuracy is None or low is None or high is None or not tried or not math.isfinite(accuracy):
        return None
    return Estimate(accuracy, low, high, tried)
