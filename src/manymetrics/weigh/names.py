"""The names of a task's labels and its shots -> whether the names are informative.

Under the hypothesis that they are, a shot's label follows a softmax over its similarity to the names, with an unknown
inverse temperature; under the other one, labels are independent of the names. The odds of the two, from even ones,
decide. Similarity to a name is taken relative to its mean over the shots, so that a name that is similar to every text
says nothing. Unlike a permutation test, the odds have power where a task has two or three labels.
"""

from collections.abc import Iterable

import numpy as np
from scipy.special import log_softmax, logsumexp

from manymetrics.values import Floats, Ints

FOR_ANY_LABEL = {
    "label", "class", "category", "intent", "tag", "type", "group", "topic", "id", "no", "nr", "number", "option",
    "value", "code",
}  # fmt: skip
INVERSE_TEMPERATURES = (5.0, 10.0, 20.0, 40.0)  # of similarities between -1 and 1, equally probable


def are_words(names: Iterable[str]) -> bool:
    """Whether at least half of the names are more than numbers, single letters and words for any label: "class 3"."""
    informative = [
        any(len(word) > 1 and not word.isdecimal() and word not in FOR_ANY_LABEL for word in name.split())
        for name in names
    ]
    return 2 * sum(informative) >= len(informative)


def log_odds_of_names(similarity: Floats, labels: Ints) -> float:
    """The log-odds that names are informative: similarity (shots, names), labels (shots,); 0 without shots."""
    if not len(labels):
        return 0.0
    n_classes = similarity.shape[1]
    weights = 1 / np.bincount(labels, minlength=n_classes)[labels]  # every label has the same weight in the mean
    relative = similarity - np.average(similarity, axis=0, weights=weights)
    gains = [
        (log_softmax(scale * relative, axis=1)[np.arange(len(labels)), labels] + np.log(n_classes)).sum()
        for scale in INVERSE_TEMPERATURES
    ]
    return float(logsumexp(gains) - np.log(len(gains)))
