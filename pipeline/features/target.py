"""The target of learning: which watch ratios are positive labels, and what a learner is taught of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from forks import LossName
from pipeline.config.stream import KUAIREC, TargetSettings
from pipeline.config.tree import OnMissing

STEEPNESS: Final = 1.875
"""Slope of the signal at the threshold times the scale, chosen on KuaiRec."""


@dataclass(frozen=True, slots=True)
class Target:
    """The rules that turn watch ratios into labels and into the values that a learner is taught.

    Attributes
    ----------
    threshold
        A watch ratio above this is a positive label: the video was watched. That of KuaiRec is the FORKS
        paper's.
    ratio_cap
        Watch ratios above this count as this: a video on repeat says no more than one seen twice.
    scale
        Distance from the threshold at which a watch ratio has a signal of 0.88 or -0.88, > 0.
    """

    threshold: float
    ratio_cap: float
    scale: float

    @classmethod
    def of(cls, settings: TargetSettings) -> Self:
        """Return the target of the settings.

        Examples
        --------
        >>> Target.of(KUAIREC.target) == TARGET
        True
        """
        return cls(settings.above, settings.cap, settings.scale)

    @property
    def slope(self) -> float:
        """Slope of the signal at the threshold."""
        return STEEPNESS / self.scale

    def is_positive(self, watch_ratio: float) -> bool:
        """Return whether a watch ratio is a positive label.

        Examples
        --------
        >>> TARGET.is_positive(0.75), TARGET.is_positive(0.76)
        (False, True)
        """
        return watch_ratio > self.threshold

    def are_positive(self, watch_ratios: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return `is_positive` of each watch ratio, shape (n,)."""
        return watch_ratios > self.threshold

    def positives(self, watch_ratios: Iterable[float]) -> list[bool]:
        """Return `is_positive` of each watch ratio, as a list and without a call for each."""
        threshold = self.threshold
        return [watch_ratio > threshold for watch_ratio in watch_ratios]

    def cap(self, watch_ratio: float) -> float:
        """Return what is summed of a watch ratio: from 0 to `ratio_cap`."""
        return max(min(watch_ratio, self.ratio_cap), 0.0)

    def cap_many(self, watch_ratios: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `cap` of each watch ratio, shape (n,)."""
        return np.clip(watch_ratios, 0.0, self.ratio_cap)

    def signal(self, watch_ratio: float) -> float:
        """Return a bounded signal, 0 at the threshold: y / sqrt(1 + y^2) for y = `slope` (ratio - threshold).

        Returns
        -------
        float
            The signal, in [-1, 1], as a float32 can hold it.

        Examples
        --------
        >>> [round(TARGET.signal(ratio), 2) for ratio in (0.0, 0.75, 300.0)]
        [-0.88, 0.0, 1.0]
        """
        y = self.slope * (watch_ratio - self.threshold)
        return float(np.float32(y / math.sqrt(1.0 + y * y)))

    def signals(self, watch_ratios: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `signal` of each watch ratio, shape (n,), with the same bits."""
        y = self.slope * (watch_ratios - self.threshold)
        return (y / np.sqrt(1.0 + y * y)).astype(np.float32).astype(np.float64)

    def value(self, loss: LossName, label: bool, watch_ratio: float) -> float:
        """Return the value that a learner with this loss is taught.

        With squared loss it is the capped watch ratio less `threshold`, otherwise the label as 1 or -1.
        Either way a score above 0 predicts a positive label.

        Examples
        --------
        >>> TARGET.value("logistic", label=True, watch_ratio=1.25)
        1.0
        >>> TARGET.value("squared", label=True, watch_ratio=1.25)
        0.5
        >>> TARGET.value("squared", label=True, watch_ratio=300.0)
        1.25
        """
        if loss == "squared":
            return min(watch_ratio, self.ratio_cap) - self.threshold
        return 1.0 if label else -1.0

    def values(
        self, loss: LossName, labels: NDArray[np.bool_], watch_ratios: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return `value` of each label and watch ratio, shape (n,).

        Examples
        --------
        >>> TARGET.values("logistic", np.array([True, False]), np.array([1.25, 0.1])).tolist()
        [1.0, -1.0]
        """
        if loss == "squared":
            return np.minimum(watch_ratios, self.ratio_cap) - self.threshold
        return np.where(labels, 1.0, -1.0)

    def missing_label(self, on_missing: OnMissing) -> bool | None:
        """Return the label of a prediction that expired without one; None if nothing is learned of it.

        Its watch ratio counts as 0.

        Examples
        --------
        >>> TARGET.missing_label("negative"), TARGET.missing_label("drop")
        (False, None)
        """
        return self.is_positive(0.0) if on_missing == "negative" else None


TARGET: Final = Target.of(KUAIREC.target)
"""The target of KuaiRec's stream, and the default."""
