"""What a watch ratio says: whether a video was watched, and what the learner is to say of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forks import LossName

WATCHED_THRESHOLD = 0.75
"""A watch ratio above this counts as watched (KuaiRec's and the FORKS paper's threshold)."""

RATIO_CAP = 2.0
"""Watch ratios above this count as this: a video on repeat says no more than one seen twice."""


def target(loss: LossName, watched: bool, watch_ratio: float) -> float:
    """Give what a learner with this loss learns: the label, or with squared loss the ratio above
    `WATCHED_THRESHOLD`.

    Either way a score above 0 says that the video will be watched.

    Examples
    --------
    >>> target("logistic", watched=True, watch_ratio=1.25)
    1.0
    >>> target("squared", watched=True, watch_ratio=1.25)
    0.5
    >>> target("squared", watched=True, watch_ratio=300.0) == RATIO_CAP - WATCHED_THRESHOLD
    True
    """
    if loss == "squared":
        return min(watch_ratio, RATIO_CAP) - WATCHED_THRESHOLD
    return 1.0 if watched else -1.0


def targets(
    loss: LossName, watched: NDArray[np.bool_], watch_ratios: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Give `target` of each, shape (n,).

    Examples
    --------
    >>> targets("logistic", np.array([True, False]), np.array([1.25, 0.1])).tolist()
    [1.0, -1.0]
    """
    if loss == "squared":
        return np.minimum(watch_ratios, RATIO_CAP) - WATCHED_THRESHOLD
    return np.where(watched, 1.0, -1.0)
