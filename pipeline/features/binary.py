"""A binary target: whether a label is above a threshold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from forks import LossName
from pipeline.config.settings import OnMissing
from pipeline.config.stream import KUAIREC
from pipeline.config.target_settings import BinarySettings
from pipeline.features.target import Floats, Target

STEEPNESS: Final = 1.875
"""Slope of the signal at the threshold times the scale, chosen on KuaiRec."""


@dataclass(frozen=True, slots=True)
class BinaryTarget(Target):
    """A label is positive if its value is above the threshold. A score above 0 predicts that it is.

    Attributes
    ----------
    threshold
        For KuaiRec, the watch ratio above which a video was watched, which is that of the FORKS paper.
    cap
        Values above this count as this: a video on repeat says no more than one seen twice.
    scale
        Distance from the threshold at which a value has a signal of 0.88 or -0.88, > 0.
    """

    threshold: float
    cap: float
    scale: float

    @classmethod
    def of(cls, settings: BinarySettings) -> Self:
        """Return the target of the settings."""
        return cls(settings.above, settings.cap, settings.scale)

    @property
    def losses(self) -> tuple[LossName, ...]:
        """All losses. With squared loss, values are learned, and the label is a matter of the threshold."""
        return "logistic", "squared_hinge", "hinge", "squared"

    @property
    def slope(self) -> float:
        """Slope of the signal at the threshold."""
        return STEEPNESS / self.scale

    def summand(self, value: float) -> float:
        """Return what statistics sum of a value: from 0 to `cap`."""
        return max(min(value, self.cap), 0.0)

    def summands(self, values: Floats) -> Floats:
        """Return `summand` of each value, shape (n,)."""
        return np.clip(values, 0.0, self.cap)

    def signal(self, value: float) -> float:
        """Return a bounded signal, 0 at the threshold: y / sqrt(1 + y^2) for y = `slope` (value - threshold).

        Returns
        -------
        float
            The signal, in [-1, 1], as a float32 can hold it.

        Examples
        --------
        >>> [round(TARGET.signal(ratio), 2) for ratio in (0.0, 0.75, 300.0)]
        [-0.88, 0.0, 1.0]
        """
        y = self.slope * (value - self.threshold)
        return float(np.float32(y / math.sqrt(1.0 + y * y)))

    def signals(self, values: Floats) -> Floats:
        """Return `signal` of each value, shape (n,), with the same bits."""
        y = self.slope * (values - self.threshold)
        return (y / np.sqrt(1.0 + y * y)).astype(np.float32).astype(np.float64)

    def taught(self, loss: LossName, value: float) -> float:
        """Return what a learner with this loss is taught.

        With squared loss it is the capped value less `threshold`, otherwise the label as 1 or -1. Either way
        a score above 0 predicts a positive label.

        Examples
        --------
        >>> TARGET.taught("logistic", 1.25), TARGET.taught("squared", 1.25), TARGET.taught("squared", 300.0)
        (1.0, 0.5, 1.25)
        """
        if loss == "squared":
            return min(value, self.cap) - self.threshold
        return 1.0 if self.is_positive(value) else -1.0

    def taught_many(self, loss: LossName, values: Floats) -> Floats:
        """Return `taught` of each value, shape (n,).

        Examples
        --------
        >>> TARGET.taught_many("logistic", np.array([1.25, 0.1])).tolist()
        [1.0, -1.0]
        """
        if loss == "squared":
            return np.minimum(values, self.cap) - self.threshold
        return np.where(self.are_positive(values), 1.0, -1.0)

    def prediction(self, score: float) -> bool:
        """Return whether a score predicts a positive label."""
        return score > 0.0

    def predictions(self, scores: Sequence[float]) -> list[bool]:
        """Return `prediction` of each score."""
        return [*map((0.0).__lt__, scores)]

    def label(self, value: float) -> bool:
        """Return whether the label is positive."""
        return self.is_positive(value)

    def labels(self, values: Iterable[float]) -> list[bool]:
        """Return `label` of each value, as a list and without a call for each."""
        return [*map(self.threshold.__lt__, values)]

    def correct(self, score: float, value: float) -> bool:
        """Return whether a score predicts the label."""
        return (score > 0.0) == self.is_positive(value)

    def correct_many(self, scores: Floats, values: Floats) -> list[bool]:
        """Return `correct` of each score and value, shapes (n,)."""
        right: NDArray[np.bool_] = (scores > 0.0) == self.are_positive(values)
        return [*right.tolist()]

    def on_missing(self, setting: OnMissing | None) -> OnMissing:
        """Return what a prediction that expires teaches: by default, that its label is negative.

        Examples
        --------
        >>> TARGET.on_missing(None), TARGET.missing_label("negative"), TARGET.missing_label("drop")
        ('negative', False, None)
        """
        return "negative" if setting is None else setting


assert isinstance(KUAIREC.target, BinarySettings)
TARGET: Final = BinaryTarget.of(KUAIREC.target)
"""The target of KuaiRec's stream, and the default."""
