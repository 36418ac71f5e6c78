"""ASAP-style clusters: tasks that one linear model serves are found, and what they cannot do is refused."""

import numpy as np
import pytest
from experiments.asap import asap_clusters

from manymetrics.encode import random_vectors
from manymetrics.errors import DataError
from manymetrics.values import Examples, Task, TaskBank

WORDS = {
    "taste": (["sweet", "sour", "salty", "crisp"], ["stale", "burnt", "bland", "soggy"]),
    "speed": (["quick", "swift", "rapid", "brisk"], ["slow", "late", "tardy", "idle"]),
}


def opinion(name, family, seed, size=20):
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for sign, label in ((0, "good"), (1, "bad")):
        for _ in range(size):
            texts.append(" ".join([*rng.choice(["the", "a", "it", "was"], 2), *rng.choice(WORDS[family][sign], 2)]))
            labels.append(label)
    return Task(name, Examples(tuple(texts), tuple(labels)))


@pytest.fixture(scope="module")
def opinions():
    """Eight tasks of two families whose telling words differ."""
    tasks = [opinion(f"{family}-{at}", family, 10 * at + len(family)) for family in WORDS for at in range(4)]
    return TaskBank(tuple(tasks))


@pytest.fixture(scope="module")
def words():
    """Vectors that know nothing."""
    return random_vectors(rows=512, dimensions=32)


def test_families_are_told_apart(opinions, words):
    groups = {frozenset(group) for group in asap_clusters(opinions, words, 2)}
    assert groups == {frozenset(opinions.names[:4]), frozenset(opinions.names[4:])}


def test_there_are_as_many_clusters_as_asked_for_and_none_is_empty(opinions, words):
    for number in (1, 3, 8):
        clusters = asap_clusters(opinions, words, number)
        assert len(clusters) == number
        assert all(clusters)
        again = asap_clusters(opinions, words, number)
        assert list(clusters.labels) == list(again.labels), "the same seed, the same clusters"


def test_tasks_with_other_labels_are_refused(tiny_bank, vectors):
    with pytest.raises(DataError, match="need tasks that all choose between the same two labels, and these do not"):
        asap_clusters(tiny_bank, vectors, 2)
