"""The stored points of the kernel part that are near an event, and which learned events they were."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forks.algorithm.kernels import gaussian
from forks.arrays import FloatArray


class NearPoint(NamedTuple):
    """A stored point, as it is near an event.

    Examples
    --------
    >>> from forks import Forks, ForksSettings
    >>> learner = Forks(ForksSettings.practical(1))
    >>> loss = learner.learn_one([0.5], 1)
    >>> learner.nearest_one([0.5], 1)
    [NearPoint(distance=0.0, kernel=1.0, learned_before=0)]
    """

    distance: float
    """Euclidean distance in the kernel's columns, standardised if the settings say so. Each point is as it
    was standardised when it was stored."""
    kernel: float
    """The kernel's value, from 0 to 1."""
    learned_before: int | None
    """Number of events learned before the one that was stored; None for points of a restored state, which
    does not say it."""


def nearest(
    point: FloatArray, points: FloatArray, learned_before: list[int | None], gamma: float, count: int
) -> list[NearPoint]:
    """Return the nearest of some stored points, the nearest first; of equal ones the older first.

    Parameters
    ----------
    point : ndarray, shape (columns,), float64
        The event, as it would be stored.
    points : ndarray, shape (n, columns), float64
        The stored points, the oldest first.
    learned_before
        What `NearPoint.learned_before` says of each.
    gamma
        Factor of the squared distance in the kernel, see `forks.algorithm.kernels.precision`.
    count
        How many are returned, at most.
    """
    squared = np.square(points - point).sum(axis=1)
    order = np.argsort(squared, kind="stable")[:count]
    return [
        NearPoint(float(np.sqrt(squared[row])), gaussian(point, points[row], gamma), learned_before[row])
        for row in order.tolist()
    ]
