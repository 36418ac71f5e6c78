import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manymetrics.errors import RecipeError, TaskSkipped
from manymetrics.partition import choose_p1, filter_pairs, leave_out_unmeasured
from manymetrics.partition.pairs import P1_TRIED
from manymetrics.values import TransferMatrix

nan = np.nan


@st.composite
def transfers(draw):
    n = draw(st.integers(1, 9))
    score = st.one_of(st.just(nan), st.integers(0, 10).map(lambda tenths: tenths / 10))
    rows = draw(st.lists(st.lists(score, min_size=n, max_size=n), min_size=n, max_size=n))
    return TransferMatrix(tuple(f"task{task}" for task in range(n)), np.array(rows))


@given(transfers(), st.data())
def test_the_order_of_the_tasks_only_orders_the_pairs(transfer, data):
    order = data.draw(st.permutations(range(len(transfer.names))))
    shuffled = TransferMatrix(tuple(transfer.names[task] for task in order), transfer.scores[np.ix_(order, order)])
    straight, after = filter_pairs(transfer), filter_pairs(shuffled)
    assert (after.similar == straight.similar[np.ix_(order, order)]).all()
    assert (after.observed == straight.observed[np.ix_(order, order)]).all()


@given(transfers())
def test_what_was_not_measured_both_ways_makes_no_pair(transfer):
    pairs = filter_pairs(transfer)
    missing = np.isnan(transfer.scores) | np.isnan(transfer.scores.T)
    np.fill_diagonal(missing, False)
    assert not (pairs.observed & missing).any()


def test_directions_that_disagree_leave_the_pair_unobserved():
    scores = np.array([[nan, 0.9, 0.9, 0.2], [0.9, nan, 0.2, 0.9], [0.2, 0.9, nan, 0.2], [0.2, 0.2, 0.2, nan]])
    pairs = filter_pairs(TransferMatrix(tuple("abcd"), scores))
    assert pairs.similar.astype(int).tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert pairs.observed.astype(int).tolist() == [[1, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 1]]


def test_thresholds_are_mean_and_deviation_of_the_other_tasks():
    column = np.array([0.2, 0.4, 0.6, 0.8])  # mean 0.5, population standard deviation 0.2236
    scores = np.full((5, 5), nan)
    scores[1:, 0] = column
    scores[0, 1:] = [0.0, 0.0, 1.0, 1.0]
    scores[1:, 1:] = np.array([[nan, 1, 0, 0], [1, nan, 0, 0], [1, 1, nan, 0], [1, 1, 0, nan]])
    names = tuple("abcde")
    near = filter_pairs(TransferMatrix(names, scores), p1=0.44, p2=0.44)
    far = filter_pairs(TransferMatrix(names, scores), p1=0.45, p2=0.45)
    assert near.observed[0].tolist() == [True, True, True, True, True]
    assert far.observed[0].tolist() == [True, True, False, False, True]
    assert near.similar[0].tolist() == [True, False, False, True, True]


def test_the_score_of_a_task_on_itself_counts_for_nothing():
    rng = np.random.default_rng(0)
    scores = rng.random((6, 6))
    high, low = scores.copy(), scores.copy()
    np.fill_diagonal(high, 100.0)
    np.fill_diagonal(low, nan)
    one, other = (filter_pairs(TransferMatrix(tuple("abcdef"), each)) for each in (high, low))
    assert (one.observed == other.observed).all()
    assert (one.similar == other.similar).all()


@pytest.mark.parametrize(("n", "score"), [(0, 0.0), (2, np.arange(4).reshape(2, 2)), (7, 0.0), (7, 0.7), (7, 1e9)])
def test_equal_scores_and_too_few_to_compare_make_no_pairs(n, score):
    pairs = filter_pairs(TransferMatrix(tuple("abcdefg"[:n]), np.full((n, n), score)), p1=0, p2=0)
    assert (pairs.observed == np.eye(n, dtype=bool)).all()


@pytest.mark.parametrize(("name", "value"), [("p1", -0.1), ("p1", nan), ("p2", np.inf)])
def test_a_threshold_out_of_range_is_an_error_that_names_the_range(name, value):
    with pytest.raises(RecipeError, match=rf"was given {name}=.*Use a number from 0 up; the paper's is 0.5"):
        filter_pairs(TransferMatrix(("a",), np.ones((1, 1))), **{name: value})


