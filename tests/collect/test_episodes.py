"""Drawing: the right numbers of the right labels, disjoint, and the same for the same generator."""

import re
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.collect import EpisodeDrawer, draw_episode, draw_one_plus, draw_support, split_examples
from manymetrics.errors import DataError, NotEnoughExamples
from manymetrics.values import Examples


def make(**counts: int) -> Examples:
    labels = [label for label, count in counts.items() for _ in range(count)]
    return Examples(tuple(f"text {row}" for row in range(len(labels))), tuple(labels))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def labels_of(examples: Examples, rows) -> Counter[str]:
    return Counter(examples.take(rows).labels)


def test_a_support_set_has_the_shots_asked_for_and_leaves_the_rest():
    examples = make(b=7, a=5)
    support = draw_support(examples, 5, rng=rng())
    assert labels_of(examples, support.rows) == {"a": 5, "b": 5}
    assert labels_of(examples, support.rest) == {"b": 2}
    assert sorted([*support.rows, *support.rest]) == list(range(12))


def test_a_label_with_too_few_examples_is_named():
    message = "Found 3 examples of 'negative', a 5-shot support set needs 5. Ask for shots=3, or add examples."
    with pytest.raises(NotEnoughExamples, match=re.escape(message)):
        draw_support(make(negative=3, positive=9), 5, rng=rng())
    with pytest.raises(NotEnoughExamples, match="Found 1 example of 'a'"):
        draw_support(make(a=1), 2, rng=rng())


def test_one_of_each_label_and_some_more():
    examples = make(a=1, b=1, c=30)
    support = draw_one_plus(examples, 20, rng=rng())
    assert labels_of(examples, support.rows) == {"a": 1, "b": 1, "c": 21}
    assert len(support.rest) == 9
    assert len(draw_one_plus(examples, 0, rng=rng()).rows) == 3


def test_too_many_further_examples_are_refused():
    message = "Found 4 examples beyond the first of each label, but 20 further ones were asked for. Ask for extra=4, or"
    with pytest.raises(NotEnoughExamples, match=re.escape(message)):
        draw_one_plus(make(a=3, b=3), 20, rng=rng())


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: draw_support(make(a=1), 0, rng=rng()), "Found shots=0, expected 1 or more. Ask for shots=1."),
        (lambda: draw_one_plus(make(a=1), -1, rng=rng()), "Found extra=-1, expected 0 or more. Ask for extra=0."),
        (lambda: split_examples(make(a=1), (0.5, 0.5, 0.5), rng=rng()), "expected three that add up to 1. Try (0.64"),
        (
            lambda: draw_episode(np.array([0, 0, 1, 1]), ways=1, shots=1, queries=1, rng=rng()),
            "Found ways=1, expected 2",
        ),
        (lambda: draw_episode(np.array([0, 0, 1, 1]), ways=2, shots=1, queries=0, rng=rng()), "Found queries=0, expe"),
    ],
)
def test_impossible_numbers_are_refused(draw, message):
    with pytest.raises(DataError, match=re.escape(message)):
        draw()


@pytest.mark.parametrize("draw", [draw_support, draw_one_plus])
def test_nothing_can_be_drawn_from_nothing(draw):
    with pytest.raises(NotEnoughExamples, match=r"Found no examples to draw from\. Give at least one example"):
        draw(Examples(), 1, rng=rng())


def test_a_split_keeps_the_shares_label_by_label():
    split = split_examples(make(a=100, b=50), rng=rng())
    assert Counter(split.train.labels) == {"a": 64, "b": 32}
    assert Counter(split.valid.labels) == {"a": 16, "b": 8}
    assert Counter(split.test.labels) == {"a": 20, "b": 10}


@pytest.mark.parametrize(("count", "parts"), [(1, (1, 0, 0)), (2, (2, 0, 0)), (3, (2, 0, 1)), (4, (2, 1, 1))])
def test_a_label_with_few_examples_fills_train_first(count, parts):
    split = split_examples(make(a=count), rng=rng())
    assert (len(split.train), len(split.valid), len(split.test)) == parts


