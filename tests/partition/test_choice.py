import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planting import blocks, named, planted, similar

from manymetrics.errors import DataError, RecipeError
from manymetrics.partition import choose_clusters, complete_similarity


@pytest.mark.parametrize("sizes", [[4], [5, 2], [40, 20, 10, 5], [2] * 6])
def test_clean_blocks_are_counted(sizes):
    assert choose_clusters(similar(blocks(*sizes))) == len(sizes)


@pytest.mark.parametrize(("sizes", "seed"), [([20] * 5, 0), ([12, 12, 12], 1), ([40, 25, 15], 2)])
def test_noisy_blocks_are_counted(sizes, seed):
    noise = 0.25 * np.random.default_rng(seed).standard_normal((sum(sizes), sum(sizes)))
    assert choose_clusters(similar(0.7 * blocks(*sizes) + (noise + noise.T) / 2)) == len(sizes)


@pytest.mark.parametrize(("sizes", "seen", "wrong"), [([20] * 5, 0.4, 0.05), ([6] * 3, 0.8, 0.05), ([50], 0.4, 0.1)])
def test_planted_clusters_are_counted_after_completion(sizes, seen, wrong):
    assert choose_clusters(complete_similarity(planted(sizes, seen=seen, wrong=(wrong, wrong)))) == len(sizes)


@pytest.mark.parametrize(("outliers", "self_similarity"), [(1, 1.0), (8, 0.0)])
def test_outliers_add_one_to_the_count_however_many(outliers, self_similarity):
    low_rank = blocks(10, 10, *[1] * outliers)
    low_rank[range(20, 20 + outliers), range(20, 20 + outliers)] = self_similarity
    assert choose_clusters(similar(low_rank)) == 3


def test_a_weakly_attached_task_does_not_count_as_a_cluster():
    low_rank = blocks(10, 10, *[1] * 4)
    low_rank[20:22, :10] = low_rank[:10, 20:22] = 0.15
    low_rank[22:24, 10:20] = low_rank[10:20, 22:24] = 0.15
    assert choose_clusters(similar(low_rank)) == 2


def test_tasks_that_cannot_be_distinguished_are_one_cluster():
    for low_rank in (np.ones((6, 6)), np.zeros((6, 6)), np.eye(6), -np.ones((6, 6)), [[1.0]], [[0.0]]):
        assert choose_clusters(similar(low_rank)) == 1


def test_most_limits_the_count():
    assert choose_clusters(similar(blocks(3, 3, 3, 3)), most=2) <= 2
    assert choose_clusters(similar(blocks(3, 3, 1)), most=2) == 2
    assert choose_clusters(similar(blocks(3, 3, 3, 3)), most=30) == 4


@settings(deadline=None)
@given(st.integers(1, 8), st.integers(0, 2**32 - 1), st.data())
def test_the_count_does_not_depend_on_the_order_of_the_tasks(n, seed, data):
    half = np.random.default_rng(seed).uniform(-0.5, 1.5, (n, n)).round(1)
    order = data.draw(st.permutations(range(n)))
    low_rank = (half + half.T) / 2
    shuffled = similar(low_rank[np.ix_(order, order)], tuple(named(n)[place] for place in order))
    assert 1 <= choose_clusters(similar(low_rank)) == choose_clusters(shuffled) <= n


def test_counting_needs_tasks_and_a_limit_above_zero():
    with pytest.raises(DataError, match=r"names no tasks.*Give at least one task"):
        choose_clusters(similar(np.zeros((0, 0)), ()))
    with pytest.raises(RecipeError, match=r"most=0. Use 1 or more, or None"):
        choose_clusters(similar(np.eye(2)), most=0)