def in_a_ring(by_distance):
    """Scores of twelve tasks by their distance in a ring."""
    around = np.arange(12)
    distance = np.minimum((around[:, None] - around) % 12, (around - around[:, None]) % 12)
    return TransferMatrix(tuple(f"task{task:02}" for task in around), np.array(by_distance)[distance])


def test_where_less_than_half_was_measured_pairs_are_sooner_dissimilar():
    sampled = filter_pairs(in_a_ring([nan, 0.9, 0.4, nan, nan, nan, 0.55]))
    assert np.flatnonzero(sampled.observed[0]).tolist() == [0, 1, 2, 6, 10, 11]
    assert np.flatnonzero(sampled.similar[0]).tolist() == [0, 1, 11]
    complete = filter_pairs(in_a_ring([nan, 0.9, 0.4, 0.9, 0.4, 0.55, 0.55]))
    assert not complete.observed[0, [5, 6, 7]].any(), "a third of a deviation below the mean"


def directed(families, *, signal, noise, tasks=60, seed=0):
    """Scores that are higher within families, with noise of their own in each direction."""
    rng = np.random.default_rng(seed)
    labels = np.arange(tasks) % families
    scores = signal * np.equal.outer(labels, labels) + noise * rng.standard_normal((tasks, tasks))
    np.fill_diagonal(scores, np.nan)
    return TransferMatrix(tuple(f"t{task:02d}" for task in range(tasks)), scores), labels


def test_where_few_pairs_are_similar_p1_is_higher_and_the_filtered_pairs_are_truer():
    assert choose_p1(directed(3, signal=1.0, noise=0.1)[0]) == 0.5, "many pairs are similar and scores clear"
    transfer, labels = directed(15, signal=1.0, noise=0.5)
    p1 = choose_p1(transfer)
    assert p1 > 0.5
    together = np.equal.outer(labels, labels)[~np.eye(len(labels), dtype=bool)]

    def right(p1):
        similar = filter_pairs(transfer, p1=p1).similar[~np.eye(len(labels), dtype=bool)]
        return together[similar].mean()

    assert right(p1) > 0.8 > right(0.5) + 0.2


def test_noise_alone_takes_the_highest_p1_and_so_does_nothing_measured():
    noise, _ = directed(15, signal=0.0, noise=1.0)
    assert choose_p1(noise) == P1_TRIED[-1]
    assert choose_p1(TransferMatrix(noise.names, np.full((60, 60), np.nan))) == P1_TRIED[-1]


def test_two_kinds_of_evidence_tell_how_high_a_pair_must_be_where_the_directions_of_one_err_together():
    """Both directions of a pair share an error here, so they agree by chance; another kind of evidence does not."""
    _, labels = directed(15, signal=1.0, noise=0.0)
    together, rng = np.equal.outer(labels, labels), np.random.default_rng(0)
    names = tuple(f"t{task:02}" for task in range(len(labels)))

    def kind():
        error = rng.standard_normal(together.shape)
        return TransferMatrix(names, together + 0.4 * (error + error.T))

    one, other = kind(), kind()
    assert choose_p1(one) == 0.5
    assert choose_p1(one, other) > 1.0
    assert choose_p1(one, TransferMatrix(names, together.astype(float))) == choose_p1(
        TransferMatrix(names, together.astype(float)), one
    )


def test_a_task_to_which_no_transfer_was_measured_is_left_out_and_named():
    scores = np.array([[nan, 0.9, nan, 0.1], [0.8, nan, nan, 0.2], [0.3, 0.4, nan, 0.5], [0.1, 0.2, nan, nan]])
    transfer = TransferMatrix(("a", "b", "two", "c"), scores, "log-likelihood")
    pairs = filter_pairs(transfer)
    with pytest.warns(TaskSkipped, match=r"Left out of clustering, .* cannot be measured: 'two'\. Add examples"):
        kept, observed = leave_out_unmeasured(transfer, pairs)
    assert kept.names == observed.names == ("a", "b", "c")
    assert (kept.score, kept.scores[0, 1], kept.scores[2].tolist()[:2]) == ("log-likelihood", 0.9, [0.1, 0.2])
    assert (observed.similar == pairs.similar[np.ix_([0, 1, 3], [0, 1, 3])]).all()
    assert leave_out_unmeasured(transfer, pairs, fewest=4) == (transfer, pairs)