@given(counts=st.lists(st.integers(1, 30), min_size=1, max_size=5), seed=st.integers(0, 99), whole=st.integers(0, 2))
def test_a_split_loses_nothing_and_train_knows_every_label(counts, seed, whole):
    examples = make(**{f"l{place}": count for place, count in enumerate(counts)})
    shares = tuple(float(part == whole) for part in range(3))
    for split in (split_examples(examples, rng=rng(seed)), split_examples(examples, shares, rng=rng(seed))):
        assert sorted(split.train.texts + split.valid.texts + split.test.texts) == sorted(examples.texts)
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
    episode = draw_episode(labels, ways=ways, shots=shots, queries=queries, rng=rng(seed))
    enough = {3 * place: count for place, count in enumerate(counts) if count > 1}
    assert len(episode.labels) == len(set(episode.labels)) == min(ways, len(enough))
    assert set(episode.labels) <= set(enough)
    support = [label for label in episode.labels for _ in range(min(shots, enough[label] - 1))]
    assert labels[episode.support_rows].tolist() == support
    left = sum(enough[label] for label in episode.labels) - len(support)
    assert len(episode.query_rows) == min(queries, left)
    assert set(labels[episode.query_rows]) <= set(episode.labels)
    assert len({*episode.support_rows, *episode.query_rows}) == len(support) + len(episode.query_rows)


def test_queries_are_spread_evenly_where_there_are_enough():
    labels = np.repeat([0, 1, 2], [1_000, 10, 3])
    episode = draw_episode(labels, ways=3, shots=2, queries=9, rng=rng())
    assert Counter(labels[episode.query_rows]) == {0: 4, 1: 4, 2: 1}


def test_every_row_and_every_label_gets_its_chance():
    labels = np.repeat([0, 1, 2], [4, 5, 6])
    drawer, source = EpisodeDrawer(labels), rng()
    episodes = [drawer.draw(ways=2, shots=1, queries=2, rng=source) for _ in range(3_000)]
    chosen = Counter(label for episode in episodes for label in episode.labels)
    assert all(abs(chosen[label] - 2_000) < 150 for label in range(3))
    shown = Counter(row for episode in episodes for row in episode.support_rows)
    assert all(abs(shown[row] - 2_000 / (labels == labels[row]).sum()) < 120 for row in range(15))


def test_labels_without_two_examples_make_no_episode():
    message = (
        "Found 1 label with two examples or more, an episode needs two such labels. Add examples, or leave the task"
    )
    with pytest.raises(NotEnoughExamples, match=message):
        EpisodeDrawer(np.array([0, 0, 1]))
    with pytest.raises(NotEnoughExamples, match="Found 0 labels with two"):
        EpisodeDrawer(np.array([], dtype=int))


def test_the_generator_alone_decides():
    examples, labels = make(a=9, b=9, c=9), np.repeat([0, 1, 2], 9)
    for seed in range(5):
        for draw in (draw_support, draw_one_plus):
            assert draw(examples, 3, rng=rng(seed)).rows.tolist() == draw(examples, 3, rng=rng(seed)).rows.tolist()
        one, two = (EpisodeDrawer(labels).draw(ways=2, shots=2, queries=3, rng=rng(seed)) for _ in range(2))
        assert one.support_rows.tolist() == two.support_rows.tolist()
        assert one.query_rows.tolist() == two.query_rows.tolist()
        assert split_examples(examples, rng=rng(seed)) == split_examples(examples, rng=rng(seed))
    assert split_examples(examples, rng=rng(1)) != split_examples(examples, rng=rng(2))


def test_drawing_many_episodes_is_quick():
    drawer, source = EpisodeDrawer(rng().integers(0, 20, size=3_000)), rng()
    began = time.process_time()
    for _ in range(1_000):
        drawer.draw(ways=5, shots=5, queries=25, rng=source)
    assert time.process_time() - began < 2
