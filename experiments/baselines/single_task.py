"""Methods that learn from a target's shots and from nothing else.

single_task_network    baseline (1) of the paper: a convolution network trained on the shots
single_task_fasttext   baseline (2) of the paper: a softmax on the mean of fixed word vectors, trained as fastText does
tfidf_regression       logistic regression on the shots' own words, or their letter runs
"""

from typing import Any

import numpy as np
from scipy.special import softmax

from experiments.methods import predicted_labels
from manymetrics.encode.encoder import EmbeddedTexts, normalize
from manymetrics.encode.vectors import WordVectors
from manymetrics.evaluation.baselines import Method
from manymetrics.measure.heads import Head
from manymetrics.values import Floats, Ints, Task
from manymetrics.weigh.published import FEW_SHOTS, SingleTaskNetwork

WORDS = {"analyzer": "word", "ngram_range": (1, 2), "sublinear_tf": True, "token_pattern": r"(?u)\b\w+\b"}
LETTERS = {"analyzer": "char_wb", "ngram_range": (2, 5), "sublinear_tf": True}
SHOTS_C = 10.0  # scikit-learn's C: a handful of shots bears less regularisation than its default


def single_task_network(words: WordVectors, *, steps: int = FEW_SHOTS.steps, seed: int = 0) -> Method:
    """A convolution network trained on the shots of each task."""

    def answer(task: Task) -> list[str]:
        network = SingleTaskNetwork.fit(words, task.train, steps=steps, seed=seed)
        return predicted_labels(task, network.logits(EmbeddedTexts(task.test.texts)))

    return answer


def single_task_fasttext(words: WordVectors, *, rate: float = 0.5, epochs: int = 50, seed: int = 0) -> Method:
    """The classifier of fastText, on word vectors that stay fixed."""

    def answer(task: Task) -> list[str]:
        shots = task.train
        rows = normalize(words.encode(shots.texts))
        rng = np.random.default_rng(seed)
        head = _descend_as_fasttext(rows, shots.numbers, len(task.labels), rate=rate, epochs=epochs, rng=rng)
        return predicted_labels(task, head.probabilities(normalize(words.encode(task.test.texts))))

    return answer


def _descend_as_fasttext(rows: Floats, labels: Ints, classes: int, *, rate: float, epochs: int,
                         rng: np.random.Generator) -> Head:  # fmt: skip
    """One example at a time, at a rate that falls linearly to nothing; no offset, and weights that start at zero."""
    weights = np.zeros((rows.shape[1], classes))
    total = epochs * len(rows)
    order = np.concatenate([rng.permutation(len(rows)) for _ in range(epochs)])
    for step, row in enumerate(order):
        over = softmax(rows[row] @ weights)  # (classes,)
        over[labels[row]] -= 1
        weights -= rate * (1 - step / total) * np.outer(rows[row], over)
    return Head(weights, np.zeros(classes))


def tfidf_regression(features: dict[str, Any], *, C: float = SHOTS_C) -> Method:
    """Logistic regression on `WORDS` or `LETTERS` of the shots."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    def answer(task: Task) -> list[str]:
        model = make_pipeline(TfidfVectorizer(**features), LogisticRegression(C=C, max_iter=1000))
        try:
            model.fit(task.train.texts, task.train.labels)
        except ValueError:  # no shot holds a word
            return [task.train.labels[0]] * len(task.test)
        return [str(label) for label in model.predict(task.test.texts)]

    return answer
