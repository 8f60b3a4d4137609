"""Newton steps in the kernel's own space, as their formulas say: matrices over an orthonormal basis."""

from __future__ import annotations

import numpy as np

from forks.arrays import FloatArray
from forks.losses import LOSSES, LossName, loss_slope


def orthonormal(K: FloatArray) -> FloatArray:
    """Return the points of a kernel matrix, (n, n), as rows in an orthonormal basis of their span."""
    values, vectors = np.linalg.eigh(K)
    rows: FloatArray = vectors * np.sqrt(np.maximum(values, 0.0))
    return rows


class DenseNewton:
    """w and A as such: A = alpha I + eta sum g g', and each step solves a system.

    Parameters
    ----------
    size : of the space
    """

    def __init__(self, size: int, alpha: float, eta: float, clip: float, loss: LossName) -> None:
        self.w = np.zeros(size)
        self.A = alpha * np.eye(size)
        self._eta, self._clip, self._loss = eta, clip, LOSSES[loss]

    def learn(self, phi: FloatArray, y: float, *, enters: bool = True) -> float:
        """Project, add g g' where it ``enters`` A, and step; return the slope."""
        score = self.w @ phi
        excess = np.sign(score) * max(abs(score) - self._clip, 0.0)
        if excess:
            direction = np.linalg.solve(self.A, phi)
            self.w = self.w - excess / (phi @ direction) * direction
        slope = self.slope(phi, y)
        g = slope * phi
        if enters:
            self.A = self.A + self._eta * np.outer(g, g)
        self.w = self.w - np.linalg.solve(self.A, g)
        return slope

    def slope(self, phi: FloatArray, y: float) -> float:
        return float(loss_slope(self._loss, self.score(phi), y))

    def score(self, phi: FloatArray) -> float:
        return float(np.clip(self.w @ phi, -self._clip, self._clip))
