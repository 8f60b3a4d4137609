"""The Gaussian kernel, summed in a fixed order so that equal inputs give equal bits."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from forks.arrays import FloatArray


def precision(width: float) -> float:
    """Return gamma = 1 / (2 width^2), the factor of the squared distance in the exponent."""
    return 1.0 / (2.0 * width * width)


@njit(cache=True)
def gaussian_row(x: FloatArray, points: FloatArray, gamma: float, out: FloatArray) -> None:
    """Write k(x, points[i]) = exp(-gamma |x - points[i]|^2) to ``out[i]``.

    Parameters
    ----------
    x : (dimension,) float64
    points : (n, dimension) float64
    gamma : 1 / (2 width^2), see `precision`
    out : (n,) float64, overwritten
    """
    for i in range(points.shape[0]):
        distance = 0.0
        for j in range(points.shape[1]):
            difference = x[j] - points[i, j]
            distance += difference * difference
        out[i] = math.exp(-gamma * distance)


@njit(cache=True)
def gaussian_matrix(left: FloatArray, right: FloatArray, gamma: float) -> FloatArray:
    """Return the (n, m) kernel matrix between the rows of ``left`` (n, d) and ``right`` (m, d)."""
    out = np.empty((left.shape[0], right.shape[0]))
    for i in range(left.shape[0]):
        gaussian_row(left[i], right, gamma, out[i])
    return out
