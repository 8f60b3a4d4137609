"""Eigenvalues and eigenvectors that LAPACK finds for every symmetric matrix."""

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
        ``matrix`` holds something that is not finite, and has none.

    Examples
    --------
    >>> symmetric_eigen(np.diag([3.0, 1.0]))[0].tolist()
    [1.0, 3.0]
    """
    try:
        values, vectors = np.linalg.eigh(matrix)
    except np.linalg.LinAlgError:
        # Divide and conquer gives up on a sound matrix now and then, a sketch of points that are far apart
        # for one. The older iteration takes longer, and does not.
        values, vectors = scipy.linalg.eigh(matrix, driver="ev")
    return values, vectors
