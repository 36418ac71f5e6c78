"""Classifiers over labels that the tasks of a bank share, for a new task with exactly these labels.

Their log-probabilities are fixed logits that the task's own regression adds to. The bank determines what the labels
mean and how common they are, the shots what is particular to the task.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manymetrics.encode.encoder import EmbeddedTexts, Encoder
from manymetrics.measure.heads import Head
from manymetrics.specialize.metric import Metric
from manymetrics.values import Floats


@dataclass(frozen=True, eq=False)
class SharedLabelHead:
    """The mean log-probabilities of some classifiers, in the order of a task's labels."""

    heads: tuple[tuple[Encoder, Head], ...]
    base_rate: Floats  # (classes,): how common each label is in the bank

    @classmethod
    def of(cls, metrics: Sequence[Metric], classes: Sequence[str]) -> "SharedLabelHead":
        """From metrics with a classifier over exactly these classes."""
        ordered = [(metric.encoder, metric.shared.in_order(classes)) for metric in metrics if metric.shared]
        rate = np.mean([shared.prior for _, shared in ordered], axis=0, dtype=np.float64)
        return cls(tuple((encoder, shared.head) for encoder, shared in ordered), rate / rate.sum())

    def logits(self, texts: EmbeddedTexts) -> Floats:
        """(texts, classes)."""
        return np.mean([head.log_probabilities(texts.rows(encoder)) for encoder, head in self.heads], axis=0)  # type: ignore[no-any-return]
