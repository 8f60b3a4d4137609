"""The time-varying explicit feature map (FORKS, section 3.1).

`forks.rounds` says what to mind when compiled functions change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.linalg import lstsq

from forks.arrays import FloatArray
from forks.kernels import gaussian_row
from forks.products import combine
from forks.sketch import KernelSketch
from forks.tisvd import Factors

# Phi_pm's singular values fall as fast as the kernel's eigenvalues. What lies below this part of the
# largest is noise to the map, and dividing by it would make features of it.
RELATIVE_CUTOFF = 1e-6


class FeatureMap(NamedTuple):
    """phi(x) = [k(x, x_1), ..., k(x, x_m)] Z, between two changes of the sketch.

    Parameters
    ----------
    landmarks : x_1 ... x_m, as columns: (dimension, s_m)
    Z : (s_m, k)
    """

    landmarks: FloatArray
    Z: FloatArray


def build_map(sketch: KernelSketch, factors: Factors) -> FeatureMap:
    """Return the map with Z = pinv(Phi_pm) U Sigma^(1/2)."""
    target = factors.vectors * np.sqrt(np.abs(factors.values))
    Z, *_ = lstsq(sketch.phi_pm, target, cond=RELATIVE_CUTOFF, lapack_driver="gelsy")
    return FeatureMap(np.ascontiguousarray(sketch.landmark_points.T), np.ascontiguousarray(Z))


@njit(cache=True)
def map_points(X: FloatArray, feature_map: FeatureMap, gamma: float) -> FloatArray:
    """Return phi of each row of ``X`` (n, dimension), (n, k)."""
    out = np.empty((X.shape[0], feature_map.Z.shape[1]))
    row = np.empty(feature_map.Z.shape[0])
    for i in range(X.shape[0]):
        gaussian_row(X[i], feature_map.landmarks, gamma, row)
        combine(row, feature_map.Z, out[i])
    return out
