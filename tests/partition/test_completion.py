import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planting import blocks, named, objective, planted, reordered

from manymetrics.errors import DataError, DidNotConverge, RecipeError
from manymetrics.partition import complete_similarity, default_sparsity
from manymetrics.values import ObservedPairs


def optimum(pairs, sparsity):
    """The optimal objective of eqn:pro by cvxpy; a symmetric X is P - N, its nuclear norm the trace of P + N."""
    cvxpy = pytest.importorskip("cvxpy", reason="cvxpy is not installed: nothing to compare the optimum with")
    n = len(pairs.names)
    plus, minus = cvxpy.Variable((n, n), PSD=True), cvxpy.Variable((n, n), PSD=True)
    errors = cvxpy.multiply(pairs.observed.astype(float), pairs.similar.astype(float) - (plus - minus))
    cost = cvxpy.trace(plus) + cvxpy.trace(minus) + sparsity * cvxpy.sum(cvxpy.abs(errors))
    problem = cvxpy.Problem(cvxpy.Minimize(cost))
    return problem.solve(solver=cvxpy.SCS, eps_abs=1e-6, eps_rel=1e-6, max_iters=100_000)


def random_pairs(seed):
    rng = np.random.default_rng(seed)
    n = 40 if seed % 10 == 0 else int(rng.integers(8, 25))
    sizes = np.bincount(np.sort(rng.integers(0, rng.integers(1, 5), n)))
    seen, wrong = rng.uniform(0.15, 1.0), rng.uniform(0.0, 0.3)
    pairs = planted(sizes[sizes > 0], seen=seen, wrong=(wrong, wrong), seed=seed)
    return pairs, default_sparsity(pairs) * rng.uniform(0.5, 2.0)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.filterwarnings("ignore:complete_similarity found nothing similar")
def test_the_objective_is_the_optimum_that_cvxpy_finds(seed):
    pairs, sparsity = random_pairs(seed)
    found = complete_similarity(pairs, sparsity=sparsity)
    assert objective(pairs, found.low_rank, sparsity) == pytest.approx(optimum(pairs, sparsity), rel=1e-4)


def test_a_small_matrix_is_completed_and_its_one_error_separated():
    # two groups of four; '?' was not measured, and b-f is wrongly similar
    marks = ["11?1000?", "1111010?", "?1110000", "111100?0", "00001111", "010011?1", "00?01?11", "??001111"]
    observed = np.array([[mark != "?" for mark in row] for row in marks])
    similar = np.array([[mark == "1" for mark in row] for row in marks])
    pairs = ObservedPairs(tuple("abcdefgh"), similar=similar & observed.T, observed=observed & observed.T)
    found = complete_similarity(pairs, n_clusters=2)
    error = np.zeros((8, 8))
    error[1, 5] = error[5, 1] = 1
    assert np.abs(found.low_rank - blocks(4, 4)).max() < 1e-3
    assert np.abs(found.errors - error).max() < 1e-3


def test_eigenpairs_updated_from_step_to_step_lead_where_full_eigendecompositions_lead(monkeypatch):
    pairs = planted([30, 30, 30, 30], seen=0.4, wrong=(0.05, 0.05))
    full, eigh = [], np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: full.append(len(matrix) == 120) or eigh(matrix))
    updated = complete_similarity(pairs)
    assert sum(full) < updated.steps / 5
    monkeypatch.setattr("manymetrics.partition.completion.FULL_SHARE", 0.0)
    full.clear()
    whole = complete_similarity(pairs)
    assert sum(full) == whole.steps
    assert abs(updated.steps - whole.steps) <= 10
    assert np.abs(updated.low_rank - whole.low_rank).max() < 1e-3


def test_x_is_symmetric_and_satisfies_the_constraint_to_the_last_bit():
    pairs = planted([9, 7, 4], seen=0.5, wrong=(0.1, 0.1))
    found = complete_similarity(pairs)
    assert (found.low_rank == found.low_rank.T).all()
    assert (found.errors == np.where(pairs.observed, pairs.similar - found.low_rank, 0)).all()


