"""The solver above `EXACT` tasks: single precision, no full eigendecompositions, a norm that is proved."""

import warnings

import numpy as np
import pytest
from planting import objective, planted, reordered, truth_of
from scipy.sparse.linalg import eigsh
from sklearn.metrics import adjusted_rand_score

from manymetrics.errors import DidNotConverge
from manymetrics.partition import choose_clusters, cluster_tasks, complete_similarity, default_sparsity
from manymetrics.partition.solver import solve

WRONG = (0.05, 0.005)


@pytest.fixture
def large(monkeypatch):
    """Solve as if the tasks were many."""

    def solve_as_large(pairs, **parameters):
        with monkeypatch.context() as patch:
            patch.setattr("manymetrics.partition.solver.EXACT", 0)
            return solve(pairs.similar, pairs.observed, **parameters)

    return solve_as_large


@pytest.mark.parametrize(
    ("sizes", "seen", "wrong"),
    [([30] * 5, 0.4, (0.05, 0.05)), ([80, 60, 40, 20], 0.12, (0.03, 0.003)), ([60] * 10, 0.3, WRONG)],
)
def test_few_and_many_tasks_get_the_same_optimum(large, sizes, seen, wrong):
    pairs = planted(sizes, seen=seen, wrong=wrong)
    parameters = {"sparsity": default_sparsity(pairs), "max_steps": 3000, "tolerance": 3e-4}
    exact = solve(pairs.similar, pairs.observed, **parameters)
    other = large(pairs, **parameters)
    assert exact.converged
    assert other.converged
    best = objective(pairs, exact.low_rank, parameters["sparsity"])
    assert objective(pairs, other.low_rank, parameters["sparsity"]) == pytest.approx(best, rel=5e-4)
    assert np.abs(other.low_rank - exact.low_rank).mean() < 0.01


@pytest.mark.parametrize(("steps", "underestimate"), [(1, 1.0), (15, 1.0), (40, 1.0), (40, 0.5)])
def test_the_gap_bounds_the_distance_to_the_optimum_even_when_stopped_early(large, monkeypatch, steps, underestimate):
    """Even where the Lanczos iteration misses the largest eigenvalue."""
    monkeypatch.setattr(
        "manymetrics.partition.solver.eigsh", lambda *matrix, **options: underestimate * eigsh(*matrix, **options)
    )
    pairs = planted([50] * 4, seen=0.2, wrong=WRONG)
    sparsity = default_sparsity(pairs)
    early = large(pairs, sparsity=sparsity, max_steps=steps, tolerance=1e-12)
    best = solve(pairs.similar, pairs.observed, sparsity=sparsity, max_steps=3000, tolerance=1e-4)
    reached = objective(pairs, early.low_rank, sparsity)
    assert not early.converged
    assert 0 <= early.gap <= 1
    assert reached * (1 - early.gap) <= objective(pairs, best.low_rank, sparsity) <= reached * (1 + 1e-4)


def test_the_same_problem_gives_the_same_bits_again(large):
    pairs = planted([60] * 4, seen=0.2, wrong=WRONG)
    first, second = (large(pairs, sparsity=0.2, max_steps=20, tolerance=1e-9).low_rank for _ in range(2))
    assert (first == second).all()
    assert (first == first.T).all()


def test_the_order_of_many_tasks_only_orders_the_clusters():
    pairs = planted([180] * 3, seen=0.15, wrong=WRONG)
    order = np.random.default_rng(1).permutation(540)
    straight = complete_similarity(pairs, tolerance=0.01)
    after = complete_similarity(reordered(pairs, order), tolerance=0.01)
    assert np.abs(after.low_rank - straight.low_rank[np.ix_(order, order)]).max() < 0.01
    assert adjusted_rand_score(cluster_tasks(after).labels, cluster_tasks(straight).labels[order]) == 1


def test_as_many_eigenvalues_as_tasks_are_all_found():
    alone = np.eye(520, dtype=bool)
    solution = solve(alone, alone, sparsity=1.5, max_steps=100, tolerance=1e-3)
    assert np.abs(solution.low_rank - alone).max() < 1e-2


def test_not_converging_is_a_warning():
    with pytest.warns(DidNotConverge, match=r"stopped after 12 steps with gap .*wanted 1e-03"):
        assert complete_similarity(planted([270] * 2, seen=0.1, wrong=WRONG), max_steps=12).steps == 12


def test_thousands_of_tasks_are_clustered_by_their_first_eigenvectors_alone():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = complete_similarity(planted([150] * 10, seen=0.12, wrong=WRONG), tolerance=0.03)
    assert choose_clusters(found) == 10
    labels = cluster_tasks(found).labels
    assert adjusted_rand_score(truth_of([150] * 10), labels) > 0.99
    assert (cluster_tasks(found, n_clusters=10).labels == labels).all()
