import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manymetrics.errors import DataError, RecipeError
from manymetrics.partition import choose_clusters, choose_sparsity, complete_similarity, default_sparsity
from manymetrics.values import ObservedPairs, Similarity


def named(n):
    return tuple(f"task{place:03}" for place in range(n))


def similar(low_rank, names=None):
    low_rank = np.array(low_rank, dtype=float)
    return Similarity(names or named(len(low_rank)), low_rank, np.zeros_like(low_rank), sparsity=1.0, steps=1, gap=0.0)


def blocks(*sizes):
    truth = np.repeat(np.arange(len(sizes)), sizes)
    return (truth[:, None] == truth).astype(float)


def planted(sizes, *, seen, flipped=0.0, seed=0):
    rng = np.random.default_rng(seed)
    truth = blocks(*sizes).astype(bool)
    known, wrong = (np.triu(rng.random(truth.shape) < share, 1) for share in (seen, flipped))
    known |= known.T | np.eye(len(truth), dtype=bool)
    return ObservedPairs(named(len(truth)), alike=(truth ^ wrong ^ wrong.T) & known, known=known)


@pytest.mark.parametrize("sizes", [[4], [3, 3], [5, 2], [40, 20, 10, 5], [3] * 10, [2] * 6])
def test_clean_blocks_are_counted(sizes):
    assert choose_clusters(similar(blocks(*sizes))) == len(sizes)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sizes", [[20] * 5, [12, 12, 12], [40, 25, 15]])
def test_noisy_blocks_are_counted(sizes, seed):
    rng = np.random.default_rng(seed)
    noise = 0.25 * rng.standard_normal((sum(sizes), sum(sizes)))
    assert choose_clusters(similar(0.7 * blocks(*sizes) + (noise + noise.T) / 2)) == len(sizes)


@pytest.mark.parametrize(("sizes", "seen", "flipped"), [([20] * 5, 0.4, 0.05), ([6] * 3, 0.8, 0.05), ([50], 0.4, 0.1)])
def test_planted_clusters_are_counted_after_completion(sizes, seen, flipped):
    assert choose_clusters(complete_similarity(planted(sizes, seen=seen, flipped=flipped))) == len(sizes)


@pytest.mark.parametrize("strangers", [1, 2, 8])
@pytest.mark.parametrize("self_likeness", [0.0, 1.0])
def test_strangers_add_one_to_the_count_however_many(strangers, self_likeness):
    low_rank = blocks(10, 10, *[1] * strangers)
    low_rank[range(20, 20 + strangers), range(20, 20 + strangers)] = self_likeness
    assert choose_clusters(similar(low_rank)) == 3


def test_a_weakly_attached_task_does_not_count_as_a_cluster():
    low_rank = blocks(10, 10, *[1] * 4)
    low_rank[20:22, :10] = low_rank[:10, 20:22] = 0.15
    low_rank[22:24, 10:20] = low_rank[10:20, 22:24] = 0.15
    assert choose_clusters(similar(low_rank)) == 2


@pytest.mark.parametrize("low_rank", [np.ones((6, 6)), np.zeros((6, 6)), np.eye(6), -np.ones((6, 6)), [[1.0]], [[0.0]]])
def test_tasks_that_nothing_tells_apart_are_one_cluster(low_rank):
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


def test_hidden_pairs_rule_out_a_sparsity_that_loses_the_clusters():
    pairs = planted([12] * 4, seen=0.6, flipped=0.05)
    good = default_sparsity(pairs)
    assert choose_sparsity(pairs, candidates=[0.03, good], rng=np.random.default_rng(0)) == good


def test_hidden_pairs_rule_out_a_sparsity_that_keeps_every_error():
    pairs = planted([25, 25], seen=0.5, flipped=0.2)
    assert choose_sparsity(pairs, candidates=[default_sparsity(pairs, 2), 5.0], rng=np.random.default_rng(0)) < 5


def test_equal_scores_go_to_the_larger_sparsity():
    pairs = planted([8, 8], seen=1.0)
    assert choose_sparsity(pairs, candidates=[0.5, 0.3, 0.4], rng=np.random.default_rng(0)) == 0.5


def test_the_default_candidates_lie_around_the_default():
    pairs = planted([10, 10], seen=0.6, flipped=0.05)
    chosen = choose_sparsity(pairs, rng=np.random.default_rng(0))
    assert 0.5 <= chosen / default_sparsity(pairs) <= 2
    assert chosen == choose_sparsity(pairs, rng=np.random.default_rng(0))


def test_the_choice_of_sparsity_does_not_depend_on_the_order_of_the_tasks():
    pairs = planted([8, 6, 5], seen=0.5, flipped=0.1)
    order = np.random.default_rng(1).permutation(19)
    square = np.ix_(order, order)
    shuffled = ObservedPairs(tuple(pairs.names[place] for place in order), pairs.alike[square], pairs.known[square])
    assert choose_sparsity(pairs, rng=np.random.default_rng(2)) == choose_sparsity(
        shuffled, rng=np.random.default_rng(2)
    )


def test_pairs_of_one_kind_only_are_enough_to_choose():
    alone = np.eye(5, dtype=bool)
    apart = ObservedPairs(named(5), alike=alone, known=np.ones((5, 5), bool))
    assert choose_sparsity(apart, candidates=[0.2, 2.0], rng=np.random.default_rng(0)) == 2.0


def test_without_known_pairs_nothing_can_be_hidden():
    alone = np.eye(4, dtype=bool)
    with pytest.raises(DataError, match=r"knows no pair of different tasks.*Measure more pairs, or lower p1 and p2"):
        choose_sparsity(ObservedPairs(named(4), alike=alone, known=alone), rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("knobs", "text"),
    [
        ({"candidates": []}, r"candidates \[\]. Give one or more numbers above 0"),
        ({"candidates": [0.1, -1.0]}, "Give one or more numbers above 0"),
        ({"hidden": 1.0}, "hidden=1.0 and rounds=3. Use 0.15 and 3"),
        ({"rounds": 0}, "hidden=0.15 and rounds=0. Use 0.15 and 3"),
    ],
)
def test_a_knob_out_of_range_says_its_range(knobs, text):
    with pytest.raises(RecipeError, match=text):
        choose_sparsity(planted([3, 3], seen=1.0), rng=np.random.default_rng(0), **knobs)
