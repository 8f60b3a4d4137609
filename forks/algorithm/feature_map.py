"""The time-varying explicit feature map (FORKS, section 3.1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forks.algorithm.kernels import gaussian_in_place, squared_distance_matrix
from forks.algorithm.sketch import KernelSketch
from forks.algorithm.tisvd import Factors
from forks.arrays import FloatArray
from forks.compiled.alignment import aligned_rows
from forks.compiled.products import matmul
from forks.jit import njit
from forks.linalg.least_squares import least_squares
from forks.linalg.vectors import norm

# Phi_pm's singular values fall as fast as the kernel's eigenvalues. Values below this share of the largest
# one, or of the kernel's largest value, 1, are noise, and dividing by them would turn noise into features.
# The second bound matters where points are so similar that they cancel in Phi_pm.
CUTOFF = 1e-6


class FeatureMap(NamedTuple):
    """The map phi(x) = [k(x, x_1), ..., k(x, x_m)] Z, between two changes of the sketch.

    Attributes
    ----------
    landmarks : ndarray, shape (dimension, s_m), float64
        Landmarks x_1 ... x_m, one per column.
    Z : ndarray, shape (s_m, k), float64
        Coefficients of the features, one feature per column.
    """

    landmarks: FloatArray
    Z: FloatArray


def build_map(sketch: KernelSketch, factors: Factors) -> FeatureMap:
    """Return the map with Z = pinv(Phi_pm) U Sigma^(1/2) (FORKS, section 3.1)."""
    target = factors.vectors * np.sqrt(np.abs(factors.values))
    size = norm(sketch.phi_pm)
    if size <= CUTOFF:
        Z = np.zeros((sketch.phi_pm.shape[1], target.shape[1]))
    else:
        Z = least_squares(sketch.phi_pm, target, CUTOFF * max(1.0, 1.0 / size))
    return FeatureMap(np.ascontiguousarray(sketch.landmark_points.T), Z)


def map_points(X: FloatArray, feature_map: FeatureMap, gamma: float) -> FloatArray:
    """Return the features, (n, k), of the rows of ``X`` (n, dimension)."""
    landmarks, Z = (aligned_rows(matrix) for matrix in feature_map)
    return _map_points(X, landmarks, Z, gamma)[:, : feature_map.Z.shape[1]].copy()


@njit(cache=True, allocates=True)
def _map_points(X: FloatArray, landmarks: FloatArray, Z: FloatArray, gamma: float) -> FloatArray:
    kernel, phi = np.empty((X.shape[0], landmarks.shape[1])), np.empty((X.shape[0], Z.shape[1]))
    # A slice, as where tiles of events are computed: of whole rows it would be compiled once more.
    squared_distance_matrix(X[:, : landmarks.shape[0]], landmarks, kernel)
    gaussian_in_place(kernel.reshape(-1), gamma)
    matmul(kernel, Z, phi)
    return phi
