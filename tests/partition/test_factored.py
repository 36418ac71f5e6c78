import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from manymetrics.errors import DidNotConverge
from manymetrics.partition import choose_clusters, cluster_tasks, complete_similarity, default_sparsity
from manymetrics.partition.completion import solve
from manymetrics.partition.dense import solve_dense
from manymetrics.partition.factored import Factors, Omega, solve_factored
from manymetrics.values import ObservedPairs


def named(n):
    return tuple(f"task{place:05}" for place in range(n))


def planted(sizes, *, seen, wrong=(0.05, 0.005), seed=0):
    """Pairs of tasks in clusters: a share `seen` is known, and of the alike and the apart ones a share is wrong."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    n, same = len(truth), truth[:, None] == truth
    known = np.triu(rng.random((n, n)) < seen, 1)
    flipped = np.triu(rng.random((n, n)) < np.where(same, *wrong), 1)
    known, flipped = known | known.T | np.eye(n, dtype=bool), flipped | flipped.T
    return truth, ObservedPairs(named(n), alike=(same ^ flipped) & known, known=known)


def objective(pairs, low_rank, sparsity):
    off = np.abs(pairs.alike - low_rank)[pairs.known].sum()
    return np.abs(np.linalg.eigvalsh(low_rank)).sum() + sparsity * off


def test_observed_entries_are_read_and_written_where_they_stand():
    _, pairs = planted([7, 5, 3], seen=0.5)
    omega = Omega.of(pairs.known)
    rng = np.random.default_rng(0)
    basis, values = np.linalg.qr(rng.standard_normal((15, 3)))[0], np.array([3.0, -2.0, 1.0])
    whole = (basis * values) @ basis.T
    factors = Factors(basis, np.diag(values))
    entries = omega.read(factors)
    assert entries == pytest.approx(whole[omega.rows, omega.columns])
    written = omega.matrix(entries)
    written = written if isinstance(written, np.ndarray) else written.toarray()
    assert np.abs(written - np.where(pairs.known, whole, 0)).max() < 1e-12
    assert omega.total(entries) == pytest.approx(whole[pairs.known].sum())
    assert omega.square(entries) == pytest.approx((whole[pairs.known] ** 2).sum())
    assert omega.share == pairs.known.mean()
    assert np.abs(factors.dense() - whole).max() < 1e-12
    assert (factors.dense() == factors.dense().T).all()


@pytest.mark.parametrize(
    ("sizes", "seen", "wrong"),
    [
        ([30] * 5, 0.4, (0.05, 0.05)),  # dense products
        ([80, 60, 40, 20], 0.12, (0.03, 0.003)),  # sparse products
        ([40] * 5, 0.15, (0.1, 0.01)),
    ],
)
def test_the_solvers_agree_where_both_work(sizes, seen, wrong):
    _, pairs = planted(sizes, seen=seen, wrong=wrong)
    sparsity = default_sparsity(pairs)
    knobs = {"sparsity": sparsity, "max_steps": 3000, "tolerance": 3e-4}
    factored = solve_factored(pairs.alike, pairs.known, **knobs)
    dense = solve_dense(pairs.alike, pairs.known, **knobs)
    assert factored.converged
    best = objective(pairs, dense.low_rank, sparsity)
    assert objective(pairs, factored.low_rank, sparsity) == pytest.approx(best, rel=5e-4)
    assert np.abs(factored.low_rank - dense.low_rank).mean() < 0.01


def test_six_hundred_tasks_get_the_same_optimum_and_clusters_from_both_solvers():
    truth, pairs = planted([60] * 10, seen=0.15)
    found = complete_similarity(pairs)  # in factors, at this size
    dense = solve_dense(pairs.alike, pairs.known, sparsity=found.sparsity, max_steps=150, tolerance=1e-3)
    best = objective(pairs, dense.low_rank, found.sparsity)
    assert found.gap <= 1e-3
    assert objective(pairs, found.low_rank, found.sparsity) == pytest.approx(best, rel=1e-3)
    labels = cluster_tasks(found, clusters=10).labels
    assert (labels == cluster_tasks(replace(found, low_rank=dense.low_rank), clusters=10).labels).all()
    assert adjusted_rand_score(truth, labels) > 0.99
    assert choose_clusters(found) == 10


@pytest.mark.parametrize("steps", [1, 15, 40])
def test_the_gap_bounds_how_far_the_optimum_can_be_even_when_stopped_early(steps):
    _, pairs = planted([50] * 4, seen=0.2)
    sparsity = default_sparsity(pairs)
    early = solve_factored(pairs.alike, pairs.known, sparsity=sparsity, max_steps=steps, tolerance=1e-12)
    best = solve_dense(pairs.alike, pairs.known, sparsity=sparsity, max_steps=3000, tolerance=1e-4)
    reached = objective(pairs, early.low_rank, sparsity)
    assert not early.converged
    assert 0 <= early.gap <= 1
    assert reached * (1 - early.gap) <= objective(pairs, best.low_rank, sparsity) <= reached * (1 + 1e-4)


def test_the_same_problem_gives_the_same_bits_again():
    _, pairs = planted([60] * 4, seen=0.2)
    one, other = (
        solve_factored(pairs.alike, pairs.known, sparsity=0.2, max_steps=20, tolerance=1e-9).low_rank for _ in range(2)
    )
    assert (one == other).all()
    assert (one == one.T).all()


def test_the_order_of_many_tasks_only_orders_the_similarity_and_the_clusters():
    _, pairs = planted([180] * 3, seen=0.15)
    order = np.random.default_rng(1).permutation(540)
    square = np.ix_(order, order)
    shuffled = ObservedPairs(tuple(pairs.names[place] for place in order), pairs.alike[square], pairs.known[square])
    straight, after = complete_similarity(pairs, tolerance=0.01), complete_similarity(shuffled, tolerance=0.01)
    assert (after.low_rank == straight.low_rank[square]).all()
    assert (cluster_tasks(after).labels == cluster_tasks(straight).labels[order]).all()


def test_too_many_eigenvalues_are_left_to_the_dense_solver():
    alone = np.eye(520, dtype=bool)
    knobs = {"sparsity": 1.5, "max_steps": 100, "tolerance": 1e-3}
    assert solve_factored(alone, alone, **knobs) is None
    assert np.abs(solve(alone, alone, **knobs).low_rank - alone).max() < 1e-2


def test_not_reaching_the_tolerance_is_said():
    _, pairs = planted([270] * 2, seen=0.1)
    with pytest.warns(DidNotConverge, match=r"stopped after 12 steps with gap .*wanted 1e-03"):
        assert complete_similarity(pairs, max_steps=12).steps == 12


def test_a_thousand_tasks_are_completed_and_clustered_within_twenty_seconds():
    truth, pairs = planted([50] * 20, seen=0.1)
    start = time.process_time()
    found = complete_similarity(pairs)
    clusters = cluster_tasks(found, clusters=20)
    assert time.process_time() - start < 20  # seconds of one core; about 11
    assert found.gap <= 1e-3
    assert adjusted_rand_score(truth, clusters.labels) >= 0.95


def test_thousands_of_tasks_are_clustered_by_their_first_eigenvectors_alone():
    truth, pairs = planted([150] * 10, seen=0.12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = complete_similarity(pairs, tolerance=0.03)
    assert choose_clusters(found) == 10
    assert adjusted_rand_score(truth, cluster_tasks(found).labels) > 0.99
    assert (cluster_tasks(found, clusters=10).labels == cluster_tasks(found).labels).all()
