import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planting import blocks, planted, similarity_of, truth_of

from manymetrics.errors import DataError, RecipeError
from manymetrics.partition import choose_clusters, cluster_tasks, complete_similarity

NOISE = np.random.default_rng(0).uniform(0, 0.1, (7, 7))
SEVEN = similarity_of(0.85 * blocks(3, 2, 2) + (NOISE + NOISE.T) / 2, tuple("abcdefg"))


def test_three_small_clusters_are_found():
    assert list(cluster_tasks(SEVEN, n_clusters=3)) == [("a", "b", "c"), ("d", "e"), ("f", "g")]
    assert list(cluster_tasks(SEVEN)) == [("a", "b", "c"), ("d", "e"), ("f", "g")]


def test_clusters_are_numbered_by_their_first_task():
    order = [4, 0, 2, 1, 5, 3]
    similarity = similarity_of(blocks(2, 2, 2)[np.ix_(order, order)], tuple("febdca"))
    assert cluster_tasks(similarity, n_clusters=3).labels.tolist() == [0, 1, 2, 1, 0, 2]


@pytest.mark.parametrize(
    ("sizes", "seen", "wrong"), [([60] * 5, 0.4, 0.05), ([60, 25, 15], 0.7, 0.02), ([30, 8], 0.7, 0.02)]
)
@pytest.mark.parametrize("chosen", [True, False])
def test_planted_clusters_are_recovered(sizes, seen, wrong, chosen):
    clusters = None if chosen else len(sizes)
    similarity = complete_similarity(planted(sizes, seen=seen, wrong=(wrong, wrong)), n_clusters=clusters)
    assert cluster_tasks(similarity, n_clusters=clusters).labels.tolist() == truth_of(sizes).tolist()


def test_of_nested_clusters_the_finer_ones_are_chosen():
    """Two groups of three clusters each: both divisions show as gaps in the spectrum."""
    similarity = similarity_of(0.25 * blocks(30, 30) + 0.75 * blocks(10, 10, 10, 10, 10, 10))
    assert cluster_tasks(similarity).labels.tolist() == truth_of([10] * 6).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_similarity_without_structure_is_one_cluster(seed):
    noise = np.random.default_rng(seed).uniform(0, 1, (40, 40))
    assert choose_clusters(similarity_of((noise + noise.T) / 2)) == 1


@st.composite
def similarities(draw):
    n = draw(st.integers(1, 9))
    half = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).uniform(-0.5, 1.5, (n, n))
    half = half.round(draw(st.sampled_from([0, 1, 12]))) * draw(st.sampled_from([0.0, 1e-9, 1.0]))
    return similarity_of((half + half.T) / 2)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_tasks_only_orders_the_clusters(seed):
    rng = np.random.default_rng(seed)
    noise, order = 0.3 * rng.standard_normal((40, 40)), rng.permutation(40)
    low_rank = 0.8 * blocks(15, 15, 10) + (noise + noise.T) / 2
    clusters = cluster_tasks(similarity_of(low_rank))
    shuffled = similarity_of(low_rank[np.ix_(order, order)], tuple(clusters.names[task] for task in order))
    assert sorted(map(sorted, cluster_tasks(shuffled))) == sorted(map(sorted, clusters))


@settings(deadline=None)
@given(similarities(), st.one_of(st.none(), st.integers(1, 5)))
@pytest.mark.filterwarnings("ignore:cluster_tasks was asked")
def test_choosing_the_number_is_the_same_as_giving_the_chosen_one(similarity, limit):
    chosen = cluster_tasks(similarity, max_clusters=limit)
    given_it = cluster_tasks(similarity, n_clusters=choose_clusters(similarity, max_clusters=limit))
    assert chosen.labels.tolist() == given_it.labels.tolist()
    assert limit is None or len(chosen) <= limit
    for number in range(1, len(similarity.names) + 1):
        assert len(cluster_tasks(similarity, n_clusters=number)) == number


@pytest.mark.parametrize("low_rank", [np.ones((6, 6)), np.zeros((6, 6)), np.eye(6)])
def test_clusters_that_cannot_be_distinguished_are_made_by_halving_with_a_warning(low_rank):
    text = r"asked for 3 clusters, but the similarity distinguishes only 1;.*Ask for fewer clusters"
    with pytest.warns(UserWarning, match=text):
        found = cluster_tasks(similarity_of(low_rank), n_clusters=3)
    assert found.labels.tolist() == [0, 0, 1, 2, 2, 2]


def test_a_weakly_attached_task_does_not_count_as_a_cluster():
    low_rank = blocks(10, 10, *[1] * 4)
    low_rank[20:22, :10] = low_rank[:10, 20:22] = 0.15
    low_rank[22:24, 10:20] = low_rank[10:20, 22:24] = 0.15
    assert choose_clusters(similarity_of(low_rank)) == 2


@pytest.mark.parametrize(
    ("sizes", "number", "groups"),
    [
        ((3, 3, 1, 1), None, ["abc", "def", "gh"]),
        ((3, 3, 1), None, ["abc", "def", "g"]),
        ((3, 3, 1, 1), 4, ["abc", "def", "g", "h"]),
        ((4, 3, 1, 1), 2, ["abcdi", "efgh"]),
    ],
)
def test_outliers_share_a_cluster_or_get_one_each_or_join_the_most_similar(sizes, number, groups):
    low_rank = blocks(*sizes)
    if sizes[0] == 4:
        low_rank[7, 4:7] = low_rank[4:7, 7] = 0.05
    similarity = similarity_of(low_rank, tuple("abcdefghi"[: sum(sizes)]))
    assert list(cluster_tasks(similarity, n_clusters=number)) == [tuple(group) for group in groups]
    if number is None:
        np.fill_diagonal(low_rank[6:, 6:], 0.0)
        assert choose_clusters(similarity_of(low_rank)) == len(groups), "however similar they are to themselves"


@pytest.mark.parametrize("low_rank", [[[1.0]], [[0.0]], np.ones((2, 2)), np.eye(2), -np.ones((2, 2))])
def test_one_or_two_tasks_are_one_cluster_unless_two_are_asked_for(low_rank):
    assert len(cluster_tasks(similarity_of(low_rank))) == 1
    n = len(low_rank)
    assert cluster_tasks(similarity_of(low_rank), n_clusters=n).labels.tolist() == list(range(n))


def test_an_impossible_number_of_clusters_is_an_error():
    empty = similarity_of(np.zeros((0, 0)), ())
    for ask, error, text in (
        (lambda: cluster_tasks(SEVEN, n_clusters=8), DataError, r"cannot divide 7 tasks into 8 clusters\."),
        (lambda: cluster_tasks(SEVEN, n_clusters=0), RecipeError, r"n_clusters=0\. Use 1 or more, or None"),
        (lambda: choose_clusters(SEVEN, max_clusters=0), RecipeError, r"max_clusters=0\. Use 1 or more, or None"),
        (lambda: cluster_tasks(empty), DataError, r"names no tasks.*Give at least one task"),
    ):
        with pytest.raises(error, match=text):
            ask()
