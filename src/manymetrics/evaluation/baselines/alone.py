"""Methods that learn from a target's shots and from nothing else.

majority               the commonest label of the test texts, always: what knowing nothing but the balance gives
single_task_network    baseline (1) of the paper: a convolution network trained on the shots
single_task_fasttext   baseline (2): the mean of fixed word vectors under a softmax, trained as fastText does
tfidf_regression       logistic regression on the shots' own words, or their letter runs
frozen_prototypes      the nearest label in the space of the mean word vectors, which learn nothing
frozen_regression      logistic regression in that space
"""

from typing import Any

import numpy as np
from scipy.special import softmax

from manymetrics.encode.encoders import MeanEncoder
from manymetrics.encode.settings import PROTOTYPICAL
from manymetrics.encode.vectors import WordVectors
from manymetrics.evaluation.targets import Method
from manymetrics.measure.heads import Head, fit_head
from manymetrics.specialize.metric import FROZEN, SimilarityMetric
from manymetrics.values import Floats, Ints, Task
from manymetrics.weigh.alone import ConvolutionAlone

FASTTEXT_EPOCHS, FASTTEXT_RATE = 50, 0.5
WORDS = {"analyzer": "word", "ngram_range": (1, 2), "sublinear_tf": True, "token_pattern": r"(?u)\b\w+\b"}
LETTERS = {"analyzer": "char_wb", "ngram_range": (2, 5), "sublinear_tf": True}
SHOTS_C = 10.0  # scikit-learn's C: a handful of shots bears less regularisation than its default
FROZEN_TEMPERATURE = 9.0


def majority(task: Task) -> list[str]:
    """The commonest test label for every text."""
    labels, counts = np.unique(task.test.labels, return_counts=True)
    return [str(labels[counts.argmax()])] * len(task.test)


def single_task_network(vectors: WordVectors, *, seed: int = 0) -> Method:
    """A convolution network trained on each task's shots alone."""

    def answer(task: Task) -> list[str]:
        shots, labels = vectors.read(task.train.texts), shot_labels(task)
        model = ConvolutionAlone(vectors.table, shots, labels, len(task.labels), seed=seed)
        return likeliest(task, model.chances(vectors.read(task.test.texts)))

    return answer


def single_task_fasttext(vectors: WordVectors, *, seed: int = 0) -> Method:
    """The classifier of fastText, on word vectors that stay fixed."""
    encoder = MeanEncoder(vectors.table)

    def answer(task: Task) -> list[str]:
        rows = encoder.encode(vectors.read(task.train.texts))
        head = _descend_as_fasttext(rows, shot_labels(task), len(task.labels), np.random.default_rng(seed))
        return likeliest(task, head.chances(encoder.encode(vectors.read(task.test.texts))))

    return answer


def _descend_as_fasttext(rows: Floats, labels: Ints, classes: int, rng: np.random.Generator) -> Head:
    """One example at a time, at a rate that falls linearly to nothing; no offset, and weights that start at zero."""
    weights = np.zeros((rows.shape[1], classes))
    total = FASTTEXT_EPOCHS * len(rows)
    order = np.concatenate([rng.permutation(len(rows)) for _ in range(FASTTEXT_EPOCHS)])
    for step, row in enumerate(order):
        over = softmax(rows[row] @ weights)  # (classes,)
        over[labels[row]] -= 1
        weights -= FASTTEXT_RATE * (1 - step / total) * np.outer(rows[row], over)
    return Head(weights, np.zeros(classes))


def tfidf_regression(features: dict[str, Any]) -> Method:
    """Logistic regression on `WORDS` or `LETTERS` of the shots."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    def answer(task: Task) -> list[str]:
        model = make_pipeline(TfidfVectorizer(**features), LogisticRegression(C=SHOTS_C, max_iter=1000))
        try:
            model.fit(task.train.texts, task.train.labels)
        except ValueError:  # no shot holds a word
            return [task.train.labels[0]] * len(task.test)
        return [str(label) for label in model.predict(task.test.texts)]

    return answer


def frozen_prototypes(vectors: WordVectors) -> Method:
    """The label whose mean shot is nearest to the text's mean word vector."""
    metric = SimilarityMetric("word-vectors", FROZEN, MeanEncoder(vectors.table), PROTOTYPICAL, FROZEN_TEMPERATURE)

    def answer(task: Task) -> list[str]:
        fitted = metric.learn(vectors.read(task.train.texts), shot_labels(task), task.labels)
        return likeliest(task, fitted.chances(vectors.read(task.test.texts)))

    return answer


def frozen_regression(vectors: WordVectors) -> Method:
    """Logistic regression on mean word vectors."""
    encoder = MeanEncoder(vectors.table)

    def answer(task: Task) -> list[str]:
        head = fit_head(encoder.encode(vectors.read(task.train.texts)), shot_labels(task), classes=len(task.labels))
        return likeliest(task, head.chances(encoder.encode(vectors.read(task.test.texts))))

    return answer


def shot_labels(task: Task) -> Ints:
    """The shots' labels as places among the task's labels."""
    return np.array([task.labels.index(label) for label in task.train.labels], dtype=np.int64)


def likeliest(task: Task, chances: Floats) -> list[str]:
    """The label with the highest chance for each text; chances (texts, classes)."""
    return [task.labels[place] for place in chances.argmax(axis=1)]
