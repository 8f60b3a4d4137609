"""The target of learning: which watch ratios are positive labels, and what a learner is taught of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from forks import LossName
from pipeline.config.tree import OnMissing


@dataclass(frozen=True, slots=True)
class Target:
    """The rules that turn watch ratios into labels and into the values that a learner is taught.

    Attributes
    ----------
    threshold
        A watch ratio above this is a positive label: the video was watched. The default is that of
        KuaiRec and of the FORKS paper.
    ratio_cap
        Watch ratios above this count as this: a video on repeat says no more than one seen twice.
    """

    threshold: float = 0.75
    ratio_cap: float = 2.0

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
        """Return a watch ratio, or `ratio_cap` if that is less."""
        return min(watch_ratio, self.ratio_cap)

    def cap_many(self, watch_ratios: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `cap` of each watch ratio, shape (n,)."""
        return np.minimum(watch_ratios, self.ratio_cap)

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
            return self.cap(watch_ratio) - self.threshold
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
            return self.cap_many(watch_ratios) - self.threshold
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


TARGET: Final = Target()
"""The target of this pipeline."""
