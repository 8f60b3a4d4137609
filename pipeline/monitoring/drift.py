"""A detector of drift: the model makes more errors than the running means that it is meant to beat.

For each labelled event, d is the model's error less that of the running means, in [-1, 1], less a tolerance.
As long as the model is worse by no more than the tolerance, the mean of d given all that came before is at
most 0. Then 1 + b d has a mean of at most 1 for each bet b in (0, 1 / 2), and the e-SR detector M = (M + 1)
(1 + b d), from 0 on, is at most t on average after t events. So an alarm where M reaches 1 / alpha has an
average run length to a false alarm of at least 1 / alpha events, whatever else the events depend on. This
holds for the mean over several bets, too, which reacts to large changes soon and to small ones at all.

References
----------
Shin, Ramdas and Rinaldo, E-detectors: A Nonparametric Framework for Sequential Change Detection, New England
Journal of Statistics in Data Science 2, 2024 (Definition 2.2 and Theorem 2.4; e-SR).
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.jit import njit

Floats: TypeAlias = NDArray[np.float64]

ALPHA: Final = 1e-6
"""A false alarm in a million labelled events of a partition, or less."""
TOLERANCE: Final = 0.01
"""Errors more than those of the running means that are no drift: one in a hundred events.

Where the running means are as good as anything, any learner pays a little for what it estimates besides."""
BETS: Final = (0.02, 0.05, 0.1, 0.2, 0.4)
"""A bet b is best for a mean of d that is b times its variance: from half a percent to ten percent."""


class DriftDetector:
    """Watches the errors of one partition.

    Parameters
    ----------
    alpha
        One over the average run length to a false alarm, in labelled events, at least.

    Attributes
    ----------
    alarms
        Alarms so far. After each, the evidence begins anew.

    Examples
    --------
    >>> detector = DriftDetector(alpha=0.001)
    >>> detector.add(np.tile([1.0, -1.0], 500))  # as many errors of the model's as of the running means'
    >>> detector.alarms
    0
    >>> detector.add(np.ones(50))
    >>> detector.alarms > 0
    True
    """

    def __init__(self, alpha: float = ALPHA) -> None:
        self.threshold = 1.0 / alpha
        self.alarms = 0
        self._bets: Floats = np.array(BETS)
        self._evidence: Floats = np.zeros(len(BETS))

    @property
    def evidence(self) -> float:
        """Evidence against the model, which makes an alarm where it reaches `threshold`."""
        return float(self._evidence.mean())

    def add(self, differences: Floats) -> None:
        """Take errors of the model less those of the running means, shape (n,), in [-1, 1], in order."""
        surplus = differences - TOLERANCE
        self.alarms += int(_add(self._evidence, self._bets, surplus, self.threshold))


@njit(cache=True)
def _add(evidence: Floats, bets: Floats, surplus: Floats, threshold: float) -> int:
    """Move the evidence of each bet, in place, and return the number of alarms."""
    alarms = 0
    for n in range(surplus.shape[0]):
        total = 0.0
        for b in range(bets.shape[0]):
            evidence[b] = (evidence[b] + 1.0) * (1.0 + bets[b] * surplus[n])
            total += evidence[b]
        if total >= threshold * bets.shape[0]:
            alarms += 1
            evidence[:] = 0.0
    return alarms