@st.composite
def observed(draw):
    n = draw(st.integers(1, 8))
    marks = np.array(draw(st.lists(st.sampled_from("?01"), min_size=n * n, max_size=n * n))).reshape(n, n)
    marked, similar = (
        half | half.T | np.eye(n, dtype=bool) for half in (np.triu(marks != "?", 1), np.triu(marks == "1", 1))
    )
    return ObservedPairs(named(n), similar=similar, observed=marked)


@settings(deadline=None, max_examples=60)
@given(observed(), st.floats(0.05, 3.0), st.data())
@pytest.mark.filterwarnings("ignore")
def test_the_order_of_the_tasks_only_orders_the_similarity(pairs, sparsity, data):
    order = data.draw(st.permutations(range(len(pairs.names))))
    straight = complete_similarity(pairs, sparsity=sparsity)
    after = complete_similarity(reordered(pairs, order), sparsity=sparsity)
    assert np.abs(after.low_rank - straight.low_rank[np.ix_(order, order)]).max() <= 1e-6
    assert (straight.low_rank == straight.low_rank.T).all()
    within = straight.low_rank.copy()
    np.fill_diagonal(within, np.clip(within.diagonal(), 0, 1))
    for other in (within, pairs.similar.astype(float), np.zeros_like(within)):
        assert objective(pairs, straight.low_rank, sparsity) <= objective(pairs, other, sparsity) * (1 + 1e-4)


def test_not_converging_is_a_warning_with_the_numbers_and_the_parameter():
    pairs = planted([10, 10], seen=0.5, wrong=(0.1, 0.1))
    text = (
        r"stopped after 7 steps with gap \S+ and residual \S+ \(wanted 1e-09\)\. Raise max_steps, or loosen tolerance"
    )
    with pytest.warns(DidNotConverge, match=text):
        assert complete_similarity(pairs, max_steps=7, tolerance=1e-9).steps == 7


def test_too_small_a_sparsity_is_a_warning_that_no_cluster_survives():
    text = r"nearly 0 with sparsity 0\.02.*more than 50\.0 observed similar.*Raise sparsity"
    with pytest.warns(UserWarning, match=text):
        complete_similarity(planted([10, 10], seen=0.5), sparsity=0.02)


@pytest.mark.parametrize(("sizes", "seen"), [([30] * 2, 0.5), ([25] * 4, 0.5), ([12] * 5, 0.8), ([4] * 3, 1.0)])
def test_clusters_survive_the_default_sparsity(sizes, seen):
    found = complete_similarity(planted(sizes, seen=seen, wrong=(0.02, 0.02)), n_clusters=len(sizes))
    together = blocks(*sizes) > 0
    assert (found.low_rank[together] > 0.5).mean() > 0.99
    assert (found.low_rank[~together] < 0.5).mean() > 0.99


def test_the_default_sparsity_follows_its_formula():
    pairs = planted([50, 50], seen=0.3)
    row = pairs.observed.sum() / 100
    assert default_sparsity(pairs, 1) == pytest.approx(1 / np.sqrt(row))
    assert default_sparsity(pairs, 20) == pytest.approx(2 / (row / 20))


@pytest.mark.parametrize("sizes", [[20] * 5, [60, 25, 15], [30, 30, 1, 1]])
def test_without_clusters_the_default_is_near_what_their_true_number_without_outliers_gives(sizes):
    pairs = planted(sizes, seen=0.6)
    assert default_sparsity(pairs) == pytest.approx(default_sparsity(pairs, sum(size > 1 for size in sizes)), rel=0.25)


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"sparsity": 0.0}, "sparsity=0.0. Use a number above 0, or the default"),
        ({"sparsity": np.nan}, "sparsity=nan. Use a number above 0, or the default"),
        ({"max_steps": 0}, "max_steps=0. Use a number above 0"),
        ({"tolerance": 0.0}, "tolerance=0.0. Use a number above 0"),
        ({"n_clusters": 0}, "n_clusters=0. Use 1 or more, or None"),
    ],
)
def test_a_parameter_out_of_range_is_an_error_that_names_the_range(parameters, text):
    with pytest.raises(RecipeError, match=text):
        complete_similarity(planted([2, 2], seen=1.0), **parameters)


def test_no_tasks_at_all_is_an_error():
    with pytest.raises(DataError, match=r"names no tasks.*Give at least one task"):
        complete_similarity(ObservedPairs((), similar=np.zeros((0, 0), bool), observed=np.zeros((0, 0), bool)))
