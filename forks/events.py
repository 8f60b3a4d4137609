"""Events as the learner takes them: whole rows, or entities' numbers beside the columns that vary."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numba import njit

from forks.arrays import FloatArray
from forks.feature_map import FeatureMap
from forks.kernels import gaussian_row
from forks.settings import ForksSettings
from forks.strip import Events

NO_FACTORS = np.empty((0, 0))
NO_SLOTS = np.empty((0, 0), dtype=np.int64)

# Rows that factors are worked out for at a time, so that memory does not grow with the rows given.
ROWS_AT_A_TIME = 1024


class EventSource(Protocol):
    """A finite run of events."""

    def __len__(self) -> int: ...

    def rows(self, start: int, stop: int) -> FloatArray:
        """Return events as whole rows, (stop - start, dimension)."""
        ...

    def take(self, start: int, stop: int, feature_map: FeatureMap) -> Events:
        """Return events from ``start`` on for the loops: at least one, at most up to ``stop``."""
        ...


class Rows:
    """Events that are whole rows.

    Parameters
    ----------
    X : (n, dimension) float64
    settings : of the learner
    gamma : precision of its kernel
    """

    __slots__ = ("_X", "_gamma", "_settings")

    def __init__(self, X: FloatArray, settings: ForksSettings, gamma: float) -> None:
        self._X = X
        self._settings = settings
        self._gamma = gamma

    def __len__(self) -> int:
        return len(self._X)

    def rows(self, start: int, stop: int) -> FloatArray:
        return self._X[start:stop]

    def take(self, start: int, stop: int, feature_map: FeatureMap) -> Events:
        blocks = self._settings.entity_blocks
        if not blocks:
            return Events(self._X[start:stop], 0, NO_FACTORS, NO_SLOTS)
        X = self._X[start : min(stop, start + ROWS_AT_A_TIME)]
        edge = self._settings.kernel_columns[0]
        factors = [
            _factors(X[:, a:b], feature_map.landmarks[a - edge : b - edge], self._gamma) for a, b in blocks
        ]
        slots = np.arange(len(blocks) * len(X)).reshape(len(blocks), len(X)).T
        return Events(X, 0, np.concatenate(factors), np.ascontiguousarray(slots))


@njit(cache=True)
def _factors(X: FloatArray, landmarks: FloatArray, gamma: float) -> FloatArray:
    """Return the kernel of each row of ``X`` (n, columns) with ``landmarks`` (columns, s_m), (n, s_m)."""
    out = np.empty((X.shape[0], landmarks.shape[1]))
    for i in range(X.shape[0]):
        gaussian_row(X[i], landmarks, gamma, out[i])
    return out
