"""What the model predicted for rows: scores, and features in four bytes each where they fit exactly."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import njit

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Millionths: TypeAlias = NDArray[np.int32]


class ScoredColumns:
    """Scores and features by row. Features have six decimals, mostly, and are kept in millionths then.

    As soon as a feature has other bits after the way back, all of them are kept as they are.

    Examples
    --------
    >>> columns = ScoredColumns()
    >>> columns.resize(2)
    >>> columns.store(np.array([1]), np.array([0.123456789]), np.array([[0.25, -1.5]]))
    >>> scores, features = columns.of(np.array([1]))
    >>> scores.tolist(), features.tolist()
    ([0.123456789], [[0.25, -1.5]])
    """

    def __init__(self) -> None:
        self._scores = np.empty(0)
        self._features: NDArray[Any] = np.empty((0, 0), dtype=np.int32)
        self._empty = True

    def move(self, kept: Integers) -> None:
        """Move rows, which ascend, to the beginning."""
        for column in (self._scores, self._features):
            column[: len(kept)] = column[kept]

    def resize(self, size: int) -> None:
        """Make room for so many rows."""
        held = min(size, len(self._scores))
        scores, features = np.empty(size), np.empty((size, self._features.shape[1]), self._features.dtype)
        scores[:held], features[:held] = self._scores[:held], self._features[:held]
        self._scores, self._features = scores, features

    def store(self, rows: Integers, scores: Floats, features: Floats) -> None:
        """Write the scores of rows, shape (n,), and their features, shape (n, features)."""
        if self._empty:
            self._features = np.zeros((len(self._scores), features.shape[1]), dtype=self._features.dtype)
            self._empty = False
        self._scores[rows] = scores
        if self._features.dtype == np.int32:
            if _to_millionths(np.ascontiguousarray(features), rows, self._features):
                return
            self._features = self._features / 1e6
        self._features[rows] = features

    def of(self, rows: Integers) -> tuple[Floats, Floats]:
        """Return the scores of rows, shape (n,), and their features, shape (n, features)."""
        if self._empty:
            return np.empty(len(rows)), np.empty((len(rows), 0))
        features = self._features[rows]
        return self._scores[rows], features / 1e6 if features.dtype == np.int32 else features


@njit(cache=True, nogil=True)
def _to_millionths(features: Floats, rows: Integers, out: Millionths) -> bool:
    """Write features in millionths to rows; tell whether each comes back with the same bits."""
    for number in range(features.shape[0]):
        for column in range(features.shape[1]):
            value = features[number, column]
            if not -2147.0 < value < 2147.0:
                return False
            rounded = np.int32(np.rint(value * 1e6))
            if rounded / 1e6 != value or (rounded == 0 and np.signbit(value)):
                return False
            out[rows[number], column] = rounded
    return True
