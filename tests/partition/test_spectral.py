import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planting import blocks, named, planted, similar, truth_of

from manymetrics.errors import DataError, RecipeError
from manymetrics.partition import choose_clusters, cluster_tasks, complete_similarity

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


def test_three_small_clusters_are_found():
    assert list(cluster_tasks(SEVEN, clusters=3)) == [("a", "b", "c"), ("d", "e"), ("f", "g")]
    assert list(cluster_tasks(SEVEN)) == [("a", "b", "c"), ("d", "e"), ("f", "g")]


def test_clusters_are_numbered_by_the_first_name_in_them():
    assert cluster_tasks(similar(blocks(2, 2, 2), tuple("febdca")), clusters=3).labels.tolist() == [2, 2, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("sizes", "seen", "wrong"), [([60] * 5, 0.4, 0.05), ([60, 25, 15], 0.7, 0.02), ([30, 8], 0.7, 0.02)]
)
@pytest.mark.parametrize("chosen", [True, False])
def test_planted_clusters_are_recovered(sizes, seen, wrong, chosen):
    clusters = None if chosen else len(sizes)
    similarity = complete_similarity(planted(sizes, seen=seen, wrong=(wrong, wrong)), clusters=clusters)
    assert cluster_tasks(similarity, clusters=clusters).labels.tolist() == truth_of(sizes).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_recovered_under_noise_of_a_third_of_the_similarity(seed):
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


def test_outliers_share_one_cluster_when_the_number_is_chosen():
    assert list(cluster_tasks(similar(blocks(3, 3, 1, 1), tuple("abcdefgh")))) == [
        tuple("abc"),
        tuple("def"),
        ("g", "h"),
    ]
    assert list(cluster_tasks(similar(blocks(3, 3, 1), tuple("abcdefg")))) == [tuple("abc"), tuple("def"), ("g",)]


def test_outliers_get_a_cluster_each_where_there_are_enough():
    found = cluster_tasks(similar(blocks(3, 3, 1, 1), tuple("abcdefgh")), clusters=4)
    assert list(found) == [tuple("abc"), tuple("def"), ("g",), ("h",)]


def test_outliers_join_the_most_similar_cluster_where_there_are_none_for_them():
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
def test_clusters_that_cannot_be_distinguished_are_made_by_halving_with_a_warning(low_rank):
    text = r"asked for 3 clusters, but the similarity distinguishes only 1;.*Ask for fewer clusters"
    with pytest.warns(UserWarning, match=text):
        found = cluster_tasks(similar(low_rank), clusters=3)
    assert found.labels.tolist() == [0, 0, 1, 2, 2, 2]


def test_tasks_with_identical_rows_stay_together():
    assert list(cluster_tasks(similar(blocks(2, 2, 3), tuple("abcdefg")))) == [("a", "b"), ("c", "d"), tuple("efg")]


def test_one_or_two_tasks_are_one_cluster_unless_two_are_asked_for():
    for low_rank in ([[1.0]], [[0.0]], np.ones((2, 2)), np.eye(2), -np.ones((2, 2))):
        assert len(cluster_tasks(similar(low_rank))) == 1
    for low_rank in (np.ones((2, 2)), np.eye(2), -np.ones((2, 2))):
        assert cluster_tasks(similar(low_rank), clusters=2).labels.tolist() == [0, 1]


def test_an_impossible_number_of_clusters_is_an_error():
    with pytest.raises(DataError, match=r"cannot divide 7 tasks into 8 clusters. Ask for at most 7"):
        cluster_tasks(SEVEN, clusters=8)
    with pytest.raises(RecipeError, match=r"clusters=0. Use 1 or more, or None"):
        cluster_tasks(SEVEN, clusters=0)
    with pytest.raises(DataError, match=r"names no tasks"):
        cluster_tasks(similar(np.zeros((0, 0)), ()))
