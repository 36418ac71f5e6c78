"""Drawing: the right numbers of the right labels, disjoint, and the same for the same generator."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.collect import EpisodeSampler, split_examples
from manymetrics.errors import DataError, NotEnoughExamples
from manymetrics.values import Examples


def make(**counts: int) -> Examples:
    labels = [label for label, count in counts.items() for _ in range(count)]
    return Examples(tuple(f"text {row}" for row in range(len(labels))), tuple(labels))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_impossible_numbers_are_refused():
    sampler = EpisodeSampler(np.array([0, 0, 1, 1]))
    for numbers, message in (
        ({"ways": 1}, "Found ways=1, expected 2 or more. Ask for ways=2."),
        ({"shots": 0}, "Found shots=0, expected 1 or more. Ask for shots=1."),
        ({"queries": 0}, "Found queries=0, expected 1 or more. Ask for queries=1."),
    ):
        with pytest.raises(DataError, match=re.escape(message)):
            sampler.sample(**{"ways": 2, "shots": 1, "queries": 1, **numbers}, rng=rng())
    with pytest.raises(DataError, match=re.escape("expected three that add up to 1. Try (0.64")):
        split_examples(make(a=1), (0.5, 0.5, 0.5), rng=rng())


def test_nothing_can_be_split_from_nothing():
    with pytest.raises(NotEnoughExamples, match=r"Found no examples to draw from\. Give at least one example"):
        split_examples(Examples(), rng=rng())


def test_a_split_keeps_the_shares_label_by_label():
    split = split_examples(make(a=100, b=50), rng=rng())
    assert Counter(split.train.labels) == {"a": 64, "b": 32}
    assert Counter(split.valid.labels) == {"a": 16, "b": 8}
    assert Counter(split.test.labels) == {"a": 20, "b": 10}


def test_a_label_with_few_examples_fills_train_first():
    for count, parts in ((1, (1, 0, 0)), (2, (2, 0, 0)), (3, (2, 0, 1)), (4, (2, 1, 1))):
        split = split_examples(make(a=count), rng=rng())
        assert (len(split.train), len(split.valid), len(split.test)) == parts


@given(counts=st.lists(st.integers(1, 30), min_size=1, max_size=5), seed=st.integers(0, 99), whole=st.integers(0, 2))
def test_a_split_loses_nothing_and_train_knows_every_label(counts, seed, whole):
    examples = make(**{f"l{place}": count for place, count in enumerate(counts)})
    shares = tuple(float(part == whole) for part in range(3))
    for split in (split_examples(examples, rng=rng(seed)), split_examples(examples, shares, rng=rng(seed))):
        assert sorted([*split.train.texts, *split.valid.texts, *split.test.texts]) == sorted(examples.texts)
        assert set(split.train.labels) == set(examples.labels)


@given(
    counts=st.lists(st.integers(0, 12), min_size=2, max_size=8).filter(lambda c: sum(n > 1 for n in c) > 1),
    ways=st.integers(2, 6),
    shots=st.integers(1, 6),
    queries=st.integers(1, 20),
    seed=st.integers(0, 99),
)
def test_an_episode_keeps_its_promises(counts, ways, shots, queries, seed):
    labels = rng(seed).permutation(np.repeat(np.arange(len(counts)) * 3, counts))
    support, query = EpisodeSampler(labels).sample(ways=ways, shots=shots, queries=queries, rng=rng(seed))
    enough = {3 * place: count for place, count in enumerate(counts) if count > 1}
    drawn = list(dict.fromkeys(labels[support].tolist()))
    assert len(drawn) == min(ways, len(enough))
    assert set(drawn) <= set(enough)
    assert labels[support].tolist() == [label for label in drawn for _ in range(min(shots, enough[label] - 1))]
    assert len(query) == min(queries, sum(enough[label] for label in drawn) - len(support))
    assert set(labels[query].tolist()) <= set(drawn)
    assert len({*support.tolist(), *query.tolist()}) == len(support) + len(query)


def test_queries_are_spread_evenly_where_there_are_enough():
    labels = np.repeat([0, 1, 2], [1_000, 10, 3])
    _, query = EpisodeSampler(labels).sample(ways=3, shots=2, queries=9, rng=rng())
    assert Counter(labels[query].tolist()) == {0: 4, 1: 4, 2: 1}


def test_every_row_and_every_label_gets_its_chance():
    labels = np.repeat([0, 1, 2], [4, 5, 6])
    sampler, source = EpisodeSampler(labels), rng()
    supports = [sampler.sample(ways=2, shots=1, queries=2, rng=source)[0] for _ in range(3_000)]
    shown = Counter(row for rows in supports for row in rows.tolist())
    assert all(abs(shown[row] - 2_000 / (labels == labels[row]).sum()) < 120 for row in range(15))
    drawn = Counter(label for rows in supports for label in labels[rows].tolist())
    assert all(abs(drawn[label] - 2_000) < 150 for label in range(3))


def test_labels_without_two_examples_make_no_episode():
    message = (
        "Found 1 label with two examples or more, an episode needs two such labels. Add examples, or leave the task"
    )
    with pytest.raises(NotEnoughExamples, match=message):
        EpisodeSampler(np.array([0, 0, 1]))
    with pytest.raises(NotEnoughExamples, match="Found 0 labels with two"):
        EpisodeSampler(np.array([], dtype=int))


def test_the_generator_alone_decides():
    examples, sampler = make(a=9, b=9, c=9), EpisodeSampler(np.repeat([0, 1, 2], 9))
    for seed in range(5):
        one, two = (sampler.sample(ways=2, shots=2, queries=3, rng=rng(seed)) for _ in range(2))
        assert [rows.tolist() for rows in one] == [rows.tolist() for rows in two]
        assert split_examples(examples, rng=rng(seed)) == split_examples(examples, rng=rng(seed))
    assert split_examples(examples, rng=rng(1)) != split_examples(examples, rng=rng(2))
