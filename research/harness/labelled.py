"""A set of labelled vectors, in its own or in random order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forks.arrays import FloatArray


class Labelled(NamedTuple):
    """Vectors and labels.

    Attributes
    ----------
    X : ndarray, shape (n, dimension), float64
        Rows of the events.
    y : ndarray, shape (n,), float64
        Labels, -1 or +1.

    Examples
    --------
    >>> data = Labelled(np.zeros((4, 1)), np.array([1.0, -1.0, 1.0, 1.0]))
    >>> data.majority
    0.25
    >>> data.permuted(np.random.default_rng(0)).y.tolist()
    [1.0, 1.0, -1.0, 1.0]
    """

    X: FloatArray
    y: FloatArray

    def permuted(self, rng: np.random.Generator) -> Labelled:
        """Return the same rows in random order."""
        order = rng.permutation(len(self.y))
        return Labelled(self.X[order], self.y[order])

    @property
    def majority(self) -> float:
        """Share of mistakes when the more frequent label is predicted every time."""
        positive = float(np.mean(self.y > 0))
        return min(positive, 1.0 - positive)
