"""Stage 1: kernelized online gradient descent (Kivinen et al., IEEE Trans. Signal Process. 52, 2004).

See `forks.learning.event_loop` before changing compiled functions.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from forks.algorithm.kernels import gaussian
from forks.arrays import FloatArray
from forks.compiled.simd import fma
from forks.jit import njit


class Expansion(NamedTuple):
    """A function f(x) = sum_i coefficients[i] k(points[i], x); without points f = 0.

    Attributes
    ----------
    points : ndarray, shape (n, dimension), float64
        Stored points, one per row.
    coefficients : ndarray, shape (n,), float64
        Coefficient of each stored point.
    """

    points: FloatArray
    coefficients: FloatArray

    @classmethod
    def empty(cls, dimension: int) -> Self:
        """Return the function f = 0."""
        return cls(np.empty((0, dimension)), np.empty(0))

    def descend(self, x: FloatArray, slope: float, *, store: bool, step: float, decay: float) -> Self:
        """Return f <- (1 - step decay) f - step slope k(x, .), the last term only with ``store``."""
        kept = (1.0 - step * decay) * self.coefficients
        if not store:
            return self._replace(coefficients=kept)
        return self._replace(
            points=np.concatenate([self.points, x[None]]), coefficients=np.append(kept, -step * slope)
        )


@njit(cache=True)
def expansion_value(x: FloatArray, expansion: Expansion, gamma: float) -> float:
    """Return f(x), summed from the oldest point to the newest."""
    total = 0.0
    for i in range(expansion.points.shape[0]):
        total = fma(gaussian(x, expansion.points[i], gamma), expansion.coefficients[i], total)
    return total
