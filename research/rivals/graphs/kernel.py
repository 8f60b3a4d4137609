"""Kernels between a graph's nodes, from its Laplacian."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array

from forks.arrays import FloatArray

# Share of the largest degree below which an eigenvalue counts as zero: rounding errors are smaller, and other
# eigenvalues of a connected graph with n nodes and unit weights are at least (2 / n)^2.
ROUNDING = 1e-12


def laplacian_kernel(
    adjacency: csr_array[Any, tuple[int, int]], *, ridge: float = 0.0, rank: int | None = None
) -> FloatArray:
    """Return K = sum_i v_i v_i' / (l_i + ridge) over the smoothest eigenvectors of the Laplacian D - A.

    Without a ridge, eigenvalues that are zero are left out: K is the Laplacian's pseudo-inverse, as in
    Herbster and Pontil (NIPS 2006), and a connected graph's labelling f of mean zero has the squared norm
    f'(D - A)f, four times the cut. With a ridge, K is (D - A + ridge I)^-1, the regularised Laplacian, which
    includes constant functions. With a rank, it is the best approximation of that rank.

    Parameters
    ----------
    adjacency : sparse array, shape (n, n)
        Symmetric adjacency matrix with weights >= 0.
    ridge
        Number added to each eigenvalue, >= 0.
    rank
        Number of eigenvectors to use, from the smallest eigenvalue on, zero included; by default all n.

    Returns
    -------
    ndarray, shape (n, n), float64
        Symmetric and positive semidefinite. Costs O(n^3), once.

    Raises
    ------
    ValueError
        The matrix is not an undirected graph's, or a number is out of range.

    Examples
    --------
    >>> pair = csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> laplacian_kernel(pair).round(3).tolist()
    [[0.25, -0.25], [-0.25, 0.25]]
    >>> laplacian_kernel(pair, ridge=1.0).round(3).tolist()
    [[0.667, 0.333], [0.333, 0.667]]
    """
    weights = np.asarray(adjacency.toarray(), dtype=np.float64)
    n = len(weights)
    if weights.shape != (n, n) or not (weights == weights.T).all() or not (weights >= 0.0).all():
        raise ValueError("adjacency must be square and symmetric, with weights >= 0")
    if not ridge >= 0.0:
        raise ValueError(f"ridge must be >= 0, not {ridge}")
    eigenvectors = n if rank is None else rank
    if not 1 <= eigenvectors <= n:
        raise ValueError(f"rank must be from 1 to {n}, the nodes, not {rank}")
    values, vectors = eigh(np.diag(weights.sum(axis=0)) - weights, subset_by_index=(0, eigenvectors - 1))
    values[values <= ROUNDING * weights.sum(axis=0).max()] = 0.0
    kept = values + ridge > 0.0
    halves = vectors[:, kept] / np.sqrt(values[kept] + ridge)
    kernel: FloatArray = halves @ halves.T
    return kernel


def normalised(kernel: FloatArray) -> FloatArray:
    """Return K_ij / sqrt(K_ii K_jj), whose diagonal is 1, as OKL, OKSG and AKSG assume.

    Parameters
    ----------
    kernel : ndarray, shape (n, n), float64
        Kernel matrix whose diagonal is > 0.

    Examples
    --------
    >>> normalised(np.array([[4.0, 1.0], [1.0, 1.0]])).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    lengths = np.sqrt(np.diag(kernel))
    unit: FloatArray = kernel / np.outer(lengths, lengths)
    return unit
