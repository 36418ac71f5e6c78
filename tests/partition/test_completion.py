import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manymetrics.errors import DataError, DidNotConverge, RecipeError
from manymetrics.partition import complete_similarity, default_sparsity
from manymetrics.values import ObservedPairs


def named(n):
    return tuple(f"task{place:03}" for place in range(n))


def planted(sizes, *, seen, flipped=0.0, seed=0):
    """Pairs of tasks in clusters of the given sizes: a share `seen` is known, a share `flipped` of it wrongly."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    n = len(truth)
    known = np.triu(rng.random((n, n)) < seen, 1)
    wrong = np.triu(rng.random((n, n)) < flipped, 1)
    known, wrong = known | known.T | np.eye(n, dtype=bool), wrong | wrong.T
    alike = (truth[:, None] == truth) ^ wrong
    return truth, ObservedPairs(named(n), alike=alike & known, known=known)


def objective(pairs, low_rank, sparsity):
    """The objective of eqn:pro at X, with the E that the constraint leaves: P_Omega(Y - X)."""
    off = np.abs(pairs.alike - low_rank)[pairs.known].sum()
    return np.abs(np.linalg.eigvalsh(low_rank)).sum() + sparsity * off


def optimum(pairs, sparsity):
    """The optimal objective of eqn:pro by cvxpy; a symmetric X is P - N, its nuclear norm the trace of P + N."""
    cvxpy = pytest.importorskip("cvxpy", reason="cvxpy is not installed: nothing to compare the optimum with")
    n = len(pairs.names)
    plus, minus = cvxpy.Variable((n, n), PSD=True), cvxpy.Variable((n, n), PSD=True)
    off = cvxpy.multiply(pairs.known.astype(float), pairs.alike.astype(float) - (plus - minus))
    cost = cvxpy.trace(plus) + cvxpy.trace(minus) + sparsity * cvxpy.sum(cvxpy.abs(off))
    problem = cvxpy.Problem(cvxpy.Minimize(cost))
    return problem.solve(solver=cvxpy.SCS, eps_abs=1e-6, eps_rel=1e-6, max_iters=100_000)


def random_pairs(seed):
    rng = np.random.default_rng(seed)
    n = 40 if seed % 10 == 0 else int(rng.integers(8, 25))
    sizes = np.bincount(np.sort(rng.integers(0, rng.integers(1, 5), n)))
    pairs = planted(sizes[sizes > 0], seen=rng.uniform(0.15, 1.0), flipped=rng.uniform(0.0, 0.3), seed=seed)[1]
    return pairs, default_sparsity(pairs) * rng.uniform(0.5, 2.0)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.filterwarnings("ignore:complete_similarity found no likeness")
def test_the_objective_is_the_optimum_that_cvxpy_finds(seed):
    pairs, sparsity = random_pairs(seed)
    found = complete_similarity(pairs, sparsity=sparsity)
    best = optimum(pairs, sparsity)
    assert objective(pairs, found.low_rank, sparsity) == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("steps", [1, 5, 20, 60])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_gap_bounds_how_far_the_optimum_can_be_even_when_stopped_early(seed, steps):
    pairs, sparsity = random_pairs(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        early = complete_similarity(pairs, sparsity=sparsity, max_steps=steps, tolerance=1e-12)
    best = complete_similarity(pairs, sparsity=sparsity, tolerance=1e-7, max_steps=50_000)
    reached = objective(pairs, early.low_rank, sparsity)
    lower_bound = reached * (1 - early.gap)
    assert 0 <= early.gap <= 2
    assert lower_bound <= objective(pairs, best.low_rank, sparsity) + 1e-9
    assert lower_bound <= reached


def test_a_hand_made_matrix_is_completed_and_its_one_error_taken_out():
    # two groups of four; '?' was not measured, and b-f was called alike by mistake
    seen = ["11?1000?", "1111010?", "?1110000", "111100?0", "00001111", "010011?1", "00?01?11", "??001111"]
    known = np.array([[mark != "?" for mark in row] for row in seen])
    alike = np.array([[mark == "1" for mark in row] for row in seen])
    pairs = ObservedPairs(tuple("abcdefgh"), alike=alike & known.T, known=known & known.T)
    found = complete_similarity(pairs, clusters=2)
    truth = np.kron(np.eye(2), np.ones((4, 4)))
    mistake = np.zeros((8, 8))
    mistake[1, 5] = mistake[5, 1] = 1
    assert np.abs(found.low_rank - truth).max() < 1e-3
    assert np.abs(found.errors - mistake).max() < 1e-3


def test_planted_clusters_of_three_hundred_tasks_are_completed_without_a_mistake_and_soon():
    truth, pairs = planted([60] * 5, seen=0.4, flipped=0.05)
    start = time.process_time()
    found = complete_similarity(pairs, clusters=5)
    assert time.process_time() - start < 30  # seconds of one core; about 1.5
    assert ((found.low_rank > 0.5) == (truth[:, None] == truth)).all()
    assert (np.abs(found.low_rank - (truth[:, None] == truth)) < 1e-3).mean() > 0.99
    assert found.gap <= 1e-5


def test_eigenpairs_followed_from_step_to_step_lead_where_full_eigendecompositions_lead(monkeypatch):
    _, pairs = planted([30, 30, 30, 30], seen=0.4, flipped=0.05)
    full, eigh = [], np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: full.append(len(matrix) == 120) or eigh(matrix))
    followed = complete_similarity(pairs)
    assert sum(full) < followed.steps / 5
    monkeypatch.setattr("manymetrics.partition.dense.CROWDED", 0.0)
    full.clear()
    whole = complete_similarity(pairs)
    assert sum(full) == whole.steps
    assert abs(followed.steps - whole.steps) <= 10
    assert np.abs(followed.low_rank - whole.low_rank).max() < 1e-3


def test_x_is_symmetric_and_keeps_the_constraint_to_the_last_bit():
    _, pairs = planted([9, 7, 4], seen=0.5, flipped=0.1)
    found = complete_similarity(pairs)
    assert (found.low_rank == found.low_rank.T).all()
    assert (found.errors == found.errors.T).all()
    assert (found.errors[~pairs.known] == 0).all()
    assert (found.errors == np.where(pairs.known, pairs.alike - found.low_rank, 0)).all()


@st.composite
def observed(draw):
    n = draw(st.integers(1, 8))
    marks = draw(st.lists(st.sampled_from("?01"), min_size=n * n, max_size=n * n))
    upper = np.triu(np.array(marks).reshape(n, n) != "?", 1), np.triu(np.array(marks).reshape(n, n) == "1", 1)
    known, alike = (half | half.T | np.eye(n, dtype=bool) for half in upper)
    return ObservedPairs(named(n), alike=alike, known=known)


@settings(deadline=None, max_examples=60)
@given(observed(), st.floats(0.05, 3.0), st.data())
@pytest.mark.filterwarnings("ignore")
def test_the_order_of_the_tasks_only_orders_the_similarity(pairs, sparsity, data):
    order = data.draw(st.permutations(range(len(pairs.names))))
    shuffled = ObservedPairs(
        tuple(pairs.names[place] for place in order),
        alike=pairs.alike[np.ix_(order, order)],
        known=pairs.known[np.ix_(order, order)],
    )
    straight = complete_similarity(pairs, sparsity=sparsity)
    after = complete_similarity(shuffled, sparsity=sparsity)
    assert np.abs(after.low_rank - straight.low_rank[np.ix_(order, order)]).max() <= 1e-6
    assert (straight.low_rank == straight.low_rank.T).all()
    assert straight.low_rank.diagonal().min() >= -1e-4
    assert straight.low_rank.diagonal().max() <= 1 + 1e-4


def test_not_converging_says_the_numbers_and_the_knob():
    _, pairs = planted([10, 10], seen=0.5, flipped=0.1)
    text = (
        r"stopped after 7 steps with gap \S+ and residual \S+ \(wanted 1e-09\)\. Raise max_steps, or loosen tolerance"
    )
    with pytest.warns(DidNotConverge, match=text):
        assert complete_similarity(pairs, max_steps=7, tolerance=1e-9).steps == 7


def test_too_small_a_sparsity_says_that_no_cluster_survives():
    _, pairs = planted([10, 10], seen=0.5)
    with pytest.warns(UserWarning, match=r"nearly 0 with sparsity 0\.02.*more than 50\.0 known alike.*Raise sparsity"):
        complete_similarity(pairs, sparsity=0.02)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_tasks_known_only_to_themselves_stay_by_themselves(n):
    alone = np.eye(n, dtype=bool)
    found = complete_similarity(ObservedPairs(named(n), alike=alone, known=alone))
    assert np.abs(found.low_rank - alone).max() < 1e-4
    assert found.gap <= 1e-5


@pytest.mark.parametrize(
    ("sizes", "seen"), [([30] * 2, 0.5), ([25] * 4, 0.5), ([12] * 5, 0.8), ([4] * 3, 1.0), ([60] * 5, 0.4)]
)
def test_the_default_sparsity_keeps_clusters_of_the_size_promised(sizes, seen):
    truth, pairs = planted(sizes, seen=seen, flipped=0.02)
    found = complete_similarity(pairs, clusters=len(sizes))
    together = truth[:, None] == truth
    assert (found.low_rank[together] > 0.5).mean() > 0.99
    assert (found.low_rank[~together] < 0.5).mean() > 0.99


def test_the_textbook_sparsity_would_have_lost_them():
    _, pairs = planted([12] * 5, seen=0.4)
    with pytest.warns(UserWarning, match=r"nearly 0"):
        lost = complete_similarity(pairs, sparsity=1 / np.sqrt(60))
    kept = complete_similarity(pairs, clusters=5)
    assert np.abs(lost.low_rank).max() < 0.01
    assert kept.low_rank.max() > 0.9


def test_the_default_sparsity_follows_its_formula():
    _, pairs = planted([50, 50], seen=0.3)
    row = pairs.known.sum() / 100
    assert default_sparsity(pairs, 1) == pytest.approx(1 / np.sqrt(row))
    assert default_sparsity(pairs, 20) == pytest.approx(1.5 / (row / 20))


@pytest.mark.parametrize("sizes", [[20] * 5, [40, 30, 20, 10], [60, 25, 15]])
def test_without_clusters_the_default_is_near_what_the_true_number_gives(sizes):
    _, pairs = planted(sizes, seen=0.6)
    assert default_sparsity(pairs) == pytest.approx(default_sparsity(pairs, len(sizes)), rel=0.25)


def test_strangers_do_not_raise_the_default():
    _, pairs = planted([15, 15, 1, 1, 1], seen=1.0)
    _, without = planted([15, 15], seen=1.0)
    assert default_sparsity(pairs) == pytest.approx(default_sparsity(without), rel=0.1)


@pytest.mark.parametrize(
    ("knobs", "text"),
    [
        ({"sparsity": 0.0}, "sparsity=0.0. Use a number above 0, or None"),
        ({"sparsity": np.nan}, "sparsity=nan. Use a number above 0, or None"),
        ({"max_steps": 0}, "max_steps=0. Use 1 or more"),
        ({"tolerance": 0.0}, "tolerance=0.0. Use a number above 0"),
        ({"clusters": 0}, "clusters=0. Use 1 or more, or None"),
    ],
)
def test_a_knob_out_of_range_says_its_range(knobs, text):
    with pytest.raises(RecipeError, match=text):
        complete_similarity(planted([2, 2], seen=1.0)[1], **knobs)


def test_no_tasks_at_all_is_an_error_with_a_cure():
    nobody = ObservedPairs((), alike=np.zeros((0, 0), bool), known=np.zeros((0, 0), bool))
    for knobs in ({}, {"sparsity": 1.0}):
        with pytest.raises(DataError, match=r"names no tasks.*Give at least one task"):
            complete_similarity(nobody, **knobs)
