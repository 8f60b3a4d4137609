"""Truncated incremental singular value decomposition (FORKS, section 3.2 and Algorithm 2).

The sketch is symmetric. The singular values of a symmetric matrix are the absolute eigenvalues, and U and V
are the eigenvectors up to signs. So one basis is enough, and H, which is also symmetric, is decomposed into
eigenvectors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forks.arrays import FloatArray
from forks.linalg.eigen import symmetric_eigen
from forks.linalg.orthogonal import outside
from forks.linalg.products import product


class Factors(NamedTuple):
    """Decomposition M ~ U diag(lambda) U' of rank k.

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
        """Number k of eigenvalues."""
        return len(self.values)


def truncated_svd(matrix: FloatArray, rank: int) -> Factors:
    """Return the best rank-``rank`` decomposition of a symmetric ``matrix`` (Eq. 5).

    Only the lower triangle is read.
    """
    values, vectors = symmetric_eigen(matrix)
    largest = np.argsort(-np.abs(values), kind="stable")[:rank]
    return Factors(vectors.take(largest, axis=1), values[largest])


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
        Exact if ``factors`` are exact and M + A B' has at most their rank; otherwise the best
        approximation of U diag(lambda) U' + A B' at that rank.
    """
    vectors, values = factors
    k = factors.rank
    # A B' is symmetric, so both its row space and its column space lie in the span of A.
    basis = np.concatenate([vectors, outside(vectors, A)], axis=1)
    H = product(product(basis.T, A), product(basis.T, B).T)  # Eq. 8
    H[np.arange(k), np.arange(k)] += values
    rotation = truncated_svd(H, k)
    return Factors(product(basis, rotation.vectors), rotation.values)  # Eq. 9
