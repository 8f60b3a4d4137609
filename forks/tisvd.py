"""Truncated incremental singular value decomposition (FORKS, section 3.2 and Algorithm 2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forks.arrays import FloatArray


class Factors(NamedTuple):
    """A rank-k decomposition M ~ U diag(sigma) V'.

    Parameters
    ----------
    left : U, (rows, k), orthonormal columns
    singular_values : sigma, (k,), descending
    right : V, (columns, k), orthonormal columns
    """

    left: FloatArray
    singular_values: FloatArray
    right: FloatArray

    @property
    def rank(self) -> int:
        return len(self.singular_values)


def truncated_svd(matrix: FloatArray, rank: int) -> Factors:
    """Return the best rank-``rank`` decomposition of ``matrix`` (Eq. 5)."""
    left, singular_values, right = np.linalg.svd(matrix, full_matrices=False)
    return Factors(
        np.ascontiguousarray(left[:, :rank]),
        np.ascontiguousarray(singular_values[:rank]),
        np.ascontiguousarray(right[:rank].T),
    )


def truncated_symmetric_svd(matrix: FloatArray, rank: int) -> Factors:
    """Return `truncated_svd` of a symmetric matrix, of its eigenvectors: in half the time or less.

    Only the lower triangle is read.
    """
    values, vectors = np.linalg.eigh(matrix)
    largest = np.argsort(-np.abs(values), kind="stable")[:rank]
    left, values = np.ascontiguousarray(vectors[:, largest]), values[largest]
    return Factors(left, np.abs(values), np.where(values < 0.0, -left, left))


def tisvd(factors: Factors, A: FloatArray, B: FloatArray) -> Factors:
    """Return the decomposition of M + A B', truncated to the rank of ``factors`` (Algorithm 2).

    Parameters
    ----------
    factors : of M, (rows, columns)
    A : (rows, c)
    B : (columns, c); neither need have full column rank

    Returns
    -------
    Factors
        Exact where ``factors`` are exact and M + A B' has at most their rank; else the best
        approximation of U diag(sigma) V' + A B' at that rank.
    """
    left, singular_values, right = factors
    k = factors.rank
    inside_A, P, R_A = _split(left, A)
    inside_B, Q, R_B = _split(right, B)
    H = np.vstack([inside_A, R_A]) @ np.vstack([inside_B, R_B]).T  # Eq. 8
    H[np.arange(k), np.arange(k)] += singular_values
    rotation = truncated_svd(H, k)
    return Factors(  # Eq. 9
        np.ascontiguousarray(np.hstack([left, P]) @ rotation.left),
        rotation.singular_values,
        np.ascontiguousarray(np.hstack([right, Q]) @ rotation.right),
    )


def _split(basis: FloatArray, columns: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Split ``columns`` into coordinates in ``basis``, an orthonormal rest and coordinates in that."""
    inside = basis.T @ columns
    outside = columns - basis @ inside
    # Once more: what is left of a column that lies nearly in the basis is not orthogonal to it.
    correction = basis.T @ outside
    inside += correction
    outside -= basis @ correction
    left, singular_values, right = np.linalg.svd(outside, full_matrices=False)
    negligible = max(columns.shape) * np.finfo(np.float64).eps * np.linalg.norm(columns)
    kept = int(np.count_nonzero(singular_values > negligible))
    return inside, left[:, :kept], singular_values[:kept, None] * right[:kept]
