"""Products of small vectors and matrices, each sum in a fixed order, without BLAS."""

from __future__ import annotations

import numpy as np
from numba import njit

from forks.arrays import FloatArray


@njit(cache=True)
def dot(u: FloatArray, v: FloatArray) -> float:
    """Return u'v, summed from first to last.

    Examples
    --------
    >>> import numpy as np
    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    total = 0.0
    for i in range(u.shape[0]):
        total += u[i] * v[i]
    return total


@njit(cache=True)
def combine(weights: FloatArray, rows: FloatArray, out: FloatArray) -> None:
    """Write ``weights``' ``rows``, each number summed from first to last as `dot` does.

    Row by row, no sum waits for the one before it. Eight rows at a time, in order, a sum is fetched and
    stored an eighth as often.

    Parameters
    ----------
    weights : (n,) float64
    rows : (n, at least m) float64
    out : (m,) float64, overwritten
    """
    out[:] = 0.0
    eights = weights.shape[0] - weights.shape[0] % 8
    for n in range(0, eights, 8):
        a, b, c, d = weights[n], weights[n + 1], weights[n + 2], weights[n + 3]
        e, f, g, h = weights[n + 4], weights[n + 5], weights[n + 6], weights[n + 7]
        for i in range(out.shape[0]):
            total = out[i] + a * rows[n, i]
            total += b * rows[n + 1, i]
            total += c * rows[n + 2, i]
            total += d * rows[n + 3, i]
            total += e * rows[n + 4, i]
            total += f * rows[n + 5, i]
            total += g * rows[n + 6, i]
            out[i] = total + h * rows[n + 7, i]
    for n in range(eights, weights.shape[0]):
        a = weights[n]
        for i in range(out.shape[0]):
            out[i] += a * rows[n, i]


@njit(cache=True)
def spread(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return ``rows`` ``weights``, (n,), for ``rows`` (n, m), each number summed as `dot` does.

    Examples
    --------
    >>> import numpy as np
    >>> spread(np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([1.0, 1.0]))
    array([3., 3.])
    """
    out = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        out[i] = dot(rows[i], weights)
    return out
