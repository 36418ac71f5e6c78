import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manymetrics.errors import DataError, RecipeError
from manymetrics.partition import choose_clusters, cluster_tasks, complete_similarity
from manymetrics.values import ObservedPairs, Similarity


def named(n):
    return tuple(f"task{place:03}" for place in range(n))


def similar(low_rank, names=None):
    low_rank = np.array(low_rank, dtype=float)
    return Similarity(names or named(len(low_rank)), low_rank, np.zeros_like(low_rank), sparsity=1.0, steps=1, gap=0.0)


def truth_of(sizes):
    return np.repeat(np.arange(len(sizes)), sizes)


def blocks(*sizes):
    truth = truth_of(sizes)
    return (truth[:, None] == truth).astype(float)


def planted(sizes, *, seen, flipped=0.0, seed=0):
    rng = np.random.default_rng(seed)
    truth = blocks(*sizes).astype(bool)
    known, wrong = (np.triu(rng.random(truth.shape) < share, 1) for share in (seen, flipped))
    known |= known.T | np.eye(len(truth), dtype=bool)
    return ObservedPairs(named(len(truth)), alike=(truth ^ wrong ^ wrong.T) & known, known=known)


SEVEN = similar(
    [
        [1.0, 0.9, 0.8, 0.1, 0.0, 0.0, 0.1],
        [0.9, 1.0, 0.9, 0.0, 0.1, 0.0, 0.0],
        [0.8, 0.9, 1.0, 0.1, 0.0, 0.1, 0.0],
        [0.1, 0.0, 0.1, 1.0, 0.9, 0.0, 0.1],
        [0.0, 0.1, 0.0, 0.9, 1.0, 0.1, 0.0],
        [0.0, 0.0, 0.1, 0.0, 0.1, 1.0, 0.8],
        [0.1, 0.0, 0.0, 0.1, 0.0, 0.8, 1.0],
    ],
    tuple("abcdefg"),
)


def test_clusters_visible_to_the_eye_are_found():
    assert list(cluster_tasks(SEVEN, clusters=3)) == [("a", "b", "c"), ("d", "e"), ("f", "g")]
    assert list(cluster_tasks(SEVEN)) == [("a", "b", "c"), ("d", "e"), ("f", "g")]


def test_clusters_are_numbered_by_the_first_name_in_them():
    assert cluster_tasks(similar(blocks(2, 2, 2), tuple("febdca")), clusters=3).labels.tolist() == [2, 2, 1, 1, 0, 0]


@pytest.mark.parametrize("clusters", [5, None])
def test_planted_clusters_of_three_hundred_tasks_are_recovered_and_soon(clusters):
    start = time.process_time()
    similarity = complete_similarity(planted([60] * 5, seen=0.4, flipped=0.05), clusters=clusters)
    found = cluster_tasks(similarity, clusters=clusters)
    assert time.process_time() - start < 30  # seconds of one core; about 1.5
    assert found.labels.tolist() == truth_of([60] * 5).tolist()


@pytest.mark.parametrize("sizes", [[60, 25, 15], [40, 20, 10], [30, 8]])
@pytest.mark.parametrize("chosen", [True, False])
def test_clusters_of_unequal_sizes_are_recovered(sizes, chosen):
    similarity = complete_similarity(planted(sizes, seen=0.7, flipped=0.02), clusters=None if chosen else len(sizes))
    found = cluster_tasks(similarity, clusters=None if chosen else len(sizes))
    assert found.labels.tolist() == truth_of(sizes).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_noise_as_large_as_a_third_of_the_likeness_is_borne(seed):
    noise = 0.3 * np.random.default_rng(seed).standard_normal((60, 60))
    similarity = similar(0.8 * blocks(20, 20, 12, 8) + (noise + noise.T) / 2)
    assert cluster_tasks(similarity, clusters=4).labels.tolist() == truth_of([20, 20, 12, 8]).tolist()


@st.composite
def similarities(draw):
    n = draw(st.integers(1, 9))
    half = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).uniform(-0.5, 1.5, (n, n))
    half = half.round(draw(st.sampled_from([0, 1, 12]))) * draw(st.sampled_from([0.0, 1e-9, 1.0]))
    return similar((half + half.T) / 2)


