import numpy as np
import pytest

from manymetrics.partition.solver import leading, scatter, sharpen


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
