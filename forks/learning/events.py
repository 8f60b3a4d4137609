"""Sources of events for the event loop: the interface, and events that are rows.

See `forks.learning.event_loop` before changing compiled functions.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from forks.algorithm.feature_map import FeatureMap
from forks.algorithm.kernels import gaussian_row, precision
from forks.arrays import FloatArray, IntArray
from forks.checks import check_matrix
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
    """Events that are rows.

    Parameters
    ----------
    X : ndarray, shape (n, dimension - first), float64
        Rows of the events.
    settings
        Settings of the learner.
    gamma
        Factor of the squared distance in the kernel, see `forks.algorithm.kernels.precision`.
    first
        Number of columns that are not given, because the learner sees none of them; 0 with entity blocks.
    """

    __slots__ = ("_X", "_first", "_gamma", "_settings")

    def __init__(self, X: FloatArray, settings: ForksSettings, gamma: float, first: int = 0) -> None:
        self._X = X
        self._settings = settings
        self._gamma = gamma
        self._first = first

    def __len__(self) -> int:
        return len(self._X)

    @property
    def given(self) -> FloatArray:
        """The columns that are given, (n, dimension - first)."""
        return self._X

    @property
    def first(self) -> int:
        """Number of columns that are not given."""
        return self._first

    @property
    def blocks(self) -> IntArray:
        """First and last column + 1 of each entity block, (blocks, 2)."""
        return np.array(self._settings.entity_blocks, dtype=np.int64).reshape(-1, 2)

    def row(self, event: int) -> FloatArray:
        """Return the row of an event, (dimension,); columns that are not given are zeros."""
        return np.concatenate([np.zeros(self._first), self._X[event]])

    def steps_for(self, order: IntArray, feature_map: FeatureMap) -> Steps:
        """Return steps for the event loop, with the factors of entity blocks if there are any."""
        blocks = self._settings.entity_blocks
        if not blocks:
            return Steps(self._X, self._first, NO_FACTORS, NO_SLOTS, order)
        order = order[:STEPS_AT_A_TIME]
        X = self._X[order % len(self)]
        edge = self._settings.kernel_columns[0]
        factors = [
            _factors(X[:, a:b], feature_map.landmarks[a - edge : b - edge], self._gamma) for a, b in blocks
        ]
        slots = np.arange(len(blocks) * len(X)).reshape(len(blocks), len(X)).T
        return Steps(self._X, 0, np.concatenate(factors), np.ascontiguousarray(slots), order)


class LastColumns:
    """Events of which only the last columns are given, for a learner that sees no others.

    The ``_many`` methods of `forks.Forks` and its ``run`` take them in place of whole rows, with the same
    results. They cost less where the rows would be wide.

    Parameters
    ----------
    columns : ndarray, shape (n, m), float64
        The last m columns of the rows, at least those from `ForksSettings.first_seen` on.

    Examples
    --------
    >>> from forks import Forks, ForksSettings, LastColumns
    >>> settings = ForksSettings.practical(1000, linear_columns=(998, 1000), kernel_columns=(998, 1000))
    >>> Forks(settings).predict_many(LastColumns([[0.5, 2.0]])).tolist()
    [0.0]
    >>> LastColumns([[2.0]]).checked_against(settings)
    Traceback (most recent call last):
        ...
    ValueError: X has the last 1 columns, and the learner sees columns from 998 to 1000
    """

    def __init__(self, columns: ArrayLike) -> None:
        self._columns = columns

    def checked_against(self, settings: ForksSettings) -> Rows:
        """Return the events, or raise a ValueError if a learner of these settings cannot use them."""
        if settings.entity_blocks:
            raise ValueError("X has the last columns only; a learner with entity_blocks takes whole rows")
        columns = check_matrix("X", self._columns, None, settings.largest)
        first = settings.dimension - columns.shape[1]
        if not 0 <= first <= settings.first_seen:
            raise ValueError(
                f"X has the last {columns.shape[1]} columns, and the learner sees columns from "
                f"{settings.first_seen} to {settings.dimension}"
            )
        return Rows(columns, settings, precision(settings.width), first)


@njit(cache=True, allocates=True)
def _factors(X: FloatArray, landmarks: FloatArray, gamma: float) -> FloatArray:
    """Return the kernel of each row of ``X`` (n, columns) with ``landmarks`` (columns, s_m), (n, s_m)."""
    out = np.empty((X.shape[0], landmarks.shape[1]))
    for i in range(X.shape[0]):
        gaussian_row(X[i], landmarks, gamma, out[i])
    return out
