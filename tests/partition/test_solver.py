"""The solver above `EXACT` tasks: single precision, no full eigendecompositions, a norm that is proved."""

import warnings

import numpy as np
import pytest
from planting import named, objective, planted, truth_of
from scipy.sparse.linalg import eigsh
from sklearn.metrics import adjusted_rand_score

from manymetrics.partition import choose_clusters, cluster_tasks, complete_similarity, default_sparsity
from manymetrics.partition.completion import leading, scatter, sharpen, solve
from manymetrics.values import ObservedPairs

WRONG = (0.05, 0.005)


def solve_as_large(pairs, **parameters):
    """Solve as if the tasks were many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("manymetrics.partition.completion.EXACT", 0)
        return solve(pairs, **parameters)


@pytest.mark.parametrize(
    ("sizes", "seen", "wrong"),
    [([30] * 5, 0.4, (0.05, 0.05)), ([80, 60, 40, 20], 0.12, (0.03, 0.003)), ([60] * 10, 0.3, WRONG)],
)
def test_few_and_many_tasks_get_the_same_optimum(sizes, seen, wrong):
    pairs = planted(sizes, seen=seen, wrong=wrong)
    parameters = {"sparsity": default_sparsity(pairs), "max_steps": 3000, "tolerance": 3e-4}
    (exact, residual), (other, other_residual) = (find(pairs, **parameters) for find in (solve, solve_as_large))
    assert max(residual, exact.gap, other_residual, other.gap) <= 3e-4
    best = objective(pairs, exact.low_rank, parameters["sparsity"])
    assert objective(pairs, other.low_rank, parameters["sparsity"]) == pytest.approx(best, rel=5e-4)
    assert np.abs(other.low_rank - exact.low_rank).mean() < 0.01


@pytest.mark.parametrize("find", [solve, solve_as_large])
@pytest.mark.parametrize(("steps", "underestimate"), [(1, 1.0), (15, 1.0), (40, 1.0), (40, 0.5)])
def test_the_gap_bounds_the_distance_to_the_optimum_even_when_stopped_early(find, monkeypatch, steps, underestimate):
    """Even where the Lanczos iteration misses the largest eigenvalue."""
    monkeypatch.setattr(
        "manymetrics.partition.completion.eigsh", lambda *matrix, **options: underestimate * eigsh(*matrix, **options)
    )
    pairs = planted([50] * 4, seen=0.2, wrong=WRONG)
    sparsity = default_sparsity(pairs)
    early, residual = find(pairs, sparsity=sparsity, max_steps=steps, tolerance=1e-12)
    best, _ = solve(pairs, sparsity=sparsity, max_steps=3000, tolerance=1e-4)
    reached = objective(pairs, early.low_rank, sparsity)
    assert max(residual, early.gap) > 1e-12
    assert 0 <= early.gap <= 1
    assert reached * (1 - early.gap) <= objective(pairs, best.low_rank, sparsity) <= reached * (1 + 1e-4)


def test_the_same_problem_gives_the_same_bits_again():
    pairs = planted([60] * 4, seen=0.2, wrong=WRONG)
    first, second = (solve_as_large(pairs, sparsity=0.2, max_steps=20, tolerance=1e-9)[0].low_rank for _ in range(2))
    assert (first == second).all()
    assert (first == first.T).all()


def test_as_many_eigenvalues_as_tasks_are_all_found():
    alone = np.eye(520, dtype=bool)
    pairs = ObservedPairs(named(520), similar=alone, observed=alone)
    found, _ = solve(pairs, sparsity=1.5, max_steps=100, tolerance=1e-3)
    assert np.abs(found.low_rank - alone).max() < 1e-2


def test_thousands_of_tasks_are_clustered_by_their_first_eigenvectors_alone():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = complete_similarity(planted([150] * 10, seen=0.12, wrong=WRONG), tolerance=0.03)
    assert choose_clusters(found) == 10
    labels = cluster_tasks(found).labels
    assert adjusted_rand_score(truth_of([150] * 10), labels) > 0.99
    assert (cluster_tasks(found, n_clusters=10).labels == labels).all()


# --- eigenpairs


def symmetric(values, seed=0):
    """A matrix with these eigenvalues, and its eigenvectors."""
    vectors = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    return (vectors * values) @ vectors.T, vectors


def test_pseudo_random_columns_are_the_same_at_every_call_and_nearly_orthonormal():
    block = scatter(4000, 6, seed=3)
    assert (block == scatter(4000, 6, seed=3)).all()
    assert not np.isclose(block, scatter(4000, 6, seed=4)).mean() > 0.01
    assert np.abs(block.T @ block - np.eye(6)).max() < 0.1
    assert np.abs(block.sum(axis=0)).max() < 5


def test_both_ends_of_the_spectrum_are_found():
    values = np.concatenate([[9.0, -8.0, 7.0, -5.0], np.linspace(-1, 1, 296)])
    matrix, vectors = symmetric(values)
    found, basis = leading(matrix, count=4)
    assert found == pytest.approx([9, -8, 7, -5], abs=1e-6)
    assert np.abs(np.abs(basis.T @ vectors[:, :4]) - np.eye(4)).max() < 1e-3


def test_eigenvalues_that_occur_many_times_are_all_found():
    blocks = np.kron(np.eye(20), np.ones((30, 30))) / 30
    found, basis = leading(blocks, count=25)
    assert found == pytest.approx([1.0] * 20 + [0.0] * 5, abs=1e-6)
    assert np.abs(blocks @ basis[:, :20] - basis[:, :20]).max() < 1e-6


@pytest.mark.parametrize("matrix", [np.zeros((40, 40)), np.eye(40), np.ones((40, 40))])
def test_degenerate_matrices_give_orthonormal_vectors(matrix):
    values, vectors = sharpen(matrix, scatter(40, 5, seed=0), beyond=0.5)
    assert np.isfinite(values).all()
    assert np.abs(vectors.T @ vectors - np.eye(5)).max() < 1e-10