@settings(deadline=None, max_examples=200)
@given(similarities(), st.data())
@pytest.mark.filterwarnings("ignore:cluster_tasks was asked")
def test_the_order_of_the_tasks_only_orders_the_clusters(similarity, data):
    n = len(similarity.names)
    clusters = data.draw(st.one_of(st.none(), st.integers(1, n)))
    order = data.draw(st.permutations(range(n)))
    shuffled = similar(similarity.low_rank[np.ix_(order, order)], tuple(similarity.names[place] for place in order))
    straight, after = cluster_tasks(similarity, clusters=clusters), cluster_tasks(shuffled, clusters=clusters)
    assert after.labels.tolist() == straight.labels[list(order)].tolist()
    assert len(straight) == clusters or clusters is None


@settings(deadline=None)
@given(similarities(), st.one_of(st.none(), st.integers(1, 5)))
@pytest.mark.filterwarnings("ignore:cluster_tasks was asked")
def test_choosing_the_number_is_the_same_as_giving_the_chosen_one(similarity, most):
    chosen = cluster_tasks(similarity, most=most)
    given_it = cluster_tasks(similarity, clusters=choose_clusters(similarity, most=most))
    assert chosen.labels.tolist() == given_it.labels.tolist()
    assert most is None or len(chosen) <= most


def test_strangers_share_one_cluster_when_the_number_is_chosen():
    assert list(cluster_tasks(similar(blocks(3, 3, 1, 1), tuple("abcdefgh")))) == [
        tuple("abc"),
        tuple("def"),
        ("g", "h"),
    ]
    assert list(cluster_tasks(similar(blocks(3, 3, 1), tuple("abcdefg")))) == [tuple("abc"), tuple("def"), ("g",)]


def test_strangers_get_a_cluster_each_where_there_is_room():
    found = cluster_tasks(similar(blocks(3, 3, 1, 1), tuple("abcdefgh")), clusters=4)
    assert list(found) == [tuple("abc"), tuple("def"), ("g",), ("h",)]


def test_strangers_join_the_cluster_they_are_least_unlike_where_there_is_none():
    low_rank = blocks(4, 3, 1, 1)
    low_rank[7, 4:7] = low_rank[4:7, 7] = 0.05
    found = cluster_tasks(similar(low_rank, tuple("abcdefghi")), clusters=2)
    assert list(found) == [("a", "b", "c", "d", "i"), ("e", "f", "g", "h")]


def test_one_cluster_holds_all_tasks():
    assert list(cluster_tasks(SEVEN, clusters=1)) == [tuple("abcdefg")]
    assert list(cluster_tasks(similar(np.zeros((3, 3))), clusters=1)) == [named(3)]


def test_as_many_clusters_as_tasks_gives_each_its_own():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cluster_tasks(SEVEN, clusters=7).labels.tolist() == list(range(7))
        assert cluster_tasks(similar(np.zeros((3, 3))), clusters=3).labels.tolist() == [0, 1, 2]


@pytest.mark.parametrize("low_rank", [np.ones((6, 6)), np.zeros((6, 6)), np.eye(6)])
def test_more_clusters_than_can_be_told_apart_are_halved_by_name_with_a_warning(low_rank):
    text = r"asked for 3 clusters, but the similarity tells only 1 apart.*Ask for fewer clusters"
    with pytest.warns(UserWarning, match=text):
        found = cluster_tasks(similar(low_rank), clusters=3)
    assert found.labels.tolist() == [0, 0, 1, 2, 2, 2]


def test_tasks_with_identical_rows_stay_together():
    assert list(cluster_tasks(similar(blocks(2, 2, 3), tuple("abcdefg")))) == [("a", "b"), ("c", "d"), tuple("efg")]


@pytest.mark.parametrize(("low_rank", "chosen"), [([[1.0]], 1), ([[0.0]], 1), (np.ones((2, 2)), 1), (np.eye(2), 1)])
def test_one_or_two_tasks_have_an_answer(low_rank, chosen):
    assert len(cluster_tasks(similar(low_rank))) == chosen


@pytest.mark.filterwarnings("ignore:cluster_tasks was asked")
@pytest.mark.parametrize("low_rank", [np.ones((2, 2)), np.eye(2), -np.ones((2, 2))])
def test_two_tasks_can_be_parted(low_rank):
    assert cluster_tasks(similar(low_rank), clusters=2).labels.tolist() == [0, 1]


def test_the_number_of_clusters_must_suit_the_tasks():
    with pytest.raises(DataError, match=r"cannot part 7 tasks into 8 clusters. Ask for at most 7 clusters"):
        cluster_tasks(SEVEN, clusters=8)
    with pytest.raises(RecipeError, match=r"clusters=0. Use 1 or more, or None"):
        cluster_tasks(SEVEN, clusters=0)
    with pytest.raises(DataError, match=r"names no tasks"):
        cluster_tasks(similar(np.zeros((0, 0)), ()))
