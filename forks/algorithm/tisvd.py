"""Truncated incremental singular value decomposition (FORKS, section 3.2 and Algorithm 2).

The sketch is symmetric. Of such a matrix, the singular values are the absolute eigenvalues, and U and V the
eigenvectors but for signs. So one basis is kept in place of two, and H, which is symmetric too, is decomposed
by its eigenvectors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forks.arrays import FloatArray
from forks.linalg.eigen import symmetric_eigen


class Factors(NamedTuple):
    """A rank-k decomposition M ~ U diag(lambda) U'.

    Attributes
    ----------
    vectors : ndarray, shape (n, k), float64
        Orthonormal columns U.
    values : ndarray, shape (k,), float64
        Eigenvalues lambda, the largest absolute value first.
    """

    vectors: FloatArray
    values: FloatArray

    @property
    def rank(self) -> int:
        return len(self.values)


def truncated_svd(matrix: FloatArray, rank: int) -> Factors:
    """Return the best rank-``rank`` decomposition of a symmetric ``matrix`` (Eq. 5).

    Only the lower triangle is read.
    """
    values, vectors = symmetric_eigen(matrix)
    largest = np.argsort(-np.abs(values), kind="stable")[:rank]
    return Factors(np.ascontiguousarray(vectors[:, largest]), values[largest])


def tisvd(factors: Factors, A: FloatArray, B: FloatArray) -> Factors:
    """Return the decomposition of M + A B', truncated to the rank of ``factors`` (Algorithm 2).

    Parameters
    ----------
    factors
        Decomposition of M, an (n, n) matrix.
    A, B : ndarray, shape (n, c), float64
        Factors of the change, with A B' symmetric; neither needs full column rank.

    Returns
    -------
    Factors
        Exact where ``factors`` are exact and M + A B' has at most their rank; else the best
        approximation of U diag(lambda) U' + A B' at that rank.
    """
    vectors, values = factors
    k = factors.rank
    # A B' is symmetric, so what it does to any vector, and what it sees of it, lies in the span of A.
    basis = np.hstack([vectors, _outside(vectors, A)])
    H = (basis.T @ A) @ (basis.T @ B).T  # Eq. 8
    H[np.arange(k), np.arange(k)] += values
    rotation = truncated_svd(H, k)
    return Factors(np.ascontiguousarray(basis @ rotation.vectors), rotation.values)  # Eq. 9


def _outside(basis: FloatArray, columns: FloatArray) -> FloatArray:
    """Return an orthonormal basis of what of ``columns`` lies outside of ``basis``."""
    outside = columns - basis @ (basis.T @ columns)
    # Once more: what is left of a column that lies nearly in the basis is not orthogonal to it.
    outside -= basis @ (basis.T @ outside)
    left, singular_values, _ = np.linalg.svd(outside, full_matrices=False)
    negligible = max(columns.shape) * np.finfo(np.float64).eps * np.linalg.norm(columns)
    return left[:, singular_values > negligible]
