from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from research.rivals.graphs import laplacian_kernel, normalised
from tests.research.rivals.graphs.small import NODES, ring_of_two_halves

GRAPH = ring_of_two_halves()
LAPLACIAN = np.diag(GRAPH.toarray().sum(axis=0)) - GRAPH.toarray()


def test_without_a_ridge_it_is_the_pseudo_inverse_of_the_laplacian() -> None:
    np.testing.assert_allclose(laplacian_kernel(GRAPH), np.linalg.pinv(LAPLACIAN), atol=1e-12)


def test_each_component_has_its_own_zero() -> None:
    two = csr_array(np.kron(np.eye(2), [[0, 1], [1, 0]]).astype(np.int8))
    expected = np.kron(np.eye(2), [[0.25, -0.25], [-0.25, 0.25]])
    np.testing.assert_allclose(laplacian_kernel(two), expected, atol=1e-12)


def test_with_a_ridge_it_is_the_inverse() -> None:
    kernel = laplacian_kernel(GRAPH, ridge=0.3)
    np.testing.assert_allclose(kernel @ (LAPLACIAN + 0.3 * np.eye(NODES)), np.eye(NODES), atol=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_of_all_matrices_of_its_rank_it_is_the_nearest(ridge: float) -> None:
    whole, part = laplacian_kernel(GRAPH, ridge=ridge), laplacian_kernel(GRAPH, ridge=ridge, rank=8)
    rank = 8 if ridge else 7  # the constant vector is among the eight, and is nothing without a ridge
    U, s, Vt = np.linalg.svd(whole)
    np.testing.assert_allclose(part, (U[:, :rank] * s[:rank]) @ Vt[:rank], atol=1e-12)


def test_the_squared_norm_of_a_labelling_is_four_times_its_cut() -> None:
    labels = np.where(np.arange(NODES) < NODES // 2, 1.0, -1.0)
    squared_norm = labels @ np.linalg.pinv(laplacian_kernel(GRAPH)) @ labels
    assert squared_norm == pytest.approx(4 * 2)  # the two edges of the ring between the halves


def test_a_normalised_kernel_has_the_same_angles_and_length_one() -> None:
    kernel = laplacian_kernel(GRAPH, ridge=0.3)
    unit = normalised(kernel)
    np.testing.assert_allclose(np.diag(unit), 1.0, atol=1e-15)
    assert unit[2, 5] == pytest.approx(kernel[2, 5] / math.sqrt(kernel[2, 2] * kernel[5, 5]))


@pytest.mark.parametrize(
    "matrix", [[[0.0, 1.0], [0.0, 0.0]], [[0.0, -1.0], [-1.0, 0.0]], [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]]
)
def test_what_is_not_an_undirected_graph_is_refused(matrix: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="adjacency must be square and symmetric"):
        laplacian_kernel(csr_array(np.array(matrix)))


@pytest.mark.parametrize("rank", [0, NODES + 1])
def test_a_rank_out_of_range_is_named(rank: int) -> None:
    with pytest.raises(ValueError, match="rank must be from 1 to 30"):
        laplacian_kernel(GRAPH, rank=rank)


def test_a_ridge_out_of_range_is_named() -> None:
    with pytest.raises(ValueError, match="ridge must be >= 0"):
        laplacian_kernel(GRAPH, ridge=-1.0)
