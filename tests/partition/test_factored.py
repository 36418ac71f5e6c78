import warnings
from dataclasses import replace

import numpy as np
import pytest
from planting import objective, planted, reordered, truth_of
from sklearn.metrics import adjusted_rand_score

from manymetrics.errors import DidNotConverge
from manymetrics.partition import choose_clusters, cluster_tasks, complete_similarity, default_sparsity
from manymetrics.partition.completion import solve
from manymetrics.partition.dense import solve_dense
from manymetrics.partition.factored import Factors, Omega, solve_factored

WRONG = (0.05, 0.005)


def test_observed_entries_are_read_and_written_where_they_stand():
    known = planted([7, 5, 3], seen=0.5).known
    omega = Omega.of(known)
    rng = np.random.default_rng(0)
    basis, values = np.linalg.qr(rng.standard_normal((15, 3)))[0], np.array([3.0, -2.0, 1.0])
    whole = (basis * values) @ basis.T
    factors = Factors(basis, np.diag(values))
    entries = omega.read(factors)
    assert entries == pytest.approx(whole[omega.rows, omega.columns])
    assert np.abs(omega.matrix(entries) - np.where(known, whole, 0)).max() < 1e-12
    assert omega.total(entries) == pytest.approx(whole[known].sum())
    assert omega.square(entries) == pytest.approx((whole[known] ** 2).sum())
    assert omega.share == known.mean()
    assert np.abs(factors.dense() - whole).max() < 1e-12
    assert (factors.dense() == factors.dense().T).all()


@pytest.mark.parametrize(
    ("sizes", "seen", "wrong"),
    [
        ([30] * 5, 0.4, (0.05, 0.05)),  # dense products
        ([80, 60, 40, 20], 0.12, (0.03, 0.003)),  # sparse products
    ],
)
def test_the_solvers_agree_where_both_work(sizes, seen, wrong):
    pairs = planted(sizes, seen=seen, wrong=wrong)
    sparsity = default_sparsity(pairs)
    parameters = {"sparsity": sparsity, "max_steps": 3000, "tolerance": 3e-4}
    factored = solve_factored(pairs.alike, pairs.known, **parameters)
    dense = solve_dense(pairs.alike, pairs.known, **parameters)
    assert factored.converged
    best = objective(pairs, dense.low_rank, sparsity)
    assert objective(pairs, factored.low_rank, sparsity) == pytest.approx(best, rel=5e-4)
    assert np.abs(factored.low_rank - dense.low_rank).mean() < 0.01


def test_six_hundred_tasks_get_the_same_optimum_and_the_true_clusters_from_both_solvers():
    pairs = planted([60] * 10, seen=0.3, wrong=WRONG)
    found = complete_similarity(pairs)  # factored, at this size
    dense = solve_dense(pairs.alike, pairs.known, sparsity=found.sparsity, max_steps=150, tolerance=1e-3)
    best = objective(pairs, dense.low_rank, found.sparsity)
    assert found.gap <= 1e-3
    assert objective(pairs, found.low_rank, found.sparsity) == pytest.approx(best, rel=1e-3)
    for similarity in (found, replace(found, low_rank=dense.low_rank)):
        assert cluster_tasks(similarity, clusters=10).labels.tolist() == truth_of([60] * 10).tolist()
    assert choose_clusters(found) == 10


@pytest.mark.parametrize("steps", [1, 15, 40])
def test_the_gap_bounds_the_distance_to_the_optimum_even_when_stopped_early(steps):
    pairs = planted([50] * 4, seen=0.2, wrong=WRONG)
    sparsity = default_sparsity(pairs)
    early = solve_factored(pairs.alike, pairs.known, sparsity=sparsity, max_steps=steps, tolerance=1e-12)
    best = solve_dense(pairs.alike, pairs.known, sparsity=sparsity, max_steps=3000, tolerance=1e-4)
    reached = objective(pairs, early.low_rank, sparsity)
    assert not early.converged
    assert 0 <= early.gap <= 1
    assert reached * (1 - early.gap) <= objective(pairs, best.low_rank, sparsity) <= reached * (1 + 1e-4)


def test_the_same_problem_gives_the_same_bits_again():
    pairs = planted([60] * 4, seen=0.2, wrong=WRONG)
    one, other = (
        solve_factored(pairs.alike, pairs.known, sparsity=0.2, max_steps=20, tolerance=1e-9).low_rank for _ in range(2)
    )
    assert (one == other).all()
    assert (one == one.T).all()


def test_the_order_of_many_tasks_only_orders_the_similarity_and_the_clusters():
    pairs = planted([180] * 3, seen=0.15, wrong=WRONG)
    order = np.random.default_rng(1).permutation(540)
    straight = complete_similarity(pairs, tolerance=0.01)
    after = complete_similarity(reordered(pairs, order), tolerance=0.01)
    assert (after.low_rank == straight.low_rank[np.ix_(order, order)]).all()
    assert (cluster_tasks(after).labels == cluster_tasks(straight).labels[order]).all()


def test_too_many_eigenvalues_are_left_to_the_dense_solver():
    alone = np.eye(520, dtype=bool)
    parameters = {"sparsity": 1.5, "max_steps": 100, "tolerance": 1e-3}
    assert solve_factored(alone, alone, **parameters) is None
    assert np.abs(solve(alone, alone, **parameters).low_rank - alone).max() < 1e-2


def test_not_converging_is_a_warning():
    with pytest.warns(DidNotConverge, match=r"stopped after 12 steps with gap .*wanted 1e-03"):
        assert complete_similarity(planted([270] * 2, seen=0.1, wrong=WRONG), max_steps=12).steps == 12


def test_a_thousand_tasks_are_completed_and_clustered():
    found = complete_similarity(planted([50] * 20, seen=0.1, wrong=WRONG))
    assert found.gap <= 1e-3
    assert adjusted_rand_score(truth_of([50] * 20), cluster_tasks(found, clusters=20).labels) >= 0.95


def test_thousands_of_tasks_are_clustered_by_their_first_eigenvectors_alone():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = complete_similarity(planted([150] * 10, seen=0.12, wrong=WRONG), tolerance=0.03)
    assert choose_clusters(found) == 10
    labels = cluster_tasks(found).labels
    assert adjusted_rand_score(truth_of([150] * 10), labels) > 0.99
    assert (cluster_tasks(found, clusters=10).labels == labels).all()
