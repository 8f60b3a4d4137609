"""Sources of events for the event loop: the interface, and events that are whole rows.

See `forks.learning.event_loop` before changing compiled functions.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from forks.algorithm.feature_map import FeatureMap
from forks.algorithm.kernels import gaussian_row
from forks.arrays import FloatArray, IntArray
from forks.jit import njit
from forks.learning.tile import Steps
from forks.settings import ForksSettings

NO_FACTORS = np.empty((0, 0))
NO_SLOTS = np.empty((0, 0), dtype=np.int64)

# Number of steps whose factors are computed together, so that memory does not grow with the number of steps.
STEPS_AT_A_TIME = 1024


class EventSource(Protocol):
    """A source of n events."""

    def __len__(self) -> int: ...

    def row(self, event: int) -> FloatArray:
        """Return the whole row of an event, (dimension,)."""
        ...

    def steps_for(self, order: IntArray, feature_map: FeatureMap) -> Steps:
        """Return the first one or more steps of ``order``, in which i scores and n + i learns event i."""
        ...


class Rows:
    """Events that are whole rows.

    Parameters
    ----------
    X : ndarray, shape (n, dimension), float64
        Rows of the events.
    settings
        Settings of the learner.
    gamma
        Factor of the squared distance in the kernel, see `forks.algorithm.kernels.precision`.
    """

    __slots__ = ("_X", "_gamma", "_settings")

    def __init__(self, X: FloatArray, settings: ForksSettings, gamma: float) -> None:
        self._X = X
        self._settings = settings
        self._gamma = gamma

    def __len__(self) -> int:
        return len(self._X)

    def row(self, event: int) -> FloatArray:
        """Return the row of an event, (dimension,)."""
        row: FloatArray = self._X[event]
        return row

    def steps_for(self, order: IntArray, feature_map: FeatureMap) -> Steps:
        """Return steps for the event loop, with the factors of entity blocks if there are any."""
        blocks = self._settings.entity_blocks
        if not blocks:
            return Steps(self._X, 0, NO_FACTORS, NO_SLOTS, order)
        order = order[:STEPS_AT_A_TIME]
        X = self._X[order % len(self)]
        edge = self._settings.kernel_columns[0]
        factors = [
            _factors(X[:, a:b], feature_map.landmarks[a - edge : b - edge], self._gamma) for a, b in blocks
        ]
        slots = np.arange(len(blocks) * len(X)).reshape(len(blocks), len(X)).T
        return Steps(self._X, 0, np.concatenate(factors), np.ascontiguousarray(slots), order)


@njit(cache=True, allocates=True)
def _factors(X: FloatArray, landmarks: FloatArray, gamma: float) -> FloatArray:
    """Return the kernel of each row of ``X`` (n, columns) with ``landmarks`` (columns, s_m), (n, s_m)."""
    out = np.empty((X.shape[0], landmarks.shape[1]))
    for i in range(X.shape[0]):
        gaussian_row(X[i], landmarks, gamma, out[i])
    return out
