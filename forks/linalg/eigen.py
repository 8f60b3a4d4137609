"""Eigenvalues and eigenvectors of any symmetric matrix, by LAPACK."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from forks.arrays import FloatArray


def symmetric_eigen(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of a symmetric matrix in ascending order, (n,), and its eigenvectors as columns.

    Only the lower triangle is read. O(n^3).

    Raises
    ------
    ValueError
        ``matrix`` has an entry that is not finite.

    Examples
    --------
    >>> symmetric_eigen(np.diag([3.0, 1.0]))[0].tolist()
    [1.0, 3.0]
    """
    try:
        values, vectors = np.linalg.eigh(matrix)
    except np.linalg.LinAlgError:
        # LAPACK's divide and conquer sometimes fails on a finite matrix, such as a sketch of distant points.
        # The QR iteration is slower but does not fail.
        values, vectors = scipy.linalg.eigh(matrix, driver="ev")
    return values, vectors
